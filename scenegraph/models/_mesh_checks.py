"""Repairs of meshes from files; each is counted."""

from collections import Counter

import numpy as np

from ..io import are_usable, FileError, LARGEST
from ._faces import flat_faces, repeated_faces
from ._model import ModelPart


def checked_part(part: ModelPart, where: str, repairs: Counter[str]) -> ModelPart | None:
    """Refuses impossible indices and vertices, repairs the rest; `None` if nothing remains."""
    if len(part.faces) and not 0 <= part.faces.min() <= part.faces.max() < len(part.vertices):
        wrong = (part.faces < 0) | (part.faces >= len(part.vertices))
        face = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise FileError(
            f"{where}: face {face} has the vertices {part.faces[face].tolist()}; there are "
            f"{len(part.vertices)}."
        )
    if not are_usable(part.vertices):
        usable = np.all(np.abs(part.vertices) <= LARGEST, axis=1)
        raise FileError(
            f"{where}: {np.sum(~usable)} of {len(usable)} vertices are not finite, or above "
            f"{LARGEST:g}; the first is vertex {int(np.argmin(usable))}."
        )
    faces = _without_degenerate(part.faces, part.vertices, repairs)
    if not len(faces):
        repairs["mesh part without faces"] += 1
        return None
    part, faces = _own_vertices(part, faces)
    return part._replace(
        vertices=np.ascontiguousarray(part.vertices, np.float32),
        faces=np.ascontiguousarray(faces, np.int32),
        normals=_unit_normals(part, faces, repairs),
        uv=_finite(part.uv, "coordinate pair that is not finite", repairs),
        colors=_between(part.colors, repairs),
    )


def _own_vertices(part: ModelPart, faces: np.ndarray) -> tuple[ModelPart, np.ndarray]:
    """Leaves out the vertices of others, where several parts share one array."""
    is_used = np.zeros(len(part.vertices), bool)
    is_used[faces.reshape(-1)] = True
    used = np.flatnonzero(is_used)
    if 2 * len(used) >= len(part.vertices):
        return part, faces
    new = np.cumsum(is_used) - 1
    pick = lambda x: None if x is None else x[used]
    return part._replace(
        vertices=part.vertices[used],
        normals=pick(part.normals),
        uv=pick(part.uv),
        colors=pick(part.colors),
    ), new[faces]


def _without_degenerate(
    faces: np.ndarray, vertices: np.ndarray, repairs: Counter[str]
) -> np.ndarray:
    """Leaves out faces without area, and further copies of a face."""
    # Of places as they will be kept.
    flat = flat_faces(faces, np.asarray(vertices, np.float32))
    twice = repeated_faces(faces) & ~flat
    repairs["face without area"] += int(np.sum(flat))
    repairs["face that is there twice"] += int(np.sum(twice))
    return faces[~(flat | twice)] if np.any(flat | twice) else faces


def _unit_normals(part: ModelPart, faces: np.ndarray, repairs: Counter[str]) -> np.ndarray | None:
    """Makes normals of length one; where there is none, that of the faces."""
    if part.normals is None:
        return None
    normals = np.asarray(part.normals)
    # |n|^2, of numbers that are squared without overflow
    with np.errstate(over="ignore", invalid="ignore"):
        squared = np.einsum("ij,ij->i", normals, normals, dtype=np.float64)
        if np.all(np.abs(squared - 1) < 1e-6):
            return np.ascontiguousarray(normals, np.float32)
    normals = np.asarray(normals, np.float64)
    normals = np.where(np.abs(normals) <= LARGEST, normals, 0)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    missing = ~(length[:, 0] > 1e-12)
    unit = normals / np.where(missing[:, None], 1, length)
    # Vertices of no face need none.
    used = np.zeros(len(normals), bool)
    used[faces] = True
    if count := int(np.sum(missing & used)):
        repairs["normal of no length"] += count
    if np.any(missing):
        unit[missing] = vertex_normals(part.vertices, faces)[missing]
    return unit.astype(np.float32)


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Computes unit normals of vertices, means of faces' by area; z where there is none."""
    a, b, c = (vertices.take(corner, axis=0).astype(np.float64) for corner in faces.T)
    # (b - a) x (c - a) is as long as twice the area: the sum is a mean by area.
    cross, owners = np.cross(b - a, c - a), faces.T.reshape(-1)
    sums = (np.bincount(owners, np.tile(x, 3), len(vertices)) for x in cross.T)
    total = np.stack(list(sums), axis=1)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0, total / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])


def _finite(array: np.ndarray | None, what: str, repairs: Counter[str]) -> np.ndarray | None:
    if array is None:
        return None
    if are_usable(array):
        return np.ascontiguousarray(array, np.float32)
    usable = np.all(np.abs(array) <= LARGEST, axis=1)
    repairs[what] += int(np.sum(~usable))
    return np.where(usable[:, None], array, 0).astype(np.float32)


def _between(colors: np.ndarray | None, repairs: Counter[str]) -> np.ndarray | None:
    """Clips colours and opacities to [0, 1]."""
    colors = _finite(colors, "colour that is not finite", repairs)
    if colors is None or (np.min(colors) >= 0 and np.max(colors) <= 1):
        return colors
    return np.clip(colors, 0, 1)


def fan_of(order: np.ndarray) -> np.ndarray:
    """Returns the triangles of a fan, or of a polygon, about its first corner."""
    # (0, i, i + 1) for i = 1 ... n - 2
    first = np.full(max(len(order) - 2, 0), order[0]) if len(order) else order
    return np.stack([first, order[1:-1], order[2:]], axis=1)
