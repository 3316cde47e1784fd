"""Occupied steps of many rays, packed into one list of fixed length."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
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
    # The number of steps that an entry stands for; `None` where that is one.
    stands_for: Float[Array, " entries"] | None = None


def pack_steps(
    occupied: Bool[Array, "rays steps"],
    length: int,
    most: int = 0,
    shift: Float[Array, " rays"] | None = None,
) -> PackedSteps:
    """Packs the occupied steps of as many rays as find space for all of theirs, in order.

    Of a ray with more than `most` of them, if that is not 0, so many are chosen evenly, moved on by
    a share `shift` of the distance between them; by default by half of it.
    """
    words = jax.vmap(pack_bits)(occupied)
    found = jnp.sum(count_bits(words), axis=1)
    requested = jnp.minimum(found, most) if most else found
    kept = jnp.where(jnp.cumsum(requested) <= length, requested, 0)
    ray, rank, valid = ragged_items(kept, length)
    stands_for = None
    if most:
        # Entry j of m stands for n / m of n steps, and is the step floor((j + shift) n / m).
        stands_for = (found / jnp.maximum(1, requested))[ray]
        offset = 0.5 if shift is None else shift[ray]
        moved = jnp.floor((rank + offset) * stands_for)
        # The last one stays, because it may be a far background.
        is_last = rank >= requested[ray] - 1
        rank = jnp.where(is_last, found[ray] - 1, moved).astype(jnp.int32)
    step = jnp.where(valid, jax.vmap(nth_bit)(words[ray], rank), occupied.shape[1] - 1)
    return PackedSteps(ray, step, valid, requested, requested - kept, stands_for)
