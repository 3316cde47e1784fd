"""Repairs of meshes from files; each is counted."""

from collections import Counter

import numpy as np

from ..io import are_usable, FileError, LARGEST
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
        faces=faces.astype(np.int32),
        normals=_unit_normals(part, faces, repairs),
        uv=_finite(part.uv, "coordinate pair that is not finite", repairs),
        colors=_between(part.colors, repairs),
    )


def _own_vertices(part: ModelPart, faces: np.ndarray) -> tuple[ModelPart, np.ndarray]:
    """Leaves out the vertices of others, where several parts share one array."""
    used = np.unique(faces)
    if 2 * len(used) >= len(part.vertices):
        return part, faces
    new = np.zeros(len(part.vertices), np.int64)
    new[used] = np.arange(len(used))
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
    a, b, c = np.moveaxis(np.asarray(vertices, np.float32).astype(np.float64)[faces], 1, 0)
    whole = faces[np.any(np.cross(b - a, c - a) != 0, axis=1)]
    repairs["face without area"] += len(faces) - len(whole)
    if not len(whole):
        return whole
    # The same corners in the same sense, whichever is first.
    first = np.argmin(whole, axis=1)[:, None]
    turned = np.take_along_axis(whole, (first + np.arange(3)) % 3, axis=1)
    unique = np.sort(np.unique(turned, axis=0, return_index=True)[1])
    repairs["face that is there twice"] += len(whole) - len(unique)
    return whole[unique]


def _unit_normals(part: ModelPart, faces: np.ndarray, repairs: Counter[str]) -> np.ndarray | None:
    """Makes normals of length one; where there is none, that of the faces."""
    if part.normals is None:
        return None
    normals = np.asarray(part.normals, np.float64)
    normals = np.where(np.abs(normals) <= LARGEST, normals, 0)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    missing = ~(length[:, 0] > 1e-12)
    unit = normals / np.where(missing[:, None], 1, length)
    # Vertices of no face need none.
    used = np.zeros(len(normals), bool)
    used[faces] = True
    if count := int(np.sum(missing & used)):
        repairs["normal of no length"] += count
    unit[missing] = vertex_normals(part.vertices, faces)[missing]
    return unit.astype(np.float32)


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Computes unit normals of vertices, means of faces' by area; z where there is none."""
    corners = vertices.astype(np.float64)[faces]
    # (b - a) x (c - a) is as long as twice the area: the sum is a mean by area.
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    total = np.zeros((len(vertices), 3))
    for corner in range(3):
        np.add.at(total, faces[:, corner], cross)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.where(length > 0, total / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])


def _finite(array: np.ndarray | None, what: str, repairs: Counter[str]) -> np.ndarray | None:
    if array is None:
        return None
    usable = np.all(np.abs(array) <= LARGEST, axis=1)
    repairs[what] += int(np.sum(~usable))
    return np.where(usable[:, None], array, 0).astype(np.float32)


def _between(colors: np.ndarray | None, repairs: Counter[str]) -> np.ndarray | None:
    """Clips colours and opacities to [0, 1]."""
    colors = _finite(colors, "colour that is not finite", repairs)
    return None if colors is None else np.clip(colors, 0, 1)


def fan_of(order: np.ndarray) -> np.ndarray:
    """Returns the triangles of a fan, or of a polygon, about its first corner."""
    # (0, i, i + 1) for i = 1 ... n - 2
    first = np.full(max(len(order) - 2, 0), order[0]) if len(order) else order
    return np.stack([first, order[1:-1], order[2:]], axis=1)
