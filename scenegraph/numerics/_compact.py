from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Int


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
    if budget < 1:
        raise ValueError(f"`budget` must be at least 1; got {budget}.")
    (indices,) = jnp.nonzero(mask, size=budget, fill_value=0)
    count = jnp.sum(mask, dtype=jnp.int32)
    return Compaction(indices, jnp.arange(budget) < count, jnp.maximum(count - budget, 0))
