"""Orders of rays in which those that go together come together."""

import jax.numpy as jnp

from .._typing import Array, Float, Int
from ..numerics import order_by_place, safe_normalise
from ..rays import Ray


# Rays of which a patch of a picture is taken to have so many.
BUNDLE = 64


def order_rays(rays: Ray) -> Int[Array, " rays"]:
    """Sorts rays so that those that begin near to each other in like directions are together.

    Those that come in bundles of 64, such as patches of pictures, stay as they are: sorted by
    place, some of two patches would come together, and nearly all others would follow.
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


def invert_order(order: Int[Array, " n"]) -> Int[Array, " n"]:
    """Returns the place of every number in an order; numbers beyond its length are left out."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.shape[0], dtype=order.dtype))
