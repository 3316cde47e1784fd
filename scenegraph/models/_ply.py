"""PLY files: points are written, and meshes read, binary or as text.

trimesh reads them, too; it takes indices out of range and files that are cut for granted, and
drops the colours of a mesh with texture coordinates.
"""

import os
import pathlib
from collections import Counter

import numpy as np

from ..io import FileError, LARGEST, read_bytes, replace_file
from ._faces import number_rows
from ._mesh_checks import checked_part, vertex_normals
from ._model import (
    linear_from_srgb,
    Model,
    ModelMaterial,
    ModelPart,
    ModelTexture,
    notes_of,
    one_mesh,
)
from ._pictures import Pictures
from ._ply_rows import Lists, read_header, read_rows
from ._polygons import split_polygons


_UV = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))
_COLORS = (
    ("red", "green", "blue"),
    ("diffuse_red", "diffuse_green", "diffuse_blue"),
    ("r", "g", "b"),
)
_OPACITIES = ("alpha", "diffuse_alpha", "a")
_CORNERS = ("vertex_indices", "vertex_index")
_NO_FACES = "has no faces; points alone are not a surface."


def write_points(path: str | os.PathLike, points: np.ndarray, colors: np.ndarray) -> None:
    """Writes points `n 3` with colours `n 3` of bytes as a PLY file, as text."""
    properties = [f"property float {axis}" for axis in "xyz"]
    properties += [f"property uchar {name}" for name in ("red", "green", "blue")]
    header = ["ply", "format ascii 1.0", f"element vertex {len(points)}", *properties, "end_header"]
    rows = (
        f"{x:.7g} {y:.7g} {z:.7g} {r} {g} {b}"
        for (x, y, z), (r, g, b) in zip(points, colors, strict=True)
    )
    text = "".join(f"{line}\n" for line in (*header, *rows))
    replace_file(path, lambda file: file.write(text.encode("ascii")))


def read_points(path: str | os.PathLike) -> np.ndarray:
    """Reads the positions of points or vertices, `n 3`, float64; those not finite are left out."""
    path = pathlib.Path(path)
    data = read_bytes(path)
    columns = read_rows(data, read_header(data, path), path).get("vertex", {})
    if not {"x", "y", "z"} <= columns.keys():
        raise FileError(f"{path} has no vertices with x, y and z.")
    points = np.stack([columns[name].astype(np.float64) for name in "xyz"], axis=1)
    return points[np.all(np.abs(points) <= LARGEST, axis=1)]


def read_ply(path: str | os.PathLike) -> Model:
    """Reads a mesh, with normals, coordinates, colours and textures of vertices or faces."""
    return _Reader(pathlib.Path(path)).model()


