"""The header and the rows of PLY files, as columns."""

import pathlib
import warnings
from typing import NamedTuple

import numpy as np

from ..io import DamagedFile


_TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "float": "f4",
    "double": "f8",
}
_TYPES |= {f"{'u' * (x[0] == 'u')}int{8 * int(x[1])}": x for x in ("i1", "u1", "i2", "u2")}
_TYPES |= {"int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8"}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_LONGEST_HEADER = 2**16


class Property(NamedTuple):
    """A number, or a list of numbers, of each row."""

    name: str
    dtype: str
    length: str | None  # the type of a list's length


class Element(NamedTuple):
    """A table of a file."""

    name: str
    rows: int
    properties: list[Property]


class Lists(NamedTuple):
    """Lists of numbers, one of each row."""

    counts: np.ndarray
    values: np.ndarray  # of all rows, one after the other


class Header(NamedTuple):
    """The contents that a file states."""

    order: str  # of bytes; empty for text
    elements: list[Element]
    textures: list[str]  # files that comments name
    end: int  # where the data begin


def read_header(data: bytes, path: pathlib.Path) -> Header:
    """Reads the lines before the data."""
    end = data.find(b"end_header", 0, _LONGEST_HEADER)
    stops = [at for mark in (b"\n", b"\r") if (at := data.find(mark, end)) >= 0]
    if not data.startswith(b"ply") or end < 0 or not stops:
        raise DamagedFile(f"{path} is not a PLY file, or its header is cut.")
    order, elements, textures = None, [], []
    for line in data[:end].decode("utf-8", "replace").splitlines():
        kind, *words = line.split() or [""]
        if kind == "format" and words:
            order = _ORDERS.get(words[0])
        elif kind in ("element", "property"):
            add = _add_element if kind == "element" else _add_property
            add(elements, [kind, *words], path)
        elif words[:1] == ["TextureFile"]:  # in a comment
            textures.append(line.split("TextureFile", 1)[1].strip())
    if order is None:
        raise DamagedFile(f"{path} does not say a format of {', '.join(_ORDERS)}.")
    stop = min(stops)
    return Header(order, elements, textures, stop + (2 if data[stop : stop + 2] == b"\r\n" else 1))


def _add_element(elements: list[Element], words: list[str], path: pathlib.Path) -> None:
    if len(words) != 3 or not words[2].isdecimal() or len(words[2]) > 12:
        raise DamagedFile(f"{path}: the header's line {' '.join(words)[:60]!r} is no element.")
    elements.append(Element(words[1], int(words[2]), []))


def _add_property(elements: list[Element], words: list[str], path: pathlib.Path) -> None:
    types = words[2:4] if words[1:2] == ["list"] else words[1:2]
    if not elements or len(words) != len(types) + (3 if len(types) == 2 else 2) or any(
        name not in _TYPES for name in types
    ):  # fmt: skip
        raise DamagedFile(f"{path}: the header's line {' '.join(words)[:60]!r} is no property.")
    length = _TYPES[types[0]] if len(types) == 2 else None
    elements[-1].properties.append(Property(words[-1], _TYPES[types[-1]], length))


def read_rows(data: bytes, header: Header, path: pathlib.Path) -> dict[str, dict]:
    """Returns the columns of each element by name: arrays, or `Lists`."""
    reader = _Text(data, header) if header.order == "" else _Binary(data, header)
    found: dict[str, dict] = {}
    for element in header.elements:
        try:
            columns = reader.columns(element)
        except (ValueError, IndexError, OverflowError, MemoryError) as error:
            raise DamagedFile(
                f"{path} is damaged: it has no {element.rows} rows of the element "
                f"{element.name!r}, as its header says."
            ) from error
        # Of two elements of one name, the first.
        found.setdefault(element.name, columns)
    return found


