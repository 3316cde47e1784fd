"""STL files, binary or as text.

trimesh reads them, too; of a file whose number of facets is wrong, or that is cut, it returns an
empty scene without a word.
"""

import os
import pathlib
import re
import warnings
from collections import Counter

import numpy as np

from ..io import DamagedFile, FileError, read_bytes
from ._faces import number_rows
from ._mesh_checks import checked_part
from ._model import Model, ModelPart, notes_of, one_mesh


_HEADER, _FACET = 84, 50
_DTYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
# Some programs write `end solid`.
_SPLIT_END = re.compile(rb"end[ \t]+(solid|facet|loop)")
_NAMES = re.compile(rb"^[ \t]*(?:end)?solid(?:(?!facet normal)[^\r\n])*", re.MULTILINE)


def read_stl(path: str | os.PathLike) -> Model:
    """Reads the facets; corners at the same place become one vertex, and faces are flat."""
    path = pathlib.Path(path)
    data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    repairs = Counter[str]()
    corners = _corners(data, path, repairs)
    # Adding zero makes 0 of -0, so that equal places have equal bytes.
    rows = np.add(corners.reshape(-1, 3), np.float32(0), dtype=np.float32)
    first, faces = number_rows(rows.view(np.uint32))
    part = ModelPart(rows[first], faces.reshape(-1, 3), smooth=False)
    part = checked_part(part, path.name, repairs)
    if part is None:
        raise FileError(f"{path} has no facet with an area.")
    return one_mesh(path.stem, (part,), notes=notes_of(repairs))


def _corners(data: bytes, path: pathlib.Path, repairs: Counter[str]) -> np.ndarray:
    """Returns the corners of all facets, `facets 3 3`."""
    count = int.from_bytes(data[80:_HEADER], "little") if len(data) >= _HEADER else -1
    beyond = len(data) - _HEADER - _FACET * count
    # Some binary files begin with `solid`, too: the size decides. Further facets contradict it.
    if count >= 0 and beyond >= 0 and (beyond == 0 or (count and beyond % _FACET)):
        repairs["byte after the end"] += beyond
        table = np.frombuffer(data, _DTYPE, count, _HEADER)
        repairs["facet with a colour"] += int(np.sum(table["attribute"] >> 15))
        return np.ascontiguousarray(table["corners"])
    if data[:512].lstrip().lower().startswith(b"solid"):
        return _text_corners(data, path, repairs)
    raise DamagedFile(
        f"{path} is damaged, or no STL file: it says that it has {count} facets, which need "
        f"{_HEADER + _FACET * count} bytes; it has {len(data)}."
    )


def _text_corners(data: bytes, path: pathlib.Path, repairs: Counter[str]) -> np.ndarray:
    text = _SPLIT_END.sub(rb"end\1", data.lower())
    ends = text.count(b"endsolid")
    body = _NAMES.sub(b"", text)
    # After each word `vertex` there are three numbers, and the end of a line.
    pieces = body.split(b"vertex")[1:]
    facets = body.count(b"endfacet")
    if facets * 3 != len(pieces) or body.count(b"facet") != 2 * facets or not pieces:
        raise DamagedFile(
            f"{path} is damaged: it has {len(pieces)} corners in {facets} whole facets."
        )
    repairs["solid without an end, of which facets may be missing"] += not ends
    numbers = _numbers(b" ".join([piece.partition(b"\n")[0] for piece in pieces]))
    if numbers is None or len(numbers) != 3 * len(pieces):
        # Not line by line: word by word.
        numbers = _numbers(b" ".join([b" ".join(piece.split()[:3]) for piece in pieces]))
    if numbers is None or len(numbers) != 3 * len(pieces):
        raise DamagedFile(f"{path} is damaged: a corner is not three numbers.")
    return numbers.reshape(-1, 3, 3)


def _numbers(text: bytes) -> np.ndarray | None:
    """Returns all numbers of a text; `None` where a word is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # of a word that is no number
        try:
            return np.fromstring(text, np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
