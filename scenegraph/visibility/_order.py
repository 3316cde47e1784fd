"""An order of points in which neighbours are near to each other."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..numerics import safe_norm, safe_normalise
from ..rays import Ray


# Bits of a Morton code for each coordinate; the code and a place share 32 bits.
_BITS = 5


def order_rays(rays: Ray) -> Int[Array, " rays"]:
    """Sorts rays so that those that begin near to each other in like directions are together."""
    extent = jnp.max(jnp.max(rays.origin, axis=0) - jnp.min(rays.origin, axis=0))
    ahead = rays.origin + jnp.maximum(extent, 1) * safe_normalise(rays.direction)
    return order_by_place(ahead, jnp.ones(rays.near.shape, bool))


def order_shadow_rays(rays: Ray, used: Bool[Array, " rays"]) -> Int[Array, " rays"]:
    """Sorts shadow rays so that those that go together come together.

    Rays that meet at a lamp are sorted by direction, others by where they begin.
    """
    ends = rays.origin + jnp.minimum(rays.far, 1e6)[:, None] * rays.direction
    spread = lambda x: jnp.max(jnp.where(used[:, None], jnp.abs(x - _mean(x, used)), 0))
    away = rays.origin - _mean(rays.origin, used)
    distance = safe_norm(away)[:, None]
    # Points as far as the horizon must not squeeze all others into one cell.
    squeezed = away / (distance + _mean(distance, used))
    meet = spread(ends) < spread(rays.origin)
    return order_by_place(jnp.where(meet, safe_normalise(rays.direction), squeezed), used)


def _mean(x: Float[Array, "rays n"], used: Bool[Array, " rays"]) -> Float[Array, " n"]:
    return jnp.sum(jnp.where(used[:, None], x, 0), axis=0) / jnp.maximum(jnp.sum(used), 1)


def invert_order(order: Int[Array, " n"]) -> Int[Array, " n"]:
    """Returns the place of every number in an order; numbers beyond its length are left out."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))


def order_by_place(
    points: Float[Array, "points 3"], used: Bool[Array, " points"]
) -> Int[Array, " points"]:
    """Sorts points along a curve that fills space, so that runs of them are close together.

    **Arguments:**

    - `points`: the points.
    - `used`: the points that count; the others come last.

    **Returns:**

    The numbers of the points, in order.

    **Source:** Morton 1966: the bits of the coordinates' cells, interleaved.
    """
    lower = jnp.min(jnp.where(used[:, None], points, jnp.inf), axis=0)
    upper = jnp.max(jnp.where(used[:, None], points, -jnp.inf), axis=0)
    extent = jnp.maximum(jnp.max(upper - lower), 1e-30)
    cells = jnp.clip((points - lower) / extent * 2**_BITS, 0, 2**_BITS - 1).astype(jnp.uint32)
    code = jnp.zeros(points.shape[0], jnp.uint32)
    for bit in range(_BITS):
        for axis in range(3):
            code |= ((cells[:, axis] >> bit) & 1) << (3 * bit + axis)
    code = jnp.where(used, code, 2 ** (3 * _BITS))
    if points.shape[0] > 2**16:
        return jnp.argsort(code)
    # One number that holds code and place is sorted five times as fast as a pair.
    places = jnp.arange(points.shape[0], dtype=jnp.uint32)
    return (jax.lax.sort((code << 16) | places) & (2**16 - 1)).astype(jnp.int32)
