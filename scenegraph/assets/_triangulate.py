"""Triangles of analytic shapes, with their normals and coordinates."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..models import ModelPart
from ..numerics import tangents
from ..shapes import (
    AbstractShape,
    Box,
    Capsule,
    Cylinder,
    Disk,
    Ellipsoid,
    Plane,
    Rectangle,
    Sphere,
)


def triangulate(shape: AbstractShape, segments: int, plane_size: float) -> ModelPart | None:
    """Returns triangles of a shape, `segments` around what is round; `None` for others."""
    if isinstance(shape, Plane):
        return _plane(shape, plane_size)
    for kind, make in _SHAPES.items():
        if isinstance(shape, kind):
            return make(shape, segments)
    return None


def _sphere(sphere: Sphere, segments: int) -> ModelPart:
    azimuth, elevation = np.meshgrid(_around(segments), _quarter(segments, -1, 1))
    normals = _outward(azimuth, elevation)
    vertices = np.asarray(sphere.center) + float(sphere.radius) * normals
    return _grid(vertices, normals, np.stack([azimuth, elevation], axis=-1))


def _ellipsoid(ellipsoid: Ellipsoid, segments: int) -> ModelPart:
    azimuth, elevation = np.meshgrid(_around(segments), _quarter(segments, -1, 1))
    unit, radii = _outward(azimuth, elevation), np.asarray(ellipsoid.radii)
    normals = unit / radii
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    vertices = np.asarray(ellipsoid.center) + radii * unit
    return _grid(vertices, normals, np.stack([azimuth, elevation], axis=-1))


def _capsule(capsule: Capsule, segments: int) -> ModelPart:
    """Turns a profile of two quarters of a circle about the segment."""
    start, end, radius = map(np.asarray, (capsule.start, capsule.end, capsule.radius))
    length = float(np.linalg.norm(end - start))
    axis = (end - start) / length if length > 0 else np.array([0.0, 0.0, 1.0])
    u, v = map(np.asarray, tangents(jnp.asarray(axis, float)))
    halves = [_quarter(segments, -1, 0), _quarter(segments, 0, 1)]
    azimuth, elevation = np.meshgrid(_around(segments), np.concatenate(halves))
    upper = (np.arange(len(elevation)) >= len(halves[0]))[:, None]
    normals = _outward(azimuth, elevation) @ np.stack([u, v, axis])
    vertices = np.where(upper[..., None], end, start) + radius * normals
    along = radius * np.sin(elevation) + np.where(upper, length, 0)
    return _grid(vertices, normals, np.stack([azimuth, along], axis=-1))


def _cylinder(cylinder: Cylinder, segments: int) -> ModelPart:
    center, radius = np.asarray(cylinder.center), float(cylinder.radius)
    half = float(cylinder.height) / 2
    azimuth, height = np.meshgrid(_around(segments), [-half, half])
    normals = _outward(azimuth, 0 * azimuth)
    offsets = radius * normals + height[..., None] * np.array([0.0, 0.0, 1.0])
    side = _grid(center + offsets, normals, np.stack([azimuth, height], axis=-1))
    ends = [_fan(center + [0, 0, z], radius, segments, z < 0) for z in (half, -half)]
    return _joined(side, *ends)


def _disk(disk: Disk, segments: int) -> ModelPart:
    return _fan(np.asarray(disk.center), float(disk.radius), segments, False)


def _fan(center: np.ndarray, radius: float, segments: int, below: bool) -> ModelPart:
    """Returns a disk, turned upwards or downwards; its coordinates are x and y from the centre."""
    ring = radius * _outward(_around(segments)[:-1], np.zeros(segments))
    offsets = np.concatenate([np.zeros((1, 3)), ring])
    first = np.arange(segments)
    faces = np.stack([0 * first, 1 + first, 1 + (first + 1) % segments], axis=1)
    normals = np.tile([0.0, 0.0, -1.0 if below else 1.0], (len(offsets), 1))
    return _part(center + offsets, faces[:, ::-1] if below else faces, normals, offsets[:, :2])


def _rectangle(rectangle: Rectangle, segments: int) -> ModelPart:
    del segments
    uv = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * np.asarray(rectangle.size) / 2
    vertices = np.asarray(rectangle.center) + np.pad(uv, [(0, 0), (0, 1)])
    return _square(vertices, uv, np.array([0.0, 0.0, 1.0]))


def _plane(plane: Plane, size: float) -> ModelPart:
    """Returns a square about the plane's point."""
    normal = np.asarray(plane.normal, float)
    normal = normal / np.linalg.norm(normal)
    u, v = map(np.asarray, tangents(jnp.asarray(normal, float)))
    uv = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * size / 2
    return _square(np.asarray(plane.point) + uv @ np.stack([u, v]), uv, normal)


