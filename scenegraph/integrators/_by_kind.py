"""Functions of gathered instances: every row has one of its own, of any kind."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree
from ..rowwise import map_rows
from ..scene import Instance, InstanceStack


def map_by_kind(
    function: Callable[[Instance, PyTree], PyTree],
    stacks: Sequence[InstanceStack],
    numbers: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    rows: PyTree,
) -> PyTree:
    """Applies a function to every row and the instance of its number, kind by kind.

    A kind that no row has costs a branch. Rows that are not used get zeros.
    """
    kinds, places = _find(stacks)
    result = _zeros(function, stacks[0], rows)
    for kind, stack in enumerate(stacks):
        mine = used & (kinds[numbers] == kind)

        def some(result, stack=stack, mine=mine):
            new = _map_one_kind(function, stack, jnp.where(mine, places[numbers], 0), rows)
            pick = lambda x, y: jnp.where(mine.reshape(-1, *(1,) * (x.ndim - 1)), x, y)
            return jax.tree.map(pick, new, result)

        result = jax.lax.cond(jnp.any(mine), some, lambda result: result, result)
    return result


def _map_one_kind(
    function: Callable, stack: InstanceStack, places: Int[Array, " rows"], rows: PyTree
) -> PyTree:
    if stack.count == 1:
        return map_rows(function, stack.first(), rows)
    members = stack.take(places).members
    whole = lambda shared, row: function(eqx.combine(row[0], shared), row[1])
    return map_rows(whole, stack.shared, (members, rows))


def _find(stacks: Sequence[InstanceStack]) -> tuple[Int[Array, " all"], Int[Array, " all"]]:
    """Returns, for every number, the stack that holds it and its place there."""
    numbers = jnp.concatenate([stack.members.number for stack in stacks])
    kinds = jnp.concatenate([jnp.full(stack.count, kind) for kind, stack in enumerate(stacks)])
    places = jnp.concatenate([jnp.arange(stack.count) for stack in stacks])
    put = lambda x: jnp.zeros_like(x).at[numbers].set(x)
    return put(kinds), put(places)


def _zeros(function: Callable, stack: InstanceStack, rows: PyTree) -> PyTree:
    count = jax.tree.leaves(rows)[0].shape[0]
    first = jax.tree.map(lambda x: x[0], rows)
    shapes = jax.eval_shape(function, stack.first(), first)
    return jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), shapes)


def map_in_turn(function: Callable[[PyTree], PyTree], rows: PyTree) -> PyTree:
    """Maps a function over rows, one after the other; one alone needs no loop."""
    if jax.tree.leaves(rows)[0].shape[0] > 1:
        return jax.lax.map(function, rows)
    first = jax.tree.map(lambda x: x.reshape(x.shape[1:]), rows)
    return jax.tree.map(lambda x: x[None], function(first))
