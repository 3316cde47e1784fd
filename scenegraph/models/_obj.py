"""OBJ files with their MTL files.

trimesh reads them, too; it takes the index 0 for the last vertex, and of vertices that are no
numbers says nothing.
"""

import contextlib
import os
import pathlib
import warnings
from collections import Counter

import numpy as np

from ..io import FileError, read_bytes
from ._mesh_checks import checked_part
from ._model import linear_from_srgb, Model, ModelMesh, ModelNode, ModelPart, notes_of
from ._mtl import MaterialLibrary


_WIDTHS = {"v": 3, "vt": 2, "vn": 3}


def read_obj(path: str | os.PathLike) -> Model:
    """Reads a file; every object becomes a mesh, with a part for each of its materials."""
    path = pathlib.Path(path)
    text = read_bytes(path).decode("utf-8", errors="replace").replace("\r\n", "\n")
    reader = _Reader(path)
    # A line that ends in a backslash goes on.
    for number, line in enumerate(text.replace("\\\n", "  ").splitlines(), 1):
        reader._take(number, line.split("#", 1)[0] if "#" in line else line)
    return reader.model()


class _Corners:
    """The faces of one object and material, and their corners, each once."""

    def __init__(self):
        self.numbers: dict[tuple[int, int, int], int] = {}
        self.words: dict[str, int] = {}
        self.faces: list[tuple[int, int, int]] = []