def _box(box: Box, segments: int) -> ModelPart:
    del segments
    lower, upper = np.asarray(box.lower, float), np.asarray(box.upper, float)
    faces = []
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        for side, limit in ((-1, lower), (1, upper)):
            # Counter-clockwise about +axis for (x, y) and (y, z), about -axis for (x, z).
            corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
            corners = corners if (side > 0) == (axis != 1) else corners[::-1]
            vertices = np.empty((4, 3))
            vertices[:, others] = np.where(corners, upper[others], lower[others])
            vertices[:, axis] = limit[axis]
            faces.append(_square(vertices, vertices[:, others], side * np.eye(3)[axis]))
    return _joined(*faces)


_SHAPES: dict[type, Callable[[Any, int], ModelPart]] = {
    Sphere: _sphere,
    Ellipsoid: _ellipsoid,
    Capsule: _capsule,
    Cylinder: _cylinder,
    Disk: _disk,
    Rectangle: _rectangle,
    Box: _box,
}


def _around(segments: int) -> np.ndarray:
    return np.linspace(-np.pi, np.pi, segments + 1)


def _quarter(segments: int, low: int, high: int) -> np.ndarray:
    """Returns angles of elevation between quarters of a circle."""
    steps = max(1, segments * (high - low) // 4)
    return np.linspace(low, high, steps + 1) * np.pi / 2


def _outward(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    flat = np.cos(elevation)
    parts = [flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)]
    return np.stack(parts, axis=-1)


def _grid(vertices: np.ndarray, normals: np.ndarray, uv: np.ndarray) -> ModelPart:
    """Joins rows of vertices, counter-clockwise seen from outside; leaves out faces at poles."""
    rows, columns = vertices.shape[:2]
    a = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    # Each cell of the grid is (a, b, c, d), from the lower left corner on, counter-clockwise.
    b, c, d = a + 1, a + columns + 1, a + columns
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    flat = vertices.reshape(-1, 3)
    corners = flat[faces]
    sides = [np.linalg.norm(corners[:, i] - corners[:, i - 1], axis=1) for i in range(3)]
    faces = faces[np.min(sides, axis=0) > 1e-9 * np.max(sides)]
    return _part(flat, faces, normals.reshape(-1, 3), uv.reshape(-1, 2))


def _square(vertices: np.ndarray, uv: np.ndarray, normal: np.ndarray) -> ModelPart:
    return _part(vertices, np.array([[0, 1, 2], [0, 2, 3]]), np.tile(normal, (4, 1)), uv)


def _part(
    vertices: np.ndarray, faces: np.ndarray, normals: np.ndarray, uv: np.ndarray
) -> ModelPart:
    single = [np.asarray(x, np.float32) for x in (vertices, normals, uv)]
    return ModelPart(single[0], np.asarray(faces, np.int32), single[1], single[2])


def _joined(*parts: ModelPart) -> ModelPart:
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    faces = [part.faces + start for part, start in zip(parts, starts, strict=True)]
    vertices, normals, uv = (
        np.concatenate([np.asarray(part[i]) for part in parts])
        for i in map(ModelPart._fields.index, ("vertices", "normals", "uv"))
    )
    return _part(vertices, np.concatenate(faces), normals, uv)
