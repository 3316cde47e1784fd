"""Pixels, chunk by chunk: in one pass, or in two, of which the second is for the unfinished."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree
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
    begin: Callable[[Any, Int[Array, " pixels"]], tuple[PyTree, Int[Array, " tiles"]]],
    compute: _Compute,
    shared: PyTree,
    indices: Int[Array, "chunks pixels"],
) -> PyTree:
    """Begins all pixels, and computes those of unfinished tiles, in as few chunks as hold these.

    To begin returns values, and how much there is left to do in tiles of 64 pixels.
    """
    values, left = in_one_pass(begin, shared, indices)
    tiles = indices.reshape(-1, TILE)
    # Tiles of one pixel again and again are there to fill a chunk.
    left = jnp.where(jnp.all(tiles == tiles[:, :1], axis=1), 0, left.ravel())
    slots, count = _deal(left, indices.shape[0])
    # Places without a tile have no pixels.
    chosen = jnp.where(slots[..., None] < 0, -1, tiles[slots]).reshape(indices.shape)
    complete = map_blocks(compute, shared, chosen, count)
    place = jnp.where(slots < 0, slots.size, slots).ravel()
    back = jnp.zeros(slots.size, jnp.int32).at[place].set(jnp.arange(slots.size), mode="drop")

    def merge(first: Array, second: Array) -> Array:
        by_tile = lambda x: x.reshape(slots.size, TILE, *x.shape[2:])
        again = (left > 0).reshape(-1, *(1,) * (first.ndim - 1))
        merged = jnp.where(again, by_tile(second)[back], by_tile(first))
        return merged.reshape(first.shape)

    return jax.tree.map(merge, values, complete)


# What a tile takes that touches next to nothing, as touched clusters.
_EACH = 8


def _deal(
    left: Int[Array, " tiles"], chunks: int
) -> tuple[Int[Array, "chunks tiles"], Int[Array, ""]]:
    """Deals unfinished tiles to few chunks, as many for every thread; -1 stands for none.

    Chunks have about as much to do each, and tiles in a row.
    """
    unfinished, each = left > 0, left.shape[0] // chunks
    found, total = compact(unfinished, left.shape[0]), jnp.sum(unfinished, dtype=jnp.int32)
    threads = min(count_threads(), chunks) if jax.default_backend() == "cpu" else 1
    count = jnp.minimum(threads * -(-total // (threads * each)), chunks)
    done = jnp.cumsum(jnp.where(found.valid, _EACH + left[found.indices], 0), dtype=jnp.float32)
    chunk = jnp.arange(1, chunks + 1, dtype=jnp.int32)
    wanted = jnp.searchsorted(done, done[-1] * chunk / jnp.maximum(count, 1)).astype(jnp.int32)

    def end(begin: Array, own: tuple[Array, Array]) -> tuple[Array, Array]:
        # No more than fit a chunk, and no less than the chunks after it have no space for.
        least = total - jnp.maximum(count - own[0], 0) * each
        ends = jnp.clip(own[1], jnp.maximum(begin, least), jnp.minimum(begin + each, total))
        return ends, ends

    ends = jax.lax.scan(end, jnp.zeros((), jnp.int32), (chunk, wanted))[1]
    begins = jnp.pad(ends[:-1], (1, 0))
    number = begins[:, None] + jnp.arange(each, dtype=jnp.int32)
    there = number < ends[:, None]
    return jnp.where(there, found.indices[jnp.minimum(number, left.size - 1)], -1), count
