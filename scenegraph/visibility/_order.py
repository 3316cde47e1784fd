"""Orders of rays in which those that go together come together."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..numerics import order_by_place, safe_norm, safe_normalise, tangents
from ..rays import Ray
from ._bundles import BUNDLE


def order_rays(rays: Ray) -> Int[Array, " rays"]:
    """Sorts rays so that those that begin near to each other in like directions are together.

    Those that come in bundles, such as patches of pictures, stay as they are: sorted by place, some
    of two patches would share a bundle, and nearly all others would follow.
    """
    extent = jnp.max(jnp.max(rays.origin, axis=0) - jnp.min(rays.origin, axis=0))
    # o + s d / |d|, as far ahead as the rays begin apart: place and direction count about alike.
    ahead = rays.origin + jnp.maximum(extent, 1) * safe_normalise(rays.direction)
    order = order_by_place(ahead, jnp.ones(rays.near.shape, bool))
    given = jnp.arange(order.shape[0], dtype=order.dtype)
    return jnp.where(_size_of_bundles(ahead) <= _size_of_bundles(ahead[order]), given, order)


def _size_of_bundles(places: Float[Array, "rays 3"]) -> Float[Array, ""]:
    """Returns the sum of the sizes of the boxes about bundles of places, one after the other."""
    padded = jnp.pad(places, ((0, -places.shape[0] % BUNDLE), (0, 0)), mode="edge")
    bundles = padded.reshape(-1, BUNDLE, 3)
    return jnp.sum(jnp.max(bundles, axis=1) - jnp.min(bundles, axis=1))


@jax.jit
def order_shadow_rays(rays: Ray, used: Bool[Array, " rays"]) -> Int[Array, " rays"]:
    """Sorts shadow rays so that those that go together come together.

    Rays that meet at a lamp are sorted by direction, parallel ones by where they pass.
    """
    ends = rays.origin + jnp.minimum(rays.far, 1e6)[:, None] * rays.direction
    spread = lambda x: jnp.max(jnp.where(used[:, None], jnp.abs(x - _mean(x, used)), 0))
    units = safe_normalise(rays.direction)
    start = rays.origin - _mean(rays.origin, used)
    across = tangents(safe_normalise(_mean(units, used)))
    away = jnp.stack([jnp.sum(start * axis, axis=1) for axis in across], axis=1)
    distance = safe_norm(away)[:, None]
    # Points as far as the horizon must not squeeze all others into one cell.
    squeezed = away / (distance + _mean(distance, used))
    # Lamps: rays end closer together than they begin.
    meet = spread(ends) < spread(rays.origin)
    return order_by_place(jnp.where(meet, _unfold(units), squeezed), used)


def _unfold(units: Float[Array, "rays 3"]) -> Float[Array, "rays 2"]:
    """Maps the sphere to a square: the octahedron's lower half is folded out at its corners."""
    # On |x| + |y| + |z| = 1; below, (u, v) = ((1 - |y|) sign(x), (1 - |x|) sign(y)).
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
