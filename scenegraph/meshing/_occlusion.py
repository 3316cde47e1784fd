"""Occlusion: viewpoints that see a point past the solid cells of a grid."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ._opacity_grid import OpacityGrid


# Steps along the diagonal of the grid, and the cells about a point that do not hide it.
_STEPS, _SKIPPED = 128, 3.0


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
    cells: SolidCells, point: Vector, viewpoints: Float[Array, "views 3"]
) -> Bool[Array, " views"]:
    """Returns true for viewpoints with no solid cell between them and a point."""
    size = jnp.asarray(cells.solid.shape)
    first = _SKIPPED * jnp.max(cells.cell)
    # From beyond the cells about the point, as far as the grid's diagonal.
    stride = jnp.linalg.norm(size * cells.cell) / _STEPS
    steps = first + stride * jnp.arange(_STEPS)

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
