"""Repairs of meshes from files; each is counted."""

from collections import Counter

import numpy as np

from ..io import are_usable, FileError, LARGEST
from ._faces import blocks, flat_and_repeated
from ._model import ModelPart


def checked_part(part: ModelPart, where: str, repairs: Counter[str]) -> ModelPart | None:
    """Refuses impossible indices and vertices, repairs the rest; `None` if nothing remains."""
    # A number that takes no memory, however often it is there.
    owners = np.broadcast_to(np.int64(0), len(part.faces))
    return checked_parts(part, owners, where, repairs).get(0)


def checked_parts(
    whole: ModelPart, owners: np.ndarray, where: str, repairs: Counter[str]
) -> dict[int, ModelPart]:
    """Checks parts that lie one after the other in shared arrays, and takes them apart.

    `owners` are the numbers of the faces' parts, ascending. A part without a face is left out.
    """
    _check_places(whole, where)
    is_useful = _are_useful(whole.faces, whole.vertices, repairs)
    vertex_owners = np.broadcast_to(np.int64(0), len(whole.vertices))
    if len(owners) and owners[-1]:
        vertex_owners = vertex_owners.copy()
        vertex_owners[whole.faces] = owners[:, None]
    faces, there = (x if np.all(is_useful) else x[is_useful] for x in (whole.faces, owners))
    repairs["mesh part without faces"] += max(_count_runs(owners), 1) - _count_runs(there)
    if not len(there):
        return {}
    whole, faces, vertex_owners = _own_vertices(whole, faces, vertex_owners)
    whole = whole._replace(
        vertices=np.ascontiguousarray(whole.vertices, np.float32),
        faces=np.ascontiguousarray(faces, np.int32),
        normals=_unit_normals(whole, faces, repairs),
        uv=_finite(whole.uv, "coordinate pair that is not finite", repairs),
        colors=_between(whole.colors, repairs),
    )
    return {0: whole} if there[-1] == 0 else _apart(whole, there, vertex_owners)


def _count_runs(numbers: np.ndarray) -> int:
    """Returns how many different numbers there are among ascending ones."""
    if len(numbers) and numbers[0] == numbers[-1]:
        return 1
    return int(np.count_nonzero(numbers[1:] != numbers[:-1])) + bool(len(numbers))


def _apart(whole: ModelPart, owners: np.ndarray, vertex_owners: np.ndarray) -> dict[int, ModelPart]:
    """Takes parts that lie one after the other apart."""
    ends, vertex_ends = (np.cumsum(np.bincount(x)) for x in (owners, vertex_owners))
    starts = np.concatenate([[0], vertex_ends])
    faces = (whole.faces - starts[owners][:, None]).astype(np.int32)
    parts, start, end = {}, 0, 0
    for number, (first, last, face_end) in enumerate(
        zip(starts.tolist(), vertex_ends.tolist(), ends.tolist(), strict=False)
    ):
        start, end = end, face_end
        if end > start:
            parts[number] = ModelPart(
                vertices=whole.vertices[first:last],
                faces=faces[start:end],
                normals=None if whole.normals is None else whole.normals[first:last],
                uv=None if whole.uv is None else whole.uv[first:last],
                colors=None if whole.colors is None else whole.colors[first:last],
                smooth=whole.smooth,
            )
    return parts


def _check_places(part: ModelPart, where: str) -> None:
    """Refuses indices of vertices that are not there, and vertices that are nowhere."""
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


def _own_vertices(
    part: ModelPart, faces: np.ndarray, owners: np.ndarray
) -> tuple[ModelPart, np.ndarray, np.ndarray]:
    """Leaves out the vertices of others, where parts use less than half of what they have."""
    is_used = np.zeros(len(part.vertices), bool)
    # Of most meshes, the first corners alone use more than half.
    for corners in faces.T:
        for some in blocks(corners):
            is_used[some.astype(np.intp)] = True
            if 2 * np.count_nonzero(is_used) >= len(owners) and not owners[-1]:
                return part, faces, owners
    most = 2 * np.bincount(owners[is_used], minlength=owners[-1] + 1) >= np.bincount(owners)
    if np.all(most):
        return part, faces, owners
    is_used |= most[owners]
    used = np.flatnonzero(is_used)
    new = np.cumsum(is_used) - 1
    pick = lambda x: None if x is None else x[used]
    return (
        part._replace(
            vertices=part.vertices[used],
            normals=pick(part.normals),
            uv=pick(part.uv),
            colors=pick(part.colors),
        ),
        new[faces],
        owners[used],
    )


def _are_useful(faces: np.ndarray, vertices: np.ndarray, repairs: Counter[str]) -> np.ndarray:
    """Returns which faces have an area, and are no further copies of a face."""
    # Of places as they will be kept.
    flat, again = flat_and_repeated(faces, np.asarray(vertices, np.float32))
    twice = again & ~flat
    repairs["face without area"] += int(np.count_nonzero(flat))
    repairs["face that is there twice"] += int(np.count_nonzero(twice))
    return ~(flat | twice)


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