class _Reader:
    """The tables of a file."""

    def __init__(self, path: pathlib.Path):
        self.path, self.repairs, self.pictures = path, Counter[str](), Pictures()
        data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
        header = read_header(data, path)
        self.textures, tables = header.textures, read_rows(data, header, path)
        self.columns, self.face_columns = tables.get("vertex", {}), tables.get("face", {})
        self.strips = tables.get("tristrips", {})
        for element in header.elements:
            if element.name not in ("vertex", "face", "tristrips"):
                self.repairs[f"row of the element {element.name[:60]!r}"] += element.rows

    def model(self) -> Model:
        """Returns the whole."""
        numbers = [x for x in self.columns.values() if not isinstance(x, Lists)]
        if not {"x", "y", "z"} <= self.columns.keys() or len(numbers) < len(self.columns):
            raise FileError(f"{self.path} {_NO_FACES}")
        vertices = self._pick("x", "y", "z")
        faces, corners, polygons = self._triangles(vertices)
        if not len(faces):
            raise FileError(f"{self.path} {_NO_FACES}")
        names = ("nx", "ny", "nz")
        part = ModelPart(
            vertices=vertices,
            faces=faces,
            normals=self._pick(*names) if set(names) <= self.columns.keys() else None,
            uv=next((self._pick(*pair) for pair in _UV if set(pair) <= self.columns.keys()), None),
            colors=_colors(self.columns),
        )
        part = self._with_face_values(part, corners, polygons)
        parts, materials = self._textured(part, polygons)
        checked = (checked_part(part, self.path.name, self.repairs) for part in parts)
        parts = tuple(part for part in checked if part is not None)
        if not parts:
            raise FileError(f"{self.path} has no faces with an area.")
        notes = (*notes_of(self.pictures.notes, once=True), *notes_of(self.repairs))
        return one_mesh(self.path.stem, parts, notes=notes)._replace(materials=materials)

    def _pick(self, *names: str) -> np.ndarray:
        return np.stack([self.columns[name] for name in names], axis=1)

    # --- Faces

    def _triangles(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns triangles `n 3`, and for each the places of its corners and its polygon."""
        lists = self._indices(self.face_columns)
        found = [np.zeros((0, 3), np.int64)] * 2
        if lists is not None:
            self.repairs["face with fewer than three corners"] += int(np.sum(lists.counts < 3))
            self._check_range(lists)
            places, dented = split_polygons(lists.counts, lists.values, vertices)
            self.repairs["polygon of very many corners, whose dents are filled"] += dented
            found = [lists.values.take(places), places]
            polygons = np.repeat(np.arange(len(lists.counts)), np.maximum(lists.counts - 2, 0))
        else:
            polygons = np.zeros(0, np.int64)
        strips = self._indices(self.strips)
        if strips is not None:
            faces = _strip_faces(strips)
            return (
                np.concatenate([found[0], faces]),
                np.concatenate([found[1], np.full(faces.shape, -1)]),
                np.concatenate([polygons, np.full(len(faces), -1)]),
            )
        return found[0], found[1], polygons

    def _indices(self, columns: dict) -> Lists | None:
        """Returns the vertices of faces or strips; some programs write them with points."""
        lists = next((columns[x] for x in _CORNERS if x in columns), None)
        if not isinstance(lists, Lists) or lists.values.dtype.kind in "iu":
            return lists if isinstance(lists, Lists) else None
        if not np.all((np.abs(lists.values) < 2**53) & (lists.values % 1 == 0)):
            raise FileError(f"{self.path}: the vertices of a face must be whole numbers.")
        return lists._replace(values=lists.values.astype(np.int64))

    def _check_range(self, lists: Lists) -> None:
        values, count = lists.values, len(self.columns["x"])
        if len(values) and not 0 <= values.min() <= values.max() < count:
            at = int(np.argmax((values < 0) | (values >= count)))
            face = int(np.searchsorted(np.cumsum(lists.counts), at, "right"))
            start = int(np.sum(lists.counts[:face]))
            own = values[start : start + min(int(lists.counts[face]), 20)].tolist()
            raise FileError(f"{self.path}: face {face} has the vertices {own}; there are {count}.")

    # --- Colours and coordinates of faces

    def _with_face_values(
        self, part: ModelPart, corners: np.ndarray, polygons: np.ndarray
    ) -> ModelPart:
        """Gives vertices what their faces have; where faces differ, a vertex becomes several."""
        colors, uv = self._face_colors(part, polygons), self._corner_uv(corners, polygons)
        keys = [part.faces.reshape(-1)]
        if colors is not None:
            keys.append(np.repeat(number_rows(_bits(colors))[1][polygons], 3))
        if uv is not None:
            keys += list(_bits(uv).T)
        if len(keys) == 1:
            return part
        normals = part.normals
        if normals is None:
            # Those of the whole surface, which is to stay smooth.
            normals = vertex_normals(np.asarray(part.vertices, np.float32), part.faces)
        first, numbers = number_rows(np.stack(keys, axis=1).astype(np.int64))
        own = keys[0][first]
        pick = lambda x: None if x is None else x[own]
        return part._replace(
            vertices=part.vertices[own],
            faces=numbers.reshape(-1, 3),
            normals=normals[own],
            uv=pick(part.uv) if uv is None else uv[first],
            colors=pick(part.colors) if colors is None else colors[polygons[first // 3]],
        )

    def _face_colors(self, part: ModelPart, polygons: np.ndarray) -> np.ndarray | None:
        """Returns a colour for each polygon, if there are any and vertices have none."""
        colors = _colors(self.face_columns)
        if colors is None or not len(polygons):
            return None
        if part.colors is not None or np.any(polygons < 0):
            self.repairs["colour of a face, beside those of vertices, or strips"] += len(colors)
            return None
        return colors

    def _corner_uv(self, corners: np.ndarray, polygons: np.ndarray) -> np.ndarray | None:
        """Returns coordinates `3 triangles 2` of all corners, from the lists of faces."""
        lists = self._indices(self.face_columns)
        pairs = self.face_columns.get("texcoord")
        if not isinstance(pairs, Lists) or lists is None:
            return None
        if not np.any(pairs.counts) or np.any(polygons < 0):
            return None
        fits = pairs.counts == 2 * lists.counts
        self.repairs["face without coordinates beside others with"] += int(np.sum(~fits))
        starts = np.cumsum(lists.counts) - lists.counts
        pair_starts = np.cumsum(pairs.counts) - pairs.counts
        owners = np.repeat(polygons, 3)
        at = pair_starts[owners] + 2 * (corners.reshape(-1) - starts[owners])
        at = np.where(fits[owners], at, 0)
        uv = pairs.values[at[:, None] + np.arange(2)]
        return np.where(fits[owners, None], uv, 0).astype(np.float32)

    def _textured(
        self, part: ModelPart, polygons: np.ndarray
    ) -> tuple[list[ModelPart], tuple[ModelMaterial, ...]]:
        """Returns a part for each of the pictures that comments name, and the materials."""
        if not self.textures:
            return [part], ()
        if part.uv is None:
            self.repairs["texture on a mesh without coordinates"] += len(self.textures)
            return [part], ()
        materials = tuple(map(self._material, self.textures))
        number = self.face_columns.get("texnumber")
        if len(materials) == 1 or not isinstance(number, np.ndarray) or np.any(polygons < 0):
            return [part._replace(material=0)], materials
        own, parts = number[polygons], []
        for i in np.unique(own).tolist():
            material = int(i) if 0 <= i < len(materials) else None
            parts.append(part._replace(faces=part.faces[own == i], material=material))
        return parts, materials

    def _material(self, name: str) -> ModelMaterial:
        texels = self.pictures.beside(self.path.parent, name, f"{self.path.name}: TextureFile")
        texture = None if texels is None else ModelTexture(texels, name=name)
        return ModelMaterial(name, base_texture=texture)


def _bits(table: np.ndarray) -> np.ndarray:
    """Returns the bits of single precision, by which equal rows are found."""
    return np.ascontiguousarray(table, np.float32).view(np.uint32)


def _strip_faces(strips: Lists) -> np.ndarray:
    """Returns the triangles of strips; -1 begins another, and every second one is turned."""
    # A break after each list, too.
    ends = np.cumsum(strips.counts)
    order = np.insert(strips.values.astype(np.int64), ends, -1)
    if len(order) < 3:
        return np.zeros((0, 3), np.int64)
    breaks = np.flatnonzero(order == -1)
    faces = np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
    starts = np.concatenate([[0], breaks + 1])
    at = np.arange(len(faces))
    odd = (at - starts[np.searchsorted(starts, at, "right") - 1]) % 2 == 1
    faces[odd] = faces[odd][:, [0, 2, 1]]
    a, b, c = faces.T
    # Strips are joined by triangles without area.
    return faces[np.all(faces >= 0, axis=1) & (a != b) & (b != c) & (c != a)]


def _colors(columns: dict) -> np.ndarray | None:
    """Returns linear colours with opacity; the file's are sRGB."""
    found = next((names for names in _COLORS if set(names) <= columns.keys()), None)
    if found is None:
        return None
    opacity = next((name for name in _OPACITIES if name in columns), None)
    names = [*found, *([opacity] if opacity else [])]
    numbers = [np.asarray(columns[name]) for name in names]
    scale = [np.iinfo(x.dtype).max if x.dtype.kind in "iu" else 1 for x in numbers]
    colors = np.ones((len(numbers[0]), 4), np.float32)
    for i, (x, most) in enumerate(zip(numbers, scale, strict=True)):
        colors[:, i] = _decoded(x, most) if i < 3 else x / np.float32(most)
    return colors


def _decoded(numbers: np.ndarray, most: int) -> np.ndarray:
    """Decodes sRGB numbers; those of a byte by a table."""
    if most == 255:
        return linear_from_srgb(np.arange(256) / 255).astype(np.float32)[numbers]
    return linear_from_srgb(numbers / most)
