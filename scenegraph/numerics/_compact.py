from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int
from ._bits import count_bits, nth_bit_of_word, pack_bits, WORD


class Compaction(NamedTuple):
    """The indices of the true entries of a mask, in a list of fixed length.

    **Arguments:**

    - `indices`: the positions of the true entries, in order; 0 in the unused places.
    - `valid`: true for the places that are used.
    - `overflow`: the number of true entries that did not fit.
    """

    indices: Int[Array, " budget"]
    valid: Bool[Array, " budget"]
    overflow: Int[Array, ""]


def compact(mask: Bool[Array, " n"], budget: int) -> Compaction:
    """Lists the true entries of a mask under `jit`: data-dependent work of static shape.

    Nothing is dropped silently: check `overflow`.

    **Arguments:**

    - `mask`: the items' booleans, `n`.
    - `budget`: the length of the list; static.

    **Returns:**

    `(indices, valid, overflow)`.

    **Errors:**

    `ValueError` for a budget below one.

    Example: the sum of the positive entries.

    ```python
    x = jnp.array([3.0, -1.0, 2.0])
    indices, valid, overflow = sg.numerics.compact(x > 0, budget=2)
    total = jnp.sum(jnp.where(valid, x[indices], 0.0))
    ```
    """
    # Each place of the list is the `rank`-th true bit of word `row`: 32 entries are searched at
    # once.
    words = pack_bits(mask)
    counts = count_bits(words)
    row, rank, valid = ragged_items(counts, budget)
    inside = jax.vmap(nth_bit_of_word)(words[row], rank)
    overflow = jnp.maximum(jnp.sum(counts) - budget, 0)
    return Compaction(jnp.where(valid, WORD * row + inside, 0), valid, overflow)


class RaggedItems(NamedTuple):
    """The items of rows of different lengths in a list of fixed length, row after row."""

    # Unused places have the last row; `rank` counts within the row.
    row: Int[Array, " budget"]
    rank: Int[Array, " budget"]
    valid: Bool[Array, " budget"]


def ragged_items(counts: Int[Array, " rows"], budget: int) -> RaggedItems:
    """Lists the items of rows that have `counts` items each; what exceeds `budget` is left out."""
    if budget < 1:
        raise ValueError(f"`budget` must be at least 1; got {budget}.")
    ends, place = jnp.cumsum(counts), jnp.arange(budget)
    # An item's row is the number of rows that have ended before its place.
    row = jnp.cumsum(jnp.bincount(ends, length=budget))
    row = jnp.minimum(row, counts.shape[0] - 1)
    # Of its row it is number place - begin, begin = end - count.
    return RaggedItems(row, place - (ends - counts)[row], place < ends[-1])
