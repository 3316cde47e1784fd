"""`loop_rows`: a while loop of one row that, mapped over many, costs what each of them needs."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from .._typing import Array, Bool, PyTree
from ..numerics import choose_block
from ._places import put_rows, take_rows


# Rows that take steps together, and the number of steps until those that are done leave. Measured:
# with fewer rows kernel calls count, with more the last few rows drag the others along.
_BLOCK, _STEPS = 256, 8


def loop_rows(
    step: Callable[[Any, Any], tuple[PyTree, Bool[Array, ""]]],
    operands: PyTree,
    state: PyTree,
    active: Bool[Array, ""],
) -> PyTree:
    """Repeats a step until it says that it is done; like `jax.lax.while_loop`.

    Under `jax.vmap`, a `while_loop` takes as many steps for all rows as for the slowest. Here rows
    that are done leave, the others close ranks, and rows that do not begin cost nothing. It has no
    derivatives: stop those of the operands. `step(operands, state)` returns the next state and
    whether there is more to do; it must not close over traced arrays.
    """

    @custom_vmap
    def run(operands: PyTree, state: PyTree, active: Array) -> PyTree:
        more = lambda carry: carry[1]
        return jax.lax.while_loop(more, lambda carry: step(operands, carry[0]), (state, active))[0]

    @run.def_vmap
    def run_rows(rows: int, batched: list, operands: PyTree, state: PyTree, active: Array) -> Any:
        varies, *rest = batched
        wide = lambda x, there: x if there else jnp.broadcast_to(x, (rows, *x.shape))
        state, active = jax.tree.map(wide, (state, active), tuple(rest))
        axes = jax.tree.map(lambda there: 0 if there else None, varies)
        state = _in_rounds(jax.vmap(step, (axes, 0)), axes, operands, state, active)
        return state, jax.tree.map(lambda _: True, state)

    return run(operands, state, active)


def _in_rounds(
    step: Callable, axes: PyTree, operands: PyTree, state: PyTree, active: Bool[Array, " rows"]
) -> PyTree:
    """Lets all active rows take some steps, block by block, until none is left."""
    rows = active.shape[0]
    size = min(choose_block(_BLOCK), rows)

    def one_block(order: Array, i: Array, carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
        chosen = jax.lax.dynamic_slice(order, (i * size,), (size,))
        choose = lambda axis, x: x if axis is None else take_rows(x, chosen)
        own = jax.tree.map(choose, axes, operands, is_leaf=lambda x: x is None)
        state, active = take_rows(carry, chosen)
        some = _some_steps(step, own, state, active & (chosen < rows))
        return put_rows(carry, chosen, some)

    def one_round(carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
        active = carry[1]
        # Places beyond the active rows have the number `rows`: read clipped, and not written.
        order = jnp.nonzero(active, size=rows, fill_value=rows)[0].astype(jnp.int32)
        order = jnp.concatenate([order, jnp.full(-rows % size, rows, jnp.int32)])
        blocks = (jnp.sum(active, dtype=jnp.int32) + size - 1) // size
        return jax.lax.fori_loop(0, blocks, lambda i, x: one_block(order, i, x), carry)

    return jax.lax.while_loop(lambda x: jnp.any(x[1]), one_round, (state, active))[0]


def _some_steps(step: Callable, operands: PyTree, state: PyTree, active: Array) -> tuple:
    """Takes a few steps; rows that are done keep their states."""

    def one(carry: tuple[Array, PyTree, Array]) -> tuple[Array, PyTree, Array]:
        n, state, active = carry
        new, more = step(operands, state)
        keep = lambda x, y: jnp.where(active.reshape(-1, *(1,) * (x.ndim - 1)), y, x)
        return n + 1, jax.tree.map(keep, state, new), active & more

    going = lambda carry: (carry[0] < _STEPS) & jnp.any(carry[2])
    return jax.lax.while_loop(going, one, (jnp.zeros((), jnp.int32), state, active))[1:]
