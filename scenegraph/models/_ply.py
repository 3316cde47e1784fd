"""PLY files: points are written, and meshes read, binary or as text.

trimesh reads them, too; it takes indices out of range and files that are cut for granted, and
drops the colours of a mesh with texture coordinates.
"""

import os
import pathlib
from collections import Counter
from typing import NamedTuple

import numpy as np

from ..io import DamagedFile, FileError, LARGEST, read_bytes
from ._mesh_checks import checked_part, fan_of
from ._model import linear_from_srgb, Model, ModelPart, notes_of, one_mesh


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
_UV = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))
_LONGEST_HEADER = 2**16


class _Property(NamedTuple):
    name: str
    dtype: str
    length: str | None  # the type of a list's length


class _Element(NamedTuple):
    name: str
    rows: int
    properties: list[_Property]


def write_points(path: str | os.PathLike, points: np.ndarray, colors: np.ndarray) -> None:
    """Writes points `n 3` with colours `n 3` of bytes as a PLY file, as text."""
    properties = [f"property float {axis}" for axis in "xyz"]
    properties += [f"property uchar {name}" for name in ("red", "green", "blue")]
    header = ["ply", "format ascii 1.0", f"element vertex {len(points)}", *properties, "end_header"]
    rows = (
        f"{x:.7g} {y:.7g} {z:.7g} {r} {g} {b}"
        for (x, y, z), (r, g, b) in zip(points, colors, strict=True)
    )
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in (*header, *rows))


def read_ply(path: str | os.PathLike) -> Model:
    """Reads a mesh, with the normals, texture coordinates and colours of its vertices."""
    return _model(pathlib.Path(path), *_read_elements(pathlib.Path(path)))


def read_points(path: str | os.PathLike) -> np.ndarray:
    """Reads the positions of points or vertices, `n 3`, float64; those not finite are left out."""
    columns, _ = _read_elements(pathlib.Path(path))
    if not {"x", "y", "z"} <= columns.keys():
        raise FileError(f"{path} has no vertices with x, y and z.")
    points = np.stack([columns[name].astype(np.float64) for name in "xyz"], axis=1)
    return points[np.all(np.abs(points) <= LARGEST, axis=1)]


def _read_elements(path: pathlib.Path) -> tuple[dict[str, np.ndarray], list[np.ndarray] | None]:
    """Reads the columns of vertices, and the faces' lists of corners."""
    data = read_bytes(path)
    order, elements, start = _header(data, path)
    read = _read_text if order == "" else _read_binary
    try:
        return read(data[start:], elements, order)
    except (ValueError, IndexError, OverflowError) as error:
        raise DamagedFile(
            f"{path} is damaged: its data are not what its header says ({error})."
        ) from error


def _model(
    path: pathlib.Path, columns: dict[str, np.ndarray], lists: list[np.ndarray] | None
) -> Model:
    if lists is None or not {"x", "y", "z"} <= columns.keys():
        raise FileError(f"{path} has no faces; points alone are not a surface.")
    pick = lambda *names: np.stack([columns[name] for name in names], axis=1)
    repairs = Counter[str]()
    repairs["face with fewer than three corners"] += sum(len(corners) < 3 for corners in lists)
    uv = next((pick(*pair) for pair in _UV if set(pair) <= columns.keys()), None)
    part = ModelPart(
        vertices=pick("x", "y", "z"),
        faces=_triangles(lists),
        normals=pick("nx", "ny", "nz") if {"nx", "ny", "nz"} <= columns.keys() else None,
        uv=uv,
        colors=_colors(columns),
    )
    part = checked_part(part, path.name, repairs)
    if part is None:
        raise FileError(f"{path} has no faces; points alone are not a surface.")
    return one_mesh(path.stem, (part,), notes=notes_of(repairs))


def _triangles(lists: list[np.ndarray] | np.ndarray) -> np.ndarray:
    if isinstance(lists, np.ndarray) and lists.shape[1] == 3:
        return lists.astype(np.int64)
    fans = [fan_of(np.asarray(corners, np.int64)) for corners in lists]
    return np.concatenate([np.zeros((0, 3), np.int64), *(fan for fan in fans if len(fan))])


def _colors(columns: dict[str, np.ndarray]) -> np.ndarray | None:
    """Returns linear colours with opacity; the file's are sRGB."""
    if not {"red", "green", "blue"} <= columns.keys():
        return None
    names = [name for name in ("red", "green", "blue", "alpha") if name in columns]
    scale = [np.iinfo(columns[n].dtype).max if columns[n].dtype.kind in "iu" else 1 for n in names]
    colors = np.ones((len(columns["red"]), 4))
    colors[:, : len(names)] = np.stack([columns[name] for name in names], axis=1) / scale
    colors[:, :3] = linear_from_srgb(colors[:, :3])
    return colors


# --- The header


def _header(data: bytes, path: pathlib.Path) -> tuple[str, list[_Element], int]:
    """Returns the order of bytes (empty for text), the elements, and where the data begin."""
    end = data.find(b"end_header", 0, _LONGEST_HEADER)
    stop = data.find(b"\n", end)
    if not data.startswith(b"ply") or end < 0 or stop < 0:
        raise DamagedFile(f"{path} is not a PLY file, or its header is cut.")
    order, elements = None, []
    for line in data[:end].decode("ascii", "replace").splitlines():
        words = line.split()
        if words[:1] == ["format"] and len(words) > 1:
            order = _ORDERS.get(words[1])
        elif words[:1] == ["element"]:
            elements.append(_element(words, path))
        elif words[:1] == ["property"]:
            _add_property(elements, words, path)
    if order is None:
        raise DamagedFile(f"{path} does not say a format of {', '.join(_ORDERS)}.")
    return order, elements, stop + 1


