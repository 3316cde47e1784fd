from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int
from ._bits import count_bits, nth_bit_of_word, pack_bits, WORD


class Compaction(NamedTuple):
    """The indices of the true entries of a mask, in a list of fixed length.

    **Arguments:**

    - `indices`: positions of true entries, in order; 0 in the unused places.
    - `valid`: which places are used.
    - `overflow`: how many true entries did not fit.
    """

    indices: Int[Array, " budget"]
    valid: Bool[Array, " budget"]
    overflow: Int[Array, ""]


def compact(mask: Bool[Array, " n"], budget: int) -> Compaction:
    """Lists the true entries of a mask under `jit`: data-dependent work of static shape.

    Nothing is dropped silently: check `overflow`.

    **Arguments:**

    - `mask`: one boolean an item.
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
    words = pack_bits(mask)
    counts = count_bits(words)
    row, rank, valid = spread(counts, budget)
    inside = jax.vmap(nth_bit_of_word)(words[row], rank)
    overflow = jnp.maximum(jnp.sum(counts) - budget, 0)
    return Compaction(jnp.where(valid, WORD * row + inside, 0), valid, overflow)


class Spread(NamedTuple):
    """The items of several rows in a list of fixed length, row after row.

    **Arguments:**

    - `row`: of each item; the last in the unused places.
    - `rank`: the item's number in its row.
    - `valid`: which places are used.
    """

    row: Int[Array, " budget"]
    rank: Int[Array, " budget"]
    valid: Bool[Array, " budget"]


def spread(counts: Int[Array, " rows"], budget: int) -> Spread:
    """Lists the items of rows of different lengths.

    **Arguments:**

    - `counts`: how many items each row has.
    - `budget`: the length of the list; static. What does not fit is not in it.

    **Returns:**

    `(row, rank, valid)`.

    **Errors:**

    `ValueError` for a budget below one.
    """
    if budget < 1:
        raise ValueError(f"`budget` must be at least 1; got {budget}.")
    ends, place = jnp.cumsum(counts), jnp.arange(budget)
    # How many rows have ended before a place.
    row = jnp.cumsum(jnp.bincount(ends, length=budget))
    row = jnp.minimum(row, counts.shape[0] - 1)
    return Spread(row, place - (ends - counts)[row], place < ends[-1])
