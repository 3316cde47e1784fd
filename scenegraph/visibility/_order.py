"""An order of points in which neighbours are near to each other."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, UInt32
from ..numerics import safe_norm, safe_normalise, tangents
from ..rays import Ray


def order_rays(rays: Ray) -> Int[Array, " rays"]:
    """Sorts rays so that those that begin near to each other in like directions are together."""
    extent = jnp.max(jnp.max(rays.origin, axis=0) - jnp.min(rays.origin, axis=0))
    ahead = rays.origin + jnp.maximum(extent, 1) * safe_normalise(rays.direction)
    return order_by_place(ahead, jnp.ones(rays.near.shape, bool))


def order_shadow_rays(rays: Ray, used: Bool[Array, " rays"]) -> Int[Array, " rays"]:
    """Sorts shadow rays so that those that go together come together.

    Rays that meet at a lamp are sorted by direction, parallel ones by where they pass.
    """
    ends = rays.origin + jnp.minimum(rays.far, 1e6)[:, None] * rays.direction
    spread = lambda x: jnp.max(jnp.where(used[:, None], jnp.abs(x - _mean(x, used)), 0))
    units = safe_normalise(rays.direction)
    across = jnp.stack(tangents(safe_normalise(_mean(units, used))), axis=1)
    away = (rays.origin - _mean(rays.origin, used)) @ across
    distance = safe_norm(away)[:, None]
    # Points as far as the horizon must not squeeze all others into one cell.
    squeezed = away / (distance + _mean(distance, used))
    meet = spread(ends) < spread(rays.origin)
    return order_by_place(jnp.where(meet, _unfold(units), squeezed), used)


def _unfold(units: Float[Array, "rays 3"]) -> Float[Array, "rays 2"]:
    """Maps the sphere to a square: the octahedron's lower half is folded out at its corners."""
    x, y, z = jnp.moveaxis(units / jnp.sum(jnp.abs(units), axis=1, keepdims=True), 1, 0)
    sign = lambda a: jnp.where(a < 0, -1, 1)
    lower = z < 0
    u = jnp.where(lower, (1 - jnp.abs(y)) * sign(x), x)
    v = jnp.where(lower, (1 - jnp.abs(x)) * sign(y), y)
    return jnp.stack([u, v], axis=1)


def _mean(x: Float[Array, "rays n"], used: Bool[Array, " rays"]) -> Float[Array, " n"]:
    return jnp.sum(jnp.where(used[:, None], x, 0), axis=0) / jnp.maximum(jnp.sum(used), 1)


def invert_order(order: Int[Array, " n"]) -> Int[Array, " n"]:
    """Returns the place of every number in an order; numbers beyond its length are left out."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))


def order_by_place(
    points: Float[Array, "points n"], used: Bool[Array, " points"]
) -> Int[Array, " points"]:
    """Sorts points along a curve that fills space, so that runs of them are close together.

    **Arguments:**

    - `points`: the points, of any dimension.
    - `used`: the points that count; the others come last.

    **Returns:**

    The numbers of the points, in order.

    **Source:** Hilbert's curve, whose neighbours are always close: Skilling 2004, "Programming the
    Hilbert curve".
    """
    count, dimensions = points.shape
    # One number that holds code and place is sorted five times as fast as a pair.
    place_bits = max(count - 1, 1).bit_length()
    bits = (31 - place_bits) // dimensions
    lower = jnp.min(jnp.where(used[:, None], points, jnp.inf), axis=0)
    upper = jnp.max(jnp.where(used[:, None], points, -jnp.inf), axis=0)
    extent = jnp.maximum(jnp.max(upper - lower), 1e-30)
    cells = jnp.clip((points - lower) / extent * 2**bits, 0, 2**bits - 1).astype(jnp.uint32)
    code = _hilbert([cells[:, axis] for axis in range(dimensions)], bits)
    code = jnp.where(used, code, 2 ** (dimensions * bits))
    places = jnp.arange(count, dtype=jnp.uint32)
    ordered = jax.lax.sort((code << place_bits) | places)
    return (ordered & (2**place_bits - 1)).astype(jnp.int32)


def _hilbert(cells: list[UInt32[Array, " points"]], bits: int) -> UInt32[Array, " points"]:
    """Returns the places of cells along Hilbert's curve (Skilling's algorithm)."""
    x = list(cells)
    for bit in reversed(range(1, bits)):
        low = jnp.uint32(2**bit - 1)
        for i in range(len(x)):
            up = (x[i] >> bit) & 1 == 1
            # Invert the lower bits of the first coordinate, or exchange them with the i-th's.
            swap = jnp.where(up, 0, (x[0] ^ x[i]) & low)
            x[0] ^= jnp.where(up, low, swap)
            x[i] ^= swap
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    flip = jnp.zeros_like(x[0])
    for bit in reversed(range(1, bits)):
        flip ^= jnp.where((x[-1] >> bit) & 1 == 1, jnp.uint32(2**bit - 1), 0)
    code = jnp.zeros_like(x[0])
    for bit in reversed(range(bits)):
        for cell in x:
            code = (code << 1) | (((cell ^ flip) >> bit) & 1)
    return code