class _Binary:
    """Reads rows of bytes; all at once where the lists of all rows are as long."""

    def __init__(self, data: bytes, header: Header):
        self.data, self.order, self.at = data, header.order, header.end

    def columns(self, element: Element) -> dict:
        """Returns the columns of the next element."""
        if not element.rows or not element.properties:
            return {item.name: _empty(item) for item in element.properties}
        lengths = self._lengths(element, self.at)
        row = self._row(element, lengths)
        end = self.at + element.rows * row.itemsize
        if end <= len(self.data):
            table = np.frombuffer(self.data, row, element.rows, self.at)
            if all(
                np.all(table[f"{i} count"] == length)
                for i, length in enumerate(lengths)
                if length is not None
            ):
                self.at = end
                return _joined(element, [_Group(None, _fields(table, len(lengths)))])
        if all(length is None for length in lengths):
            raise ValueError
        return self._uneven(element)

    def _lengths(self, element: Element, at: int) -> tuple[int | None, ...]:
        """Returns how long the lists of the row at a byte are; `None` for numbers."""
        found: list[int | None] = []
        for item in element.properties:
            size, length = int(item.dtype[1]), None
            if item.length:
                length = int(np.frombuffer(self.data, self.order + item.length, 1, at)[0])
                if not 0 <= length <= len(self.data) - at:
                    raise ValueError
                at += int(item.length[1])
            at += size * (1 if length is None else length)
            found.append(length)
        return tuple(found)

    def _row(self, element: Element, lengths: tuple[int | None, ...]) -> np.dtype:
        """Returns the type of a row whose lists are so long."""
        fields: list[tuple] = []
        for i, (item, length) in enumerate(zip(element.properties, lengths, strict=True)):
            if length is not None:
                fields.append((f"{i} count", self.order + str(item.length)))
            shape = () if length is None else (length,)
            fields.append((f"{i}", self.order + item.dtype, shape))
        return np.dtype(fields)

    def _uneven(self, element: Element) -> dict:
        """Finds the rows one by one, and reads together those with lists of one length."""
        groups: dict[tuple, list[tuple[int, int]]] = {}
        sizes: dict[tuple, int] = {}
        at = self.at
        for number in range(element.rows):
            lengths = self._lengths(element, at)
            groups.setdefault(lengths, []).append((number, at))
            if lengths not in sizes:
                sizes[lengths] = self._row(element, lengths).itemsize
            at += sizes[lengths]
        if at > len(self.data):
            raise ValueError
        self.at = at
        whole = np.frombuffer(self.data, np.uint8)
        parts = []
        for lengths, places in groups.items():
            numbers, starts = np.array(places).T
            row = self._row(element, lengths)
            own = np.ascontiguousarray(whole[starts[:, None] + np.arange(row.itemsize)])
            parts.append(_Group(numbers, _fields(own.view(row)[:, 0], len(lengths))))
        return _joined(element, parts)


class _Text:
    """Reads rows of words; all at once where the lists of all rows are as long."""

    def __init__(self, data: bytes, header: Header):
        body = data[header.end :]
        self.lines = [line for line in body.splitlines() if line and not line.isspace()]
        self.at = 0

    def columns(self, element: Element) -> dict:
        """Returns the columns of the next element."""
        lines = self.lines[self.at : self.at + element.rows]
        self.at += element.rows
        if len(lines) < element.rows:
            raise ValueError
        if not lines or not element.properties:
            return {item.name: _empty(item) for item in element.properties}
        numbers = _numbers(b" ".join(lines))
        width = len(_numbers(lines[0]))
        if len(numbers) == width * len(lines):
            table = numbers.reshape(len(lines), width)
            lengths = _text_lengths(element, table[0])
            if all(np.all(table[:, i] == length) for i, length in _count_places(lengths)):
                return _joined(element, [_Group(None, _cut(element, table, lengths))])
        return self._uneven(element, lines)

    def _uneven(self, element: Element, lines: list[bytes]) -> dict:
        groups: dict[tuple, list[tuple[int, np.ndarray]]] = {}
        for number, line in enumerate(lines):
            row = np.array(line.split(), "S40").astype(np.float64)
            groups.setdefault(_text_lengths(element, row), []).append((number, row))
        parts = []
        for lengths, rows in groups.items():
            width = sum(1 if length is None else 1 + length for length in lengths)
            table = np.stack([row[:width] for _, row in rows])
            numbers = np.array([number for number, _ in rows])
            parts.append(_Group(numbers, _cut(element, table, lengths)))
        return _joined(element, parts)


