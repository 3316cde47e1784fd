"""Functions of gathered instances: every row has one of its own, of any kind."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree
from ..flat import Instance, InstanceStack, locate, split_large
from ..rows import map_rows


def map_by_kind(
    function: Callable[[Instance, PyTree], PyTree],
    stacks: Sequence[InstanceStack],
    numbers: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    rows: PyTree,
    *,
    total: int | None = None,
) -> PyTree:
    """Applies a function to every row and the instance of its number, whatever its kind.

    Rows that are not used cost nothing, and get zeros. The function must not close over traced
    arrays. All numbers are below `total`; by default, the stacks have all of them.
    """
    parts = split_large(stacks)
    kinds, places = locate(parts, total or sum(stack.count for stack in stacks))

    def of_row(part: InstanceStack, row: tuple) -> PyTree:
        there, place, own = row
        compute = lambda own: function(part.pick(place), own)
        shape = jax.eval_shape(compute, own)
        zeros = lambda own: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
        return jax.lax.cond(there, compute, zeros, own)

    # A kernel for each kind: LLVM takes longer for one of all, and scenes share those of kinds.
    own_kinds, own_places, results = kinds[numbers], places[numbers], None
    for kind, part in enumerate(parts):
        there = used & (own_kinds == kind)
        found = map_rows(of_row, part, (there, own_places, rows))
        results = found if results is None else where_rows(there, found, results)
    return results


def where_rows(there: Bool[Array, " rows"], yes: PyTree, no: PyTree) -> PyTree:
    """Chooses between the rows of two trees."""
    pick = lambda x, y: jnp.where(there.reshape(-1, *(1,) * (x.ndim - 1)), x, y)
    return jax.tree.map(pick, yes, no)


def map_in_turn(function: Callable[[PyTree], PyTree], rows: PyTree) -> PyTree:
    """Maps a function over rows, one after the other; one alone needs no loop."""
    if jax.tree.leaves(rows)[0].shape[0] > 1:
        return jax.lax.map(function, rows)
    first = jax.tree.map(lambda x: x.reshape(x.shape[1:]), rows)
    return jax.tree.map(lambda x: x[None], function(first))
