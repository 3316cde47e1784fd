"""Pixels, chunk by chunk: in one pass, or in two, of which the second is for the unfinished."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree
from ..numerics import compact
from ..programs import count_threads
from ..rowwise import map_blocks
from ._pixel_order import TILE


# Values of pixels, of what they share and of their numbers.
_Compute = Callable[[Any, Int[Array, " pixels"]], PyTree]


def in_one_pass(compute: _Compute, shared: PyTree, indices: Int[Array, "chunks pixels"]) -> PyTree:
    """Computes the pixels of all chunks; under `grad`, chunks are rematerialised."""
    if indices.shape[0] == 1:
        return jax.tree.map(lambda x: x[None], compute(shared, indices[0]))
    return jax.lax.map(jax.checkpoint(partial(compute, shared)), indices)


def in_two_passes(
    begin: Callable[[Any, Int[Array, " pixels"]], tuple[PyTree, Bool[Array, " tiles"]]],
    compute: _Compute,
    shared: PyTree,
    indices: Int[Array, "chunks pixels"],
) -> PyTree:
    """Begins all pixels, and computes those of unfinished tiles, as few chunks as these fill.

    To begin returns values, and which tiles of 64 pixels are not finished.
    """
    values, unfinished = in_one_pass(begin, shared, indices)
    unfinished, tiles = unfinished.ravel(), indices.reshape(-1, TILE)
    slots, count = _deal(unfinished, indices.shape[0])
    # Places without a tile have no pixels.
    chosen = jnp.where(slots[..., None] < 0, -1, tiles[slots]).reshape(indices.shape)
    complete = map_blocks(compute, shared, chosen, count)
    place = jnp.where(slots < 0, slots.size, slots).ravel()
    back = jnp.zeros(slots.size, jnp.int32).at[place].set(jnp.arange(slots.size), mode="drop")

    def merge(first: Array, second: Array) -> Array:
        by_tile = lambda x: x.reshape(slots.size, TILE, *x.shape[2:])
        again = unfinished.reshape(-1, *(1,) * (first.ndim - 1))
        merged = jnp.where(again, by_tile(second)[back], by_tile(first))
        return merged.reshape(first.shape)

    return jax.tree.map(merge, values, complete)


def _deal(
    unfinished: Bool[Array, " tiles"], chunks: int
) -> tuple[Int[Array, "chunks tiles"], Int[Array, ""]]:
    """Deals unfinished tiles evenly to few chunks, as many for every thread; -1 stands for none."""
    each, found = unfinished.shape[0] // chunks, compact(unfinished, unfinished.shape[0])
    total = jnp.sum(unfinished, dtype=jnp.int32)
    threads = min(count_threads(), chunks) if jax.default_backend() == "cpu" else 1
    count = jnp.minimum(threads * -(-total // (threads * each)), chunks)
    share, place = -(-total // jnp.maximum(count, 1)), jnp.arange(each, dtype=jnp.int32)
    number = share * jnp.arange(chunks, dtype=jnp.int32)[:, None] + place
    there = (place < share) & (number < total)
    return jnp.where(there, found.indices[jnp.minimum(number, unfinished.size - 1)], -1), count
