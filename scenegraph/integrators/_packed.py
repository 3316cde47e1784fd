"""Occupied steps of many rays, packed into one list of fixed length."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, UInt32
from ..numerics import AbstractModule, count_bits, nth_bit, ragged_items


class PackedSteps(AbstractModule):
    """Steps of many rays in one list of fixed length, ray after ray."""

    # Unused entries are the last step of the last ray, so that the list stays in order.
    ray: Int[Array, " entries"]
    step: Int[Array, " entries"]
    valid: Bool[Array, " entries"]
    requested: Int[Array, " rays"]
    # The number of steps that found no space; the ray then has none in the list.
    missing: Int[Array, " rays"]


def pack_steps(words: UInt32[Array, "rays words"], steps: int, length: int) -> PackedSteps:
    """Packs the occupied steps of as many rays as find space for all of theirs, in order.

    Every ray has a bit for each of its `steps`, 32 to a word.
    """
    requested = jnp.sum(count_bits(words), axis=1)
    # Running sums never fall: behind the first ray without space, none has any.
    kept = jnp.where(jnp.cumsum(requested) <= length, requested, 0)
    ray, rank, valid = ragged_items(kept, length)
    step = jnp.where(valid, jax.vmap(nth_bit)(words[ray], rank), steps - 1)
    return PackedSteps(ray, step, valid, requested, requested - kept)
