"""OBJ files with their MTL files.

trimesh reads them, too; it takes the index 0 for the last vertex, and of vertices that are no
numbers says nothing.
"""

import os
import pathlib
from collections import Counter

import numpy as np

from ..io import FileError, read_bytes
from ._beside import decode_text
from ._faces import number_rows
from ._mesh_checks import checked_parts
from ._model import linear_from_srgb, Model, ModelMesh, ModelNode, ModelPart, notes_of
from ._mtl import COMMENT, MaterialLibrary
from ._obj_text import Corners, ObjLines, read_corners, read_rows
from ._polygons import split_polygons


_ATTRIBUTES = (("vt", "coordinates"), ("vn", "normal"))


def read_obj(path: str | os.PathLike) -> Model:
    """Reads a file; every object becomes a mesh, with a part for each of its materials."""
    path = pathlib.Path(path)
    reader = _Reader(path, ObjLines(decode_text(read_bytes(path))))
    return reader.model()


class _Reader:
    """The contents of a file."""

    def __init__(self, path: pathlib.Path, lines: ObjLines):
        self.path, self.lines, self.repairs = path, lines, Counter[str]()
        self.library = MaterialLibrary(path)
        self.tables = {kind: read_rows(lines, kind, path) for kind in ("v", "vt", "vn")}
        self.parts: list[tuple[str, str]] = []  # names of the object and of the material
        self.owners = self._statements()
        self.colors = self._colors()

    def _statements(self) -> np.ndarray:
        """Reads the lines of names and files; returns the part that each face belongs to."""
        names, numbers = {"o": "", "usemtl": ""}, {("", ""): 0}
        places, owners = [0], [0]
        for at, line in self.lines.others:
            kind, _, rest = line.strip().replace("\t", " ").partition(" ")
            rest = COMMENT.sub("", rest) if "#" in rest else rest
            if kind in names:
                names[kind] = " ".join(rest.split())
                places.append(at)
                owners.append(numbers.setdefault((names["o"], names["usemtl"]), len(numbers)))
            elif kind == "mtllib":
                self.library.read(" ".join(rest.split()))
            elif kind in ("l", "p", "curv", "surf"):
                self.repairs["point, line or curve"] += 1
        self.parts = list(numbers)
        starts = np.searchsorted(self.lines.places["f"], places)
        return np.repeat(owners, np.diff(starts, append=len(self.lines.places["f"])))

    def model(self) -> Model:
        """Returns the whole."""
        corners = self._checked(read_corners(self.lines, self.path))
        faces, owners = self._triangles(corners)
        parts = self._parts(corners.indices, faces, owners) if len(faces) else {}
        found: dict[str, list[ModelPart]] = {}
        for number, part in sorted(parts.items()):
            owner, material = self.parts[number]
            index = self.library.numbers.get(material)
            own = ModelPart(*part[:5], material=index, smooth=part.smooth, name=material)
            found.setdefault(owner, []).append(own)
        if not found:
            self._refuse(len(faces))
        used = {part.material for parts in found.values() for part in parts}
        self.library.show_some(used, self.repairs)
        matrix = np.eye(4)
        nodes = (ModelNode(x or self.path.stem, matrix, mesh=i) for i, x in enumerate(found))
        return Model(
            nodes=tuple(nodes),
            roots=tuple(range(len(found))),
            meshes=tuple(ModelMesh(name, tuple(parts)) for name, parts in found.items()),
            materials=tuple(self.library.materials),
            notes=(*notes_of(self.library.notes, once=True), *notes_of(self.repairs)),
        )

    def _refuse(self, faces: int) -> None:
        """Refuses a file without a triangle, and says why."""
        if faces:
            raise FileError(f"{self.path} has no faces with an area.")
        if self.repairs["point, line or curve"]:
            raise FileError(
                f"{self.path} has no faces; points, lines and curves are not a surface."
            )
        raise FileError(f"{self.path} has no faces; is it an OBJ file?")

    # --- Faces

    def _checked(self, corners: Corners) -> Corners:
        """Turns indices to rows, -1 for none; refuses vertices that are not there."""
        indices = corners.indices
        lines = np.repeat(self.lines.places["f"], corners.counts)
        for column, kind in enumerate(self.tables):
            own, total = indices[:, column], len(self.tables[kind])
            so_far = np.searchsorted(self.lines.places[kind], lines) if np.any(own < 0) else 0
            # From 1, or backwards from the last so far; 0 is none.
            rows = np.where(own > 0, own - 1, np.where(own < 0, so_far + own, -1))
            rows = np.where((rows < 0) | (rows >= total), -1, rows)
            if column == 0 and np.any(rows < 0):
                self._refuse_face(int(np.argmax(rows < 0)), corners)
            if column and (wrong := int(np.sum((rows < 0) & corners.is_given[:, column]))):
                what = _ATTRIBUTES[column - 1][1]
                self.repairs[f"corner whose {what} are not there"] += wrong
            indices[:, column] = rows
        return corners

    def _refuse_face(self, corner: int, corners: Corners) -> None:
        face = int(np.searchsorted(np.cumsum(corners.counts), corner, "right"))
        number, line = self.lines.line_of("f", face)
        raise FileError(
            f"{self.path}, line {number}: the face {' '.join(line.split()[1:])[:60]!r} must have "
            f"indices from 1 to the number of vertices ({len(self.tables['v'])}), or negative "
            "ones from the last so far."
        )

    def _triangles(self, corners: Corners) -> tuple[np.ndarray, np.ndarray]:
        """Returns the places of triangles' corners, and the part of each triangle."""
        self.repairs["face with fewer than three corners"] += int(np.sum(corners.counts < 3))
        vertices = self.tables["v"][:, :3]
        faces, dented = split_polygons(corners.counts, corners.indices[:, 0], vertices)
        self.repairs["polygon of very many corners, whose dents are filled"] += dented
        return faces, np.repeat(self.owners, np.maximum(corners.counts - 2, 0))

    def _parts(
        self, indices: np.ndarray, faces: np.ndarray, owners: np.ndarray
    ) -> dict[int, ModelPart]:
        """Makes the parts by number; corners that are alike in all become one vertex of a part."""
        # All faces of a part together, in the file's order.
        order = np.argsort(owners, kind="stable")
        faces, owners = faces[order], owners[order]
        rows = indices.take(faces.reshape(-1), axis=0)
        columns = [0, *(i for i in (1, 2) if np.any(rows[:, i] >= 0))]
        keys = rows[:, columns]
        if owners[0] != owners[-1]:
            keys = np.concatenate([keys, np.repeat(owners, 3)[:, None]], axis=1)
        first, numbers = number_rows(keys)
        rows, faces, vertex_owners = rows[first], numbers.reshape(-1, 3), owners[first // 3]
        for number in np.unique(owners).tolist():
            material = self.parts[number][1]
            if material and material not in self.library.numbers:
                self.repairs[f"material {material[:60]!r} that no MTL file has"] += 1
        # Parts that have the same attributes are checked together.
        has = [np.bincount(vertex_owners, rows[:, i] >= 0) > 0 for i in (1, 2)]
        kinds = has[0] + 2 * has[1]
        found: dict[int, ModelPart] = {}
        for kind in np.unique(kinds[np.unique(owners)]).tolist():
            own, own_vertices = kinds[owners] == kind, kinds[vertex_owners] == kind
            new = np.cumsum(own_vertices) - 1
            part = self._whole(rows[own_vertices], new[faces[own]])
            found |= checked_parts(part, owners[own], self.path.name, self.repairs)
        return found

    def _whole(self, rows: np.ndarray, faces: np.ndarray) -> ModelPart:
        """Returns several parts as one."""
        colors = self.colors
        return ModelPart(
            vertices=self.tables["v"][rows[:, 0], :3],
            faces=faces,
            normals=self._values("vn", rows[:, 2]),
            uv=self._values("vt", rows[:, 1]),
            colors=None if colors is None else colors[rows[:, 0]],
        )

    def _values(self, kind: str, rows: np.ndarray) -> np.ndarray | None:
        """Returns rows of a table, zeros for those that are lacking; `None` if all are."""
        if not np.any(rows >= 0):
            return None
        what = dict(_ATTRIBUTES)[kind]
        self.repairs[f"vertex without {what} beside others with"] += int(np.sum(rows < 0))
        return np.where(rows[:, None] >= 0, self.tables[kind][rows], 0)

    def _colors(self) -> np.ndarray | None:
        """Returns the colours that some programs write after positions, linear."""
        table = self.tables["v"]
        if table.shape[1] < 6 or not np.all(np.isfinite(table[:, -3:])):
            return None
        colors = np.ones((len(table), 4))
        colors[:, :3] = linear_from_srgb(table[:, -3:])
        return colors
