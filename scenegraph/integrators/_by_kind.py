"""Functions of gathered instances: every row has one of its own, of any kind."""

from collections.abc import Callable, Sequence

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
        first = jax.tree.map(lambda x: x.reshape(x.shape[1:]), stack.members)
        return map_rows(function, first, rows)
    members = stack.take(places).members
    return map_rows(lambda _, row: function(*row), None, (members, rows))


def _find(stacks: Sequence[InstanceStack]) -> tuple[Int[Array, " all"], Int[Array, " all"]]:
    """Returns, for every number, the stack that holds it and its place there."""
    numbers = jnp.concatenate([stack.members.number for stack in stacks])
    kinds = jnp.concatenate([jnp.full(stack.count, kind) for kind, stack in enumerate(stacks)])
    places = jnp.concatenate([jnp.arange(stack.count) for stack in stacks])
    put = lambda x: jnp.zeros_like(x).at[numbers].set(x)
    return put(kinds), put(places)


def _zeros(function: Callable, stack: InstanceStack, rows: PyTree) -> PyTree:
    count = jax.tree.leaves(rows)[0].shape[0]
    first = jax.tree.map(lambda x: x[0], (stack.members, rows))
    shapes = jax.eval_shape(function, *first)
    return jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), shapes)