def _element(words: list[str], path: pathlib.Path) -> _Element:
    if len(words) != 3 or not words[2].isdecimal() or len(words[2]) > 12:
        raise DamagedFile(f"{path}: the header's line {' '.join(words)[:60]!r} is no element.")
    return _Element(words[1], int(words[2]), [])


def _add_property(elements: list[_Element], words: list[str], path: pathlib.Path) -> None:
    types = words[2:4] if words[1:2] == ["list"] else words[1:2]
    if not elements or len(words) != len(types) + (3 if len(types) == 2 else 2) or any(
        name not in _TYPES for name in types
    ):  # fmt: skip
        raise DamagedFile(f"{path}: the header's line {' '.join(words)[:60]!r} is no property.")
    length = _TYPES[types[0]] if len(types) == 2 else None
    elements[-1].properties.append(_Property(words[-1], _TYPES[types[-1]], length))


def _is_faces(element: _Element, item: _Property) -> bool:
    return element.name == "face" and item.name in ("vertex_indices", "vertex_index")


# --- The data


def _read_text(data: bytes, elements: list[_Element], order: str) -> tuple:
    """Returns the columns of the vertices, and the corners of each face."""
    del order
    rows = [words for line in data.splitlines() if (words := line.split())]
    columns, lists, at = {}, None, 0
    for element in elements:
        part, at = rows[at : at + element.rows], at + element.rows
        if len(part) < element.rows:
            raise ValueError(f"{len(part)} of {element.rows} lines of {element.name!r}")
        if element.name == "vertex":
            table = np.array(part, dtype="S40").astype(np.float64)
            for i, item in enumerate(element.properties):
                columns[item.name] = table[:, i].astype(item.dtype)
        elif element.name == "face":
            lists = [_corners_of(element, row) for row in part]
    return columns, lists


def _corners_of(element: _Element, row: list[bytes]) -> np.ndarray:
    """Returns the corners of a face from the words of its line."""
    at = 0
    for item in element.properties:
        length = int(row[at]) if item.length else 1
        at += 1 if item.length else 0
        if _is_faces(element, item):
            if not 0 <= length <= len(row) - at:
                raise ValueError(f"a face of {length} corners")
            return np.array([int(word) for word in row[at : at + length]], np.int64)
        at += length
    raise ValueError("faces without vertex_indices")


def _read_binary(data: bytes, elements: list[_Element], order: str) -> tuple:
    """Returns the columns of the vertices, and the corners of each face."""
    columns, lists, at = {}, None, 0
    for element in elements:
        if any(item.length for item in element.properties):
            found, at = _read_lists(data, element, order, at)
            lists = found if element.name == "face" else lists
            continue
        table, at = _table(data, element.properties, element.rows, order, at)
        if element.name == "vertex":
            columns = {name: table[name] for name in table.dtype.names or ()}
    return columns, lists


def _table(
    data: bytes, items: list[_Property], count: int, order: str, at: int
) -> tuple[np.ndarray, int]:
    dtype = np.dtype([(item.name, order + item.dtype) for item in items])
    if at + count * dtype.itemsize > len(data) or not dtype.itemsize:
        raise ValueError(f"{count} rows of {dtype.itemsize} bytes in {len(data) - at} bytes")
    return np.frombuffer(data, dtype, count, at), at + count * dtype.itemsize


def _read_lists(
    data: bytes, element: _Element, order: str, at: int
) -> tuple[list[np.ndarray] | np.ndarray, int]:
    """Reads rows with lists: all at once if these are of one length, else one by one."""
    if at + element.rows > len(data):
        raise ValueError(f"{element.rows} rows of {element.name!r} in {len(data) - at} bytes")
    if (equal := _equal_lists(data, element, order, at)) is not None:
        return equal
    lists = []
    for _ in range(element.rows):
        for item in element.properties:
            values, at = _values(data, item, order, at)
            lists += [values] if _is_faces(element, item) else []
    return lists, at


def _values(data: bytes, item: _Property, order: str, at: int) -> tuple[np.ndarray, int]:
    """Reads a number, or a list after its length."""
    count = 1
    if item.length:
        count = int(np.frombuffer(data, order + item.length, 1, at)[0])
        at += int(item.length[1])
    if not 0 <= count <= len(data) - at:
        raise ValueError(f"a list of {count}")
    values = np.frombuffer(data, order + item.dtype, count, at) if count else np.zeros(0, "i4")
    return values, at + values.nbytes


def _equal_lists(
    data: bytes, element: _Element, order: str, at: int
) -> tuple[np.ndarray, int] | None:
    """Reads rows of one list, all as long as the first; `None` if they are not."""
    (item, *others) = element.properties
    if others or item.length is None or not element.rows or not _is_faces(element, item):
        return None
    length = int(np.frombuffer(data, order + item.length, 1, at)[0])
    row = np.dtype([("n", order + item.length), ("items", order + item.dtype, (length,))])
    if length < 3 or at + element.rows * row.itemsize > len(data):
        return None
    table = np.frombuffer(data, row, element.rows, at)
    fits = bool(np.all(table["n"] == length))
    return (table["items"], at + element.rows * row.itemsize) if fits else None
