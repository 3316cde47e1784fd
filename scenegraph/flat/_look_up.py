"""Look-ups of members by many rows, with derivatives that are fast on every device."""

import jax
import jax.numpy as jnp

from .._typing import Array, Int
from ..numerics import matmul


# With more numbers than this, the matrix of rows and members takes too much memory.
_MOST = 2**27


def look_up(table: Array, places: Int[Array, "*rows"]) -> Array:
    """Returns `table[places]`."""
    small = table.shape[0] * places.size <= _MOST
    if jax.default_backend() == "cpu" or not small or not jnp.issubdtype(table.dtype, jnp.inexact):
        return table.at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return look_up_by_product(table, places)


@jax.custom_jvp
def look_up_by_product(table: Array, places: Int[Array, "*rows"]) -> Array:
    """Returns `table[places]`, whose derivative is a product of matrices.

    That of a look-up is a sum in which the rows of one member wait for each other: on a GPU, for
    ten balls, a hundred times longer than the product takes.
    """
    return table[places]


@look_up_by_product.defjvp
def _look_up_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d x[i] = sum_j [i = j] dx[j]
    (table, places), change = primals, tangents[0]
    is_member = places.reshape(-1, 1) == jnp.arange(table.shape[0])
    own = matmul(is_member.astype(change.dtype), change.reshape(table.shape[0], -1))
    return table[places], own.reshape(*places.shape, *table.shape[1:])