def _numbers(text: bytes) -> np.ndarray:
    """Returns all numbers of a text; a `ValueError` for a word that is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of a word that is no number
        try:
            return np.fromstring(text, np.float64, sep=" ")
        except DeprecationWarning as error:
            raise ValueError from error


def _text_lengths(element: Element, row: np.ndarray) -> tuple[int | None, ...]:
    """Returns how long the lists of a row of numbers are; `None` for numbers."""
    at, found = 0, []
    for item in element.properties:
        length = int(row[at]) if item.length else None
        if length is not None and not 0 <= length <= len(row) - at - 1:
            raise ValueError
        at += 1 if length is None else 1 + length
        found.append(length)
    if at > len(row):
        raise ValueError
    return tuple(found)


def _count_places(lengths: tuple) -> list[tuple[int, int]]:
    """Returns the columns in which lists' lengths stand, and these."""
    at, found = 0, []
    for length in lengths:
        if length is not None:
            found.append((at, length))
        at += 1 if length is None else 1 + length
    return found


def _cut(element: Element, table: np.ndarray, lengths: tuple) -> list[np.ndarray]:
    """Returns the properties of a table of words."""
    at, found = 0, []
    for item, length in zip(element.properties, lengths, strict=True):
        own = table[:, at] if length is None else table[:, at + 1 : at + 1 + length]
        if item.dtype[0] != "f":
            if not np.all(np.abs(own) < 2**53):
                raise ValueError
            own = own.astype(np.int64).astype(item.dtype)
        found.append(own)
        at += 1 if length is None else 1 + length
    return found


def _fields(table: np.ndarray, count: int) -> list[np.ndarray]:
    """Returns the properties of a table of bytes."""
    return [table[f"{i}"] for i in range(count)]


class _Group(NamedTuple):
    """The properties of some rows whose lists are of one length; `None` for all rows."""

    numbers: np.ndarray | None
    columns: list[np.ndarray]


def _joined(element: Element, groups: list[_Group]) -> dict:
    """Puts the rows of all groups in their order."""
    found = {}
    for i, item in enumerate(element.properties):
        if item.length is None:
            found[item.name] = _joined_numbers(element.rows, groups, i)
        else:
            found[item.name] = _joined_lists(element.rows, groups, i)
    return found


def _joined_numbers(rows: int, groups: list[_Group], index: int) -> np.ndarray:
    first = groups[0].columns[index]
    if groups[0].numbers is None:
        return first
    column = np.empty(rows, first.dtype)
    for numbers, columns in groups:
        column[numbers] = columns[index]
    return column


def _joined_lists(rows: int, groups: list[_Group], index: int) -> Lists:
    first = groups[0].columns[index]
    if groups[0].numbers is None:
        return Lists(np.full(rows, first.shape[1]), first.reshape(-1))
    counts = np.empty(rows, np.int64)
    for numbers, columns in groups:
        counts[numbers] = columns[index].shape[1]
    starts, values = np.cumsum(counts) - counts, np.empty(int(np.sum(counts)), first.dtype)
    for numbers, columns in groups:
        own = columns[index]
        values[starts[numbers][:, None] + np.arange(own.shape[1])] = own
    return Lists(counts, values)


def _empty(item: Property) -> np.ndarray | Lists:
    return Lists(np.zeros(0, np.int64), np.zeros(0, item.dtype)) if item.length else np.zeros(0)