class _Reader:
    """The contents of a file up to a line."""

    def __init__(self, path: pathlib.Path):
        self.path, self.repairs = path, Counter[str]()
        self.rows: dict[str, list[str]] = {"v": [], "vt": [], "vn": []}
        self.lines: dict[str, list[int]] = {"v": [], "vt": [], "vn": []}
        self.parts: dict[tuple[str, str], _Corners] = {}
        self.names = {"o": "", "usemtl": ""}
        self.library = MaterialLibrary(path)

    # Private, so that no call of millions is checked.
    def _take(self, number: int, line: str) -> None:
        """Takes one line."""
        kind, _, rest = line.strip().replace("\t", " ").partition(" ")
        if kind in self.rows:
            self.rows[kind].append(rest)
            self.lines[kind].append(number)
        elif kind == "f":
            self._face(number, rest.split())
        elif kind in ("usemtl", "o"):
            self.names[kind] = " ".join(rest.split())
        elif kind == "mtllib":
            self.library.read(" ".join(rest.split()))
        elif kind in ("l", "p", "curv", "surf"):
            self.repairs["point, line or curve"] += 1

    def _face(self, number: int, words: list[str]) -> None:
        key = self.names["o"], self.names["usemtl"]
        part = self.parts.get(key) or self.parts.setdefault(key, _Corners())
        try:
            at = [part.words.get(word, -1) for word in words]
            if -1 in at:
                at = [self._number(part, word) for word in words]
        except (ValueError, IndexError) as error:
            raise FileError(
                f"{self.path}, line {number}: the face {' '.join(words)[:60]!r} must have indices "
                f"from 1 to the number of vertices so far ({len(self.rows['v'])}), or negative "
                "ones from the last; likewise for coordinates and normals."
            ) from error
        if len(at) < 3:
            self.repairs["face with fewer than three corners"] += 1
        part.faces += [(at[0], at[i], at[i + 1]) for i in range(1, len(at) - 1)]

    def _number(self, part: _Corners, word: str) -> int:
        """Returns the number of a corner in its part."""
        corner = self._corner(word)
        number = part.numbers.setdefault(corner, len(part.numbers))
        if "-" not in word:  # else it means another corner later
            part.words[word] = number
        return number

    def _corner(self, word: str) -> tuple[int, int, int]:
        """Returns the rows of position, coordinates and normal; -1 for none."""
        found = [-1, -1, -1]
        for i, (text, kind) in enumerate(zip(word.split("/"), self.rows, strict=False)):
            if text or i == 0:
                # From 1, or backwards from the last so far.
                index, count = int(text), len(self.rows[kind])
                found[i] = index - 1 if index > 0 else count + index
                if index == 0 or not 0 <= found[i] < count:
                    raise IndexError
        return found[0], found[1], found[2]

    def model(self) -> Model:
        """Returns the whole."""
        tables = {kind: self._table(kind) for kind in self.rows}
        colors = self._colors()
        names = list(dict.fromkeys(name for name, _ in self.parts))
        meshes, nodes = [], []
        for name in names:
            parts = [
                self._part(corners, tables, colors, material)
                for (owner, material), corners in self.parts.items()
                if owner == name
            ]
            if parts := [part for part in parts if part is not None]:
                nodes.append(ModelNode(name or self.path.stem, np.eye(4), mesh=len(meshes)))
                meshes.append(ModelMesh(name, tuple(parts)))
        if not meshes:
            raise FileError(f"{self.path} has no faces; is it an OBJ file?")
        return Model(
            nodes=tuple(nodes),
            roots=tuple(range(len(nodes))),
            meshes=tuple(meshes),
            materials=tuple(self.library.materials),
            notes=(*self.library.notes, *notes_of(self.repairs)),
        )

    def _part(
        self,
        corners: _Corners,
        tables: dict[str, np.ndarray],
        colors: np.ndarray | None,
        material: str,
    ) -> ModelPart | None:
        rows = np.array(list(corners.numbers), np.int64).reshape(-1, 3)
        for i, what in ((1, "coordinates"), (2, "normal")):
            if 0 < (lacking := int(np.sum(rows[:, i] < 0))) < len(rows):
                self.repairs[f"corner without {what}, so that others' are left out"] += lacking
        pick = lambda kind, i: tables[kind][rows[:, i]] if np.all(rows[:, i] >= 0) else None
        part = ModelPart(
            vertices=tables["v"][rows[:, 0]],
            faces=np.array(corners.faces, np.int64).reshape(-1, 3),
            normals=pick("vn", 2),
            uv=pick("vt", 1),
            colors=None if colors is None else colors[rows[:, 0]],
            material=self.library.numbers.get(material),
            name=material,
        )
        if material and part.material is None:
            self.repairs[f"material {material[:60]!r} that no MTL file has"] += 1
        return checked_part(part, self.path.name, self.repairs)

    def _table(self, kind: str) -> np.ndarray:
        """Returns rows of numbers; what a row has beyond its width is left out."""
        width, rows = _WIDTHS[kind], self.rows[kind]
        if not rows:
            return np.zeros((0, width))
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows without numbers, which are refused below
            table = np.loadtxt(rows, np.float64, ndmin=2)
            if len(table) == len(rows) and table.shape[1] >= width:
                return table[:, :width]
        split = [row.split()[:width] for row in rows]
        if kind == "vt":  # A texture may have one coordinate.
            split = [row if len(row) == 2 else [*row, "0"] for row in split]
        bad = next((i for i, row in enumerate(split) if not _are_numbers(row, width)), None)
        if bad is None:
            return np.array([[float(word) for word in row] for row in split])
        raise FileError(
            f"{self.path}, line {self.lines[kind][bad]}: {kind!r} must be followed by {width} "
            f"numbers; it is followed by {rows[bad][:60]!r}."
        )

    def _colors(self) -> np.ndarray | None:
        """Returns the colours that some programs write after positions, linear."""
        if not self.rows["v"] or len(self.rows["v"][0].split()) < 6:
            return None
        rows = [row[-3:] for row in map(str.split, self.rows["v"]) if len(row) >= 6]
        if len(rows) < len(self.rows["v"]):
            return None
        if not all(_are_numbers(row, 3) for row in rows):
            return None
        colors = np.ones((len(rows), 4))
        colors[:, :3] = linear_from_srgb(np.array(rows, dtype="U40").astype(np.float64))
        return colors


def _are_numbers(row: list[str], width: int) -> bool:
    try:
        return len([float(word) for word in row]) == width
    except ValueError:
        return False
