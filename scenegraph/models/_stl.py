"""STL files, binary or as text.

trimesh reads them, too; of a file whose number of facets is wrong, or that is cut, it returns an
empty scene without a word.
"""

import os
import pathlib
from collections import Counter

import numpy as np

from ..io import DamagedFile, FileError, read_bytes
from ._mesh_checks import checked_part
from ._model import Model, ModelPart, notes_of, one_mesh


_HEADER, _FACET = 84, 50
_DTYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(path: str | os.PathLike) -> Model:
    """Reads the facets; corners at the same place become one vertex, and faces are flat."""
    path = pathlib.Path(path)
    data = read_bytes(path)
    corners = _corners(data, path)
    repairs = Counter[str]()
    # Adding zero makes 0 of -0, so that equal places have equal bytes.
    rows = np.ascontiguousarray(corners.reshape(-1, 3) + np.float32(0))
    vertices, faces = _merged(rows)
    part = ModelPart(vertices, faces.reshape(-1, 3).astype(np.int64), smooth=False)
    part = checked_part(part, path.name, repairs)
    if part is None:
        raise FileError(f"{path} has no facet with an area.")
    return one_mesh(path.stem, (part,), notes=notes_of(repairs))


def _merged(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the different rows, and the number of each in them."""
    bits = rows.view(np.uint32)
    order = np.lexsort(bits.T)
    ordered = bits[order]
    first = np.ones(len(rows), bool)
    first[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    number = np.empty(len(rows), np.int64)
    number[order] = np.cumsum(first) - 1
    return rows[order[first]], number


def _corners(data: bytes, path: pathlib.Path) -> np.ndarray:
    """Returns the corners of all facets, `facets 3 3`."""
    count = int.from_bytes(data[80:_HEADER], "little") if len(data) >= _HEADER else -1
    # Some binary files begin with `solid`, too: the size decides.
    if len(data) == _HEADER + _FACET * count:
        return np.frombuffer(data, _DTYPE, offset=_HEADER)["corners"]
    if data[:512].lstrip().lower().startswith(b"solid"):
        return _text_corners(data, path)
    raise DamagedFile(
        f"{path} is damaged, or no STL file: it says that it has {count} facets, which need "
        f"{_HEADER + _FACET * count} bytes; it has {len(data)}."
    )


def _text_corners(data: bytes, path: pathlib.Path) -> np.ndarray:
    words = data.lower().split()
    marks = Counter(words)
    at = [i for i, word in enumerate(words) if word == b"vertex"]
    if marks[b"endfacet"] * 3 != len(at) or b"endsolid" not in marks or not at:
        raise DamagedFile(
            f"{path} is damaged: it has {len(at)} corners in {marks[b'endfacet']} facets, and "
            f"{'an' if b'endsolid' in marks else 'no'} end."
        )
    try:
        numbers = np.array([words[i + 1 : i + 4] for i in at], dtype="S40").astype(np.float32)
    except ValueError as error:
        raise DamagedFile(f"{path} is damaged: a corner is not three numbers.") from error
    return numbers.reshape(-1, 3, 3)
