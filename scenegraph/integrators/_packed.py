"""Occupied steps of many rays, packed into one list of fixed length."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int
from ..numerics import AbstractModule, count_bits, nth_bit, pack_bits, ragged_items


class PackedSteps(AbstractModule):
    """Steps of many rays in one list of fixed length, ray after ray."""

    # Unused entries are the last step of the last ray, so that the list stays in order.
    ray: Int[Array, " entries"]
    step: Int[Array, " entries"]
    valid: Bool[Array, " entries"]
    requested: Int[Array, " rays"]
    # The number of steps that found no space; the ray then has none in the list.
    missing: Int[Array, " rays"]


def pack_steps(occupied: Bool[Array, "rays steps"], length: int) -> PackedSteps:
    """Packs the occupied steps of as many rays as find space for all of theirs, in order."""
    words = jax.vmap(pack_bits)(occupied)
    requested = jnp.sum(count_bits(words), axis=1)
    # Running sums never fall: behind the first ray without space, none has any.
    kept = jnp.where(jnp.cumsum(requested) <= length, requested, 0)
    ray, rank, valid = ragged_items(kept, length)
    step = jnp.where(valid, jax.vmap(nth_bit)(words[ray], rank), occupied.shape[1] - 1)
    return PackedSteps(ray, step, valid, requested, requested - kept)
