"""Occlusion: viewpoints that see a point past the solid cells of a grid."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Scalar, Vector
from ._opacity_grid import OpacityGrid


# Steps along the diagonal of the grid, and the cells about a point that do not hide it.
_STEPS, _SKIPPED = 128, 3.0
# Vertices that are looked at together; how far from each, in cells, outwards.
_BLOCK, _OUTWARDS = 2**14, 1.5
# Of light that is seen, and the opacity of a layer that counts as wholly opaque.
_HALF, _OPAQUE = 0.5, 1 - 1e-6


class SolidCells(NamedTuple):
    """Cells that nothing is seen through."""

    solid: Bool[Array, "x y z"]
    lower: Vector
    cell: Vector


def solid_cells(grid: OpacityGrid, level: float) -> SolidCells:
    """Returns the cells at or above a level."""
    as_vector = lambda x: jnp.asarray(x, jnp.float32)
    return SolidCells(
        jnp.asarray(grid.opacity >= level), as_vector(grid.lower), as_vector(grid.cell)
    )


def is_seen(
    cells: SolidCells,
    point: Vector,
    viewpoints: Float[Array, "views 3"],
    skipped: float = _SKIPPED,
    count: int = _STEPS,
) -> Bool[Array, " views"]:
    """Returns true for viewpoints with no solid cell between them and a point."""
    size = jnp.asarray(cells.solid.shape)
    first = skipped * jnp.max(cells.cell)
    # From beyond the cells about the point, as far as the grid's diagonal.
    stride = jnp.linalg.norm(size * cells.cell) / count
    steps = first + stride * jnp.arange(count)

    def one(viewpoint: Vector) -> Bool[Array, ""]:
        distance = jnp.maximum(jnp.linalg.norm(viewpoint - point), 1e-12)
        ahead = (viewpoint - point) / distance
        return ~jnp.any(jax.vmap(lambda t: is_solid(t, ahead) & (t < distance))(steps))

    def is_solid(t: Scalar, ahead: Vector) -> Bool[Array, ""]:
        index = jnp.floor((point + t * ahead - cells.lower) / cells.cell).astype(jnp.int32)
        inside = jnp.all((index >= 0) & (index < size))
        x, y, z = jnp.clip(index, 0, size - 1)
        return inside & cells.solid[x, y, z]

    return jax.vmap(one)(viewpoints)


class _Medium(NamedTuple):
    """Extinction between a surface and viewpoints, in cells."""

    extinction: Float[Array, "x y z"]  # for each unit of length
    lower: Vector
    cell: Vector


def are_seen(
    grid: OpacityGrid, points: np.ndarray, normals: np.ndarray, viewpoints: np.ndarray
) -> np.ndarray:
    """Returns which points of a surface, with normals outwards, some viewpoint sees.

    At least half of their light gets there. The shells of fitted fields have thin places, through
    which a little comes of the walls within.
    """
    # opacity = 1 - exp(-extinction * thickness)
    extinction = -np.log1p(-np.minimum(grid.opacity, _OPAQUE)) / grid.thickness
    as_array = lambda x: jnp.asarray(x, jnp.float32)
    medium = _Medium(as_array(extinction), as_array(grid.lower), as_array(grid.cell))
    outside = points + _OUTWARDS * grid.width * normals
    count = math.ceil(math.dist((0, 0, 0), grid.opacity.shape))
    seen = np.zeros(len(points), bool)
    for viewpoint in np.asarray(viewpoints, np.float32):
        left = np.flatnonzero(~seen)
        for start in range(0, len(left), _BLOCK):
            block = left[start : start + _BLOCK]
            padded = np.zeros((_BLOCK, 3), np.float32)
            padded[: len(block)] = outside[block]
            light = _transmittances(medium, jnp.asarray(padded), jnp.asarray(viewpoint), count)
            seen[block] = np.asarray(light)[: len(block)] >= _HALF
    return seen


@eqx.filter_jit
def _transmittances(
    medium: _Medium, points: Float[Array, "points 3"], viewpoint: Vector, count: int
) -> Float[Array, " points"]:
    """Returns the part of the light of points that reaches a viewpoint."""
    size = jnp.asarray(medium.extinction.shape)
    # As far as the grid's diagonal.
    stride = jnp.linalg.norm(size * medium.cell) / count
    steps = stride * (jnp.arange(count) + 0.5)

    def one(point: Vector) -> Scalar:
        distance = jnp.maximum(jnp.linalg.norm(viewpoint - point), 1e-12)
        ahead = (viewpoint - point) / distance
        places = point + steps[:, None] * ahead
        index = jnp.floor((places - medium.lower) / medium.cell).astype(jnp.int32)
        between = jnp.all((index >= 0) & (index < size), axis=1) & (steps < distance)
        x, y, z = jnp.clip(index, 0, size - 1).T
        # exp(-sum of extinction * stride)
        return jnp.exp(-stride * jnp.sum(jnp.where(between, medium.extinction[x, y, z], 0)))

    return jax.vmap(one)(points)
