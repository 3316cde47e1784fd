"""Lattices of points, and how a place between the points is shared among them."""

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int, Vector


# Large odd numbers, which scatter neighbours over the whole table.
_PRIMES = tuple(np.uint32(x) for x in (1, 2654435761, 805459861))


@jax.custom_jvp
def simplex(offset: Vector) -> tuple[Float[Array, "4"], Int[Array, "4 3"]]:
    """Barycentric weights in a cube that is cut into six tetrahedra.

    Four corners instead of eight: as continuous as trilinear interpolation, for half the reads.
    Derivatives are those of the tetrahedron whose corners are returned, also where two meet.

    **Arguments:**

    - `offset`: between 0 and 1 along each axis.

    **Returns:**

    `(weights, corners)`: weights that sum to one, and the corners of the tetrahedron, of zeros
    and ones.

    **Source:** Kuhn 1960, "Some combinatorial lemmas in topology"; for features Rosu and Behnke
    2023, "PermutoSDF".
    """
    x, y, z = offset
    largest = jnp.stack([(x >= y) & (x >= z), (y > x) & (y >= z), (z > x) & (z > y)])
    smallest = jnp.stack([(x < y) & (x < z), (y <= x) & (y < z), (z <= x) & (z <= y)])
    high, low = jnp.maximum(jnp.maximum(x, y), z), jnp.minimum(jnp.minimum(x, y), z)
    middle = x + y + z - high - low
    weights = jnp.stack([1 - high, high - middle, middle - low, low])
    none = jnp.zeros_like(largest)
    return weights, jnp.stack([none, largest, ~smallest, ~none]).astype(jnp.int32)


@simplex.defjvp
def _simplex_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    """Within a tetrahedron, corners come one after the other along the axes: a corner's weight is
    how far the place is along the axis that leads to it, less that along the next."""
    weights, corners = simplex(*primals)
    along = corners.astype(weights.dtype) @ tangents[0]
    led = jnp.diff(along)
    change = jnp.concatenate([-led[:1], led[:-1] - led[1:], led[-1:]])
    return (weights, corners), (change, np.zeros(corners.shape, jax.dtypes.float0))


def points_of(resolution: int) -> int:
    """How many points a lattice has.

    **Arguments:**

    - `resolution`: cells along each axis.

    **Returns:**

    The cube of one more.
    """
    return (resolution + 1) ** 3


def rows_of(
    points: Int[Array, "*corners 3"], resolution: int, capacity: int
) -> Int[Array, "*corners"]:
    """In which row of a level's table the features of lattice points are.

    **Arguments:**

    - `points`: between 0 and `resolution` along each axis.
    - `resolution`: cells along each axis; static.
    - `capacity`: rows the level may have, a power of two; static. Where there are more points, they
      share rows by a hash.

    **Returns:**

    Row numbers.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", equation 4.
    """
    x, y, z = jnp.moveaxis(points, -1, 0)
    if points_of(resolution) <= capacity:
        return (x * (resolution + 1) + y) * (resolution + 1) + z
    a, b, c = (axis.astype(jnp.uint32) * p for axis, p in zip((x, y, z), _PRIMES, strict=True))
    return ((a ^ b ^ c) & (capacity - 1)).astype(jnp.int32)
