"""Orders of rays in which those that go together come together."""

from functools import partial

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..numerics import compact, order_by_place, safe_norm, safe_normalise, tangents
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


@partial(jax.jit, static_argnames="size")
def order_shadow_rays(
    rays: Ray, used: Bool[Array, " rays"], size: int | None = None
) -> Int[Array, " rays"]:
    """Sorts shadow rays so that those that go together come together.

    Rays that meet at a lamp are sorted by direction, parallel ones by where they pass. Bundles of
    `size` rays, if it is given, do not cross gaps.
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
    places = jnp.where(meet, _unfold(units), squeezed)
    order = order_by_place(places, used)
    return order if size is None else _without_gaps(order, places, used, size)


# Rays this many times as far apart as on average do not go together; at most so many times.
_GAP, _MOST_GAPS = 4, 127


def _without_gaps(
    order: Int[Array, " rays"],
    places: Float[Array, "rays 2"],
    used: Bool[Array, " rays"],
    size: int,
) -> Int[Array, " rays"]:
    """Begins a bundle after every gap in an order, as long as unused rays fill those before.

    Bundles across a gap would list all that is between.
    """
    count, total = order.shape[0], jnp.sum(used, dtype=jnp.int32)
    number = jnp.arange(count, dtype=jnp.int32)
    steps = jnp.where(number[1:] < total, safe_norm(jnp.diff(places[order], axis=0)), 0)
    gaps = steps > _GAP * jnp.sum(steps) / jnp.maximum(total, 1)
    gaps &= jnp.cumsum(gaps) <= _MOST_GAPS
    # The n-th part has the numbers from begin_n to end_n, and fills whole bundles.
    part = jnp.cumsum(jnp.pad(gaps, (1, 0)), dtype=jnp.int32)
    found = compact(gaps, _MOST_GAPS)
    begin = jnp.pad(jnp.where(found.valid, found.indices + 1, total), (1, 0))
    end = jnp.append(begin[1:], total)
    fill = (begin - end) % size
    fill = jnp.where(jnp.cumsum(fill) <= count - total, fill, 0)
    # Used rays move back by what fills all parts before theirs; the others take what is free.
    place = jnp.where(number < total, number + (jnp.cumsum(fill) - fill)[part], count)
    free = jnp.ones(count, jnp.int32).at[place].set(0, mode="drop", unique_indices=True)
    others = order[jnp.minimum(total + jnp.cumsum(free) - 1, count - 1)]
    return others.at[place].set(order, mode="drop", unique_indices=True)


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
