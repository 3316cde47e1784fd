"""Lattices of points, and the interpolation between them."""

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int, Vector
from ..numerics import matmul


# Large odd numbers, which scatter neighbours over the whole table.
_PRIMES = tuple(np.uint32(x) for x in (1, 2654435761, 805459861))


@jax.custom_jvp
def simplex_weights(offset: Vector) -> tuple[Float[Array, "4"], Int[Array, "4 3"]]:
    """Computes barycentric weights, and the corners, in a unit cube cut into six tetrahedra."""
    # Kuhn 1960, "Some combinatorial lemmas in topology"; for features Rosu and Behnke 2023,
    # "PermutoSDF". Four corners instead of eight: as continuous as trilinear interpolation, for
    # half the reads. With x_1 >= x_2 >= x_3 the sorted offset, the weights are (1 - x_1, x_1 - x_2,
    # x_2 - x_3, x_3); the corners lead from 0 to 1 along the axes in this order.
    x, y, z = offset
    largest = jnp.stack([(x >= y) & (x >= z), (y > x) & (y >= z), (z > x) & (z > y)])
    smallest = jnp.stack([(x < y) & (x < z), (y <= x) & (y < z), (z <= x) & (z <= y)])
    high, low = jnp.maximum(jnp.maximum(x, y), z), jnp.minimum(jnp.minimum(x, y), z)
    middle = x + y + z - high - low
    weights = jnp.stack([1 - high, high - middle, middle - low, low])
    none = jnp.zeros_like(largest)
    return weights, jnp.stack([none, largest, ~smallest, ~none]).astype(jnp.int32)


@simplex_weights.defjvp
def _simplex_weights_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    # d w_k = d x_k - d x_(k+1), of the tetrahedron whose corners are returned, also where two meet.
    weights, corners = simplex_weights(*primals)
    along = matmul(corners.astype(weights.dtype), tangents[0])
    step = jnp.diff(along)
    change = jnp.concatenate([-step[:1], step[:-1] - step[1:], step[-1:]])
    return (weights, corners), (change, np.zeros(corners.shape, jax.dtypes.float0))


def count_points(resolution: int) -> int:
    """Counts the points of a lattice with `resolution` cells along each axis."""
    return (resolution + 1) ** 3


def table_rows(
    points: Int[Array, "*corners 3"], resolution: int, capacity: int
) -> Int[Array, "*corners"]:
    """Returns the rows of a level's table that hold the features of lattice points."""
    # Müller et al. 2022, "Instant neural graphics primitives", equation 4: points of a level with
    # more than `capacity` of them share rows by the hash (x p_1 ^ y p_2 ^ z p_3) mod capacity.
    x, y, z = jnp.moveaxis(points, -1, 0)
    if count_points(resolution) <= capacity:
        # All points have rows of their own.
        return (x * (resolution + 1) + y) * (resolution + 1) + z
    a, b, c = (axis.astype(jnp.uint32) * p for axis, p in zip((x, y, z), _PRIMES, strict=True))
    return ((a ^ b ^ c) & (capacity - 1)).astype(jnp.int32)
