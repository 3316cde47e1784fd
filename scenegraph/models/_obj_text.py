"""The lines of OBJ files to arrays, many at a time."""

import pathlib
import warnings
from itertools import compress
from typing import NamedTuple

import numpy as np

from ..io import FileError
from ._mtl import COMMENT


_WIDTHS = {"v": 3, "vt": 2, "vn": 3}
_HEADS = {"v ": "v", "vt": "vt", "vn": "vn", "f ": "f"}


class ObjLines:
    """The lines of a file by kind: those of vertices and faces, with their places, and others."""

    def __init__(self, text: str):
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        # A line that ends in a backslash goes on; places are those of its end.
        if "\\\n" in text:
            text = text.replace("\\\n", "  ")
        lines = text.split("\n")
        heads = np.array([line[:2] for line in lines], dtype="U2")
        if not np.all(np.isin(heads, _PLAIN)):
            lines = [_plain(line) for line in lines]
            heads = np.array([line[:2] for line in lines], dtype="U2")
        self.texts: dict[str, list[str]] = {}
        self.places: dict[str, np.ndarray] = {}
        rest = np.ones(len(lines), bool)
        for head, kind in _HEADS.items():
            own = heads == head
            rest &= ~own
            self.places[kind] = np.flatnonzero(own)
            self.texts[kind] = list(compress(lines, own.tolist()))
        rest &= ~np.isin(heads, ("", "#", "# "))
        self.others = [(at, lines[at]) for at in np.flatnonzero(rest).tolist()]

    def line_of(self, kind: str, index: int) -> tuple[int, str]:
        """Returns the number, from 1, and the text of a line."""
        return int(self.places[kind][index]) + 1, self.texts[kind][index]


# What lines begin with that are read as they are; others may begin with spaces.
_PLAIN = ("", "#", "# ", *_HEADS, "us", "mt", "o ", "g ", "s ")


def _plain(line: str) -> str:
    """Returns a line without spaces before it, and with one after the first word of vertices."""
    line = line.strip()
    kind, _, rest = line.replace("\t", " ").partition(" ")
    return f"{kind} {rest}" if kind in _HEADS.values() else line


def _numbers(text: str, kind: type) -> np.ndarray | None:
    """Returns all numbers of a text; `None` where a word is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of a word that is no number
        try:
            return np.fromstring(text, kind, sep=" ")
        except (ValueError, DeprecationWarning):
            return None


def read_rows(lines: ObjLines, kind: str, path: pathlib.Path) -> np.ndarray:
    """Returns the numbers after `v`, `vt` or `vn`, of one width, that is at least needed."""
    width, texts = _WIDTHS[kind], lines.texts[kind]
    if not texts:
        return np.zeros((0, width))
    # As many words in each line, or the numbers would be those of other rows.
    numbers = _numbers(" ".join([text[2:] for text in texts]), float)
    if numbers is not None and len(numbers) % len(texts) == 0:
        found = len(numbers) // len(texts)
        if found >= width and _are_even(texts, found):
            return numbers.reshape(len(texts), found)
    return _uneven_rows(lines, kind, path)


def _are_even(texts: list[str], width: int) -> bool:
    """Returns true if all lines have so many words after the first."""
    # Lines with single spaces are counted fast, and others word by word.
    return all(text.count(" ") == width or len(text.split()) == width + 1 for text in texts)


def _uneven_rows(lines: ObjLines, kind: str, path: pathlib.Path) -> np.ndarray:
    """Reads rows one by one; what a row has beyond the least width is left out."""
    width, rows = _WIDTHS[kind], []
    for index, text in enumerate(lines.texts[kind]):
        words = COMMENT.sub("", text).split()[1:]
        if kind == "vt" and len(words) == 1:  # A texture may have one coordinate.
            words.append("0")
        try:
            row = [float(word) for word in words]
        except ValueError:
            row = []
        if len(row) < width:
            raise FileError(
                f"{path}, line {lines.line_of(kind, index)[0]}: {kind!r} must be followed by "
                f"{width} numbers; it is followed by {text[len(kind) :].strip()[:60]!r}."
            )
        rows.append(row)
    least = min(map(len, rows))
    return np.array([row[:least] for row in rows])


class Corners(NamedTuple):
    """The corners of all faces, one after the other."""

    counts: np.ndarray  # of each face
    indices: np.ndarray  # corners 3: of position, coordinates and normal; 0 for none
    is_given: np.ndarray  # corners 3: whether the file has an index


def read_corners(lines: ObjLines, path: pathlib.Path) -> Corners:
    """Returns the corners of all faces, with the file's indices."""
    texts = [text[2:] for text in lines.texts["f"]]
    whole = " ".join(texts)
    if "#" in whole:
        texts = [COMMENT.sub("", text) for text in texts]
        whole = " ".join(texts)
    counts = np.array([len(text.split()) for text in texts], np.int64)
    total, marks, doubles = int(np.sum(counts)), whole.count("/"), whole.count("//")
    given = (
        (0,) if not marks
        else (0, 2) if 2 * doubles == marks == 2 * total
        else (0, 1) if not doubles and marks == total
        else (0, 1, 2) if not doubles and marks == 2 * total
        else ()
    )  # fmt: skip
    if given:
        numbers = _numbers(whole.replace("/", " "), np.int64)
        if numbers is not None and len(numbers) == total * len(given) and _are_alike(whole, given):
            indices = np.zeros((total, 3), np.int64)
            indices[:, given] = numbers.reshape(total, len(given))
            is_given = np.broadcast_to(np.isin(np.arange(3), given), indices.shape)
            return Corners(counts, indices, is_given)
    return _mixed_corners(lines, texts, counts, path)


def _are_alike(whole: str, given: tuple[int, ...]) -> bool:
    """Returns true if no word has fewer marks than others have."""
    if len(given) != 3:
        # One mark a word and as many words: a word with two would leave one with none.
        return len(given) == 1 or all("/" in word for word in whole.split())
    return all(word.count("/") == 2 for word in whole.split())


def _mixed_corners(
    lines: ObjLines, texts: list[str], counts: np.ndarray, path: pathlib.Path
) -> Corners:
    """Reads corners of several forms: each different word once."""
    words = " ".join(texts).split()
    numbers = dict.fromkeys(words)
    known = {word: number for number, word in enumerate(numbers)}
    parsed = np.zeros((len(known), 3), np.int64)
    is_given = np.zeros((len(known), 3), bool)
    for word, number in known.items():
        for i, text in enumerate(word.split("/")[:3]):
            try:
                parsed[number, i] = int(text) if text else 0
            except (ValueError, OverflowError):
                at = words.index(word)
                face = int(np.searchsorted(np.cumsum(counts), at, "right"))
                line, text = lines.line_of("f", face)
                raise FileError(
                    f"{path}, line {line}: the face {' '.join(text.split()[1:])[:60]!r} must have "
                    "whole numbers, or several with / between them."
                ) from None
            is_given[number, i] = bool(text)
    which = np.array([known[word] for word in words], np.int64)
    return Corners(counts, parsed[which], is_given[which])
