"""`map_blocks`, `sum_blocks`: the first few of many blocks, as many as there turn out to be."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._jax import batching, ClosedJaxpr, HAS_PRIMITIVES, jaxpr_as_fun
from .._typing import Array, Int, PyTree
from ..rows import add_each, count_rows, define_map, row_avals, trace_row, zeros_each


def map_blocks(
    function: Callable[[Any, Any], PyTree], shared: PyTree, blocks: PyTree, count: Int[Array, ""]
) -> PyTree:
    """Maps a function over the first `count` blocks, one after the other; the others cost nothing.

    How many blocks there are to compute need not be known before the data are. Derivatives of any
    kind are maps over the same blocks, which compute again what they need: memory does not grow
    with their number. The results are zero from `count` on.
    """
    return _bind(function, shared, blocks, count, reduced=False)


def sum_blocks(
    function: Callable[[Any, Any], PyTree], shared: PyTree, blocks: PyTree, count: Int[Array, ""]
) -> PyTree:
    """Sums a function over the first `count` blocks, one after the other; the others cost nothing.

    Otherwise like `map_blocks`.
    """
    return _bind(function, shared, blocks, count, reduced=True)


def _bind(
    function: Callable, shared: PyTree, blocks: PyTree, count: Int[Array, ""], *, reduced: bool
) -> PyTree:
    (shared, static), (blocks, rest) = (eqx.partition(x, eqx.is_array) for x in (shared, blocks))
    call = lambda _, shared, block: function(eqx.combine(shared, static), eqx.combine(block, rest))
    count = jax.lax.stop_gradient(jnp.asarray(count, jnp.int32))
    if not HAS_PRIMITIVES:
        return _scan(partial(call, None, shared), blocks, count, reduced=reduced)
    flat, structure = jax.tree.flatten((count, shared, blocks))
    varying = (False,) * (1 + len(jax.tree.leaves(shared))) + (True,) * len(jax.tree.leaves(blocks))
    jaxpr, out, captured = trace_row(call, structure, row_avals(flat, varying))
    if captured:
        raise ValueError("the function of a map over blocks must not close over traced arrays.")
    how = {"jaxpr": jaxpr, "varying": varying, "reduced": (reduced,) * len(jaxpr.out_avals)}
    # A function with effects, such as callbacks, is a loop of JAX's own.
    results = _by_loop(*flat, **how) if jaxpr.effects else _map_blocks_p.bind(*flat, **how)
    return jax.tree.unflatten(jax.tree.structure(out), results)


def _scan(
    function: Callable[[Any], PyTree], blocks: PyTree, count: Int[Array, ""], *, reduced: bool
) -> PyTree:
    """Computes block after block, by means of JAX alone: its memory grows with their number."""
    first = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), blocks)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, first))

    def one_block(state: tuple[Array, PyTree], block: PyTree) -> tuple[tuple, PyTree]:
        number, total = state
        result = jax.lax.cond(number < count, function, lambda _: zeros, block)
        if reduced:
            return (number + 1, jax.tree.map(jnp.add, total, result)), None
        return (number + 1, total), result

    (_, total), results = jax.lax.scan(one_block, (jnp.int32(0), zeros), blocks)
    return total if reduced else results


def _by_loop(*values: Array, jaxpr: ClosedJaxpr, varying: Any, reduced: Any) -> list[Array]:
    """Computes block after block; the first operand is their number."""
    rows = count_rows(values, varying)
    shape = lambda aval, is_reduced: aval.shape if is_reduced else (rows, *aval.shape)
    start = zeros_each(
        [
            jax.ShapeDtypeStruct(shape(aval, is_reduced), aval.dtype)
            for aval, is_reduced in zip(jaxpr.out_avals, reduced, strict=True)
        ]
    )

    def one_block(i: Array, results: list[Array]) -> list[Array]:
        take = lambda x: jax.lax.dynamic_index_in_dim(x, i, keepdims=False)
        block = [take(x) if varies else x for x, varies in zip(values, varying, strict=True)]
        new = jaxpr_as_fun(jaxpr)(*block)
        put = lambda old, x: jax.lax.dynamic_update_index_in_dim(old, x, i, 0)
        some = lambda xs: list(itertools.compress(xs, reduced))
        sums = iter(add_each(some(results), some(new)))
        return [
            next(sums) if is_reduced else put(old, x)
            for old, x, is_reduced in zip(results, new, reduced, strict=True)
        ]

    return jax.lax.fori_loop(0, values[0], one_block, start)


def _batch(values: Any, axes: Any, *, jaxpr: ClosedJaxpr, varying: Any, reduced: Any) -> Any:
    """Maps over blocks of a whole batch: as many as the longest of the batch has."""
    lanes = next(x.shape[axis] for x, axis in zip(values, axes, strict=True) if axis is not None)
    counts, *rest = (
        x if axis is None else jnp.moveaxis(x, axis, int(varies))
        for x, axis, varies in zip(values, axes, varying, strict=True)
    )
    within = None, *(None if axis is None else 0 for axis in axes[1:])
    lane = jax.vmap(jaxpr_as_fun(jaxpr), within, axis_size=lanes)
    whole = jnp.broadcast_to(counts, (lanes,))
    numbers = jnp.arange(count_rows(rest, varying[1:]), dtype=jnp.int32)

    def one_block(count: Array, whole: Array, number: Array, *block: Array) -> list[Array]:
        # Lanes take turns together: beyond a lane's own number, its results count as zero.
        there = number < whole
        some = lambda x: jnp.where(there.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)
        return jax.tree.map(some, lane(count, *block))

    operands = jnp.max(counts), whole, numbers, *rest
    varying = False, False, True, *varying[1:]
    closed = jax.make_jaxpr(one_block)(*row_avals(operands, varying))
    results = _map_blocks_p.bind(*operands, jaxpr=closed, varying=varying, reduced=reduced)
    return results, [0 if is_reduced else 1 for is_reduced in reduced]


if HAS_PRIMITIVES:
    _map_blocks_p = define_map("map_blocks", _by_loop, _by_loop)
    batching.primitive_batchers[_map_blocks_p] = _batch
