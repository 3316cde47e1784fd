"""The surface of a grid of opacities, as triangles."""

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ..io import import_extra
from ..models import checked_part, ModelPart, vertex_normals
from ._opacity_grid import OpacityGrid
from ._options import MeshOptions


# The radius, in cells, of the ball that does not fit through holes of a surface.
_BALL = 2.5


class Triangles(NamedTuple):
    """A mesh with unit normals outwards at its vertices."""

    vertices: np.ndarray  # n 3
    faces: np.ndarray  # m 3
    normals: np.ndarray  # n 3


def without_details(grid: OpacityGrid, options: MeshOptions) -> OpacityGrid:
    """Fills hollows that nobody sees and leaves out small parts; one more cell on every side."""
    opacity = np.pad(grid.opacity, 1)
    highest = float(opacity.max())
    if highest <= options.level:
        raise ValueError(
            f"there is no surface at level {options.level:g}: the most opaque of "
            f"{grid.opacity.size} cells has opacity {highest:.3g} in a layer of "
            f"{grid.thickness:.3g}. Pass a lower level."
        )
    fill_hollows(opacity, options.level)
    drop_small_parts(opacity, options.level, options.min_part)
    return grid._replace(opacity=opacity, lower=grid.lower - grid.cell)


def find_surface(grid: OpacityGrid, level: float) -> Triangles:
    """Returns the triangles at a level of opacity."""
    measure = import_extra("skimage.measure", "mesh", "marching cubes")
    places, faces, _, _ = measure.marching_cubes(grid.opacity, level, gradient_direction="ascent")
    # Opacities are those of the middles of cells.
    return _checked(grid.lower + (places + 0.5) * grid.cell, faces, grid)


def without_hidden(mesh: Triangles, seen: np.ndarray) -> Triangles:
    """Leaves out faces none of whose vertices is seen, and vertices without a face."""
    faces = mesh.faces[np.any(seen[mesh.faces], axis=1)]
    used = np.zeros(len(mesh.vertices), bool)
    used[faces] = True
    numbers = (np.cumsum(used) - 1).astype(faces.dtype)
    return Triangles(mesh.vertices[used], numbers[faces], mesh.normals[used])


def fill_hollows(opacity: np.ndarray, level: float) -> None:
    """Makes solid what is below the level, but where no small ball from outside can roll to."""
    # Outside of the grid there is space for balls.
    around = 2 * math.ceil(_BALL) + 1
    empty = np.pad(opacity < level, around, constant_values=True)
    # The middles of balls that fit into what is empty, and those that come from outside.
    # The space that balls sweep: what is empty, eroded by their radius, and dilated again.
    labels = _labels(_distance(empty) > _BALL)
    comes = labels == labels[0, 0, 0]
    reached = _distance(~comes) <= _BALL
    inside = (slice(around, -around),) * 3
    opacity[(empty & ~reached)[inside]] = 1.0


def drop_small_parts(opacity: np.ndarray, level: float, share: float) -> None:
    """Empties connected parts above the level with less than a share of the largest's cells."""
    labels = _labels(opacity >= level, corners=True)
    cells = np.bincount(labels.reshape(-1))
    cells[0] = 0
    opacity[(cells < share * cells.max())[labels] & (labels > 0)] = 0.0


def _distance(inside: np.ndarray) -> np.ndarray:
    """Returns the distance of every cell inside from the nearest one outside, in cells."""
    from scipy import ndimage

    return np.asarray(ndimage.distance_transform_edt(inside))


def _labels(inside: np.ndarray, corners: bool = False) -> np.ndarray:
    """Numbers connected parts from one on; cells outside have zero."""
    from scipy import ndimage

    structure = ndimage.generate_binary_structure(3, 3 if corners else 1)
    labels: Any = ndimage.label(inside, structure)
    return labels[0]


def simplify(mesh: Triangles, grid: OpacityGrid, faces: int | None) -> Triangles:
    """Returns a mesh of at most so many faces that is close to another."""
    if faces is None or len(mesh.faces) <= faces:
        return mesh
    package = import_extra("fast_simplification", "mesh", "a mesh of fewer faces")
    vertices, corners = package.simplify(
        mesh.vertices.astype(np.float32), mesh.faces.astype(np.int32), target_count=faces
    )
    return _checked(vertices, corners, grid)


def _checked(vertices: np.ndarray, faces: np.ndarray, grid: OpacityGrid) -> Triangles:
    """Leaves out faces without area, and those that are there twice; adds normals."""
    part = checked_part(ModelPart(vertices, np.asarray(faces)), "the surface", Counter())
    if part is None:
        raise ValueError("the surface has no faces; pass another level or a higher resolution.")
    normals = vertex_normals(part.vertices, part.faces)
    # Faces of marching cubes are uneven: where the blurred opacity falls off is smoother.
    gradients = _gradients(grid, part.vertices)
    length = np.linalg.norm(gradients, axis=1, keepdims=True)
    agree = (length > 0) & (np.sum(gradients * normals, axis=1, keepdims=True) > 0)
    normals = np.where(agree, gradients / np.where(length > 0, length, 1), normals)
    return Triangles(part.vertices, part.faces, normals.astype(np.float32))


def _gradients(grid: OpacityGrid, points: np.ndarray) -> np.ndarray:
    """Returns the direction in which the opacity falls off, `n 3`, of any length."""
    from scipy import ndimage

    blurred = ndimage.gaussian_filter(np.pad(grid.opacity, 2), 1.0)
    # Cells have their middles at a half, and there are two more in front: -1/2 + 2.
    places = ((points - grid.lower) / grid.cell + 1.5).T
    gradients = []
    for axis in range(3):
        rising = np.gradient(blurred, float(grid.cell[axis]), axis=axis)
        gradients.append(-ndimage.map_coordinates(rising, places, order=1, mode="nearest"))
    return np.stack(gradients, axis=1)
