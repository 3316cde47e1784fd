from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, PyTree, Scalar


def sum_over_blocks(
    function: Callable[[Any, Any], tuple[Scalar, PyTree]], shared: PyTree, rows: PyTree, size: int
) -> tuple[Scalar, PyTree]:
    """Adds up what a function makes of some rows at a time.

    Reverse-mode derivatives are worked out in the same pass as the values, block by block, while
    a block's numbers are at hand: nothing is stored for later and nothing is computed twice. So
    memory grows with `size`, not with the number of rows.

    **Arguments:**

    - `function`: called as `function(shared, block)`; returns a scalar and a tree of arrays, all
      of which are added up. It must not close over traced arrays.
    - `shared`: what all blocks use.
    - `rows`: arrays with one leading axis.
    - `size`: how many rows make a block; the last one may have fewer. Static.

    **Returns:**

    Both sums. Gradients flow through the scalar alone.
    """
    count = jax.tree.leaves(rows)[0].shape[0]
    summed = function(shared, rows) if count <= size else _summed((shared, rows), function, size)
    value, others = summed
    return value, jax.lax.stop_gradient(others)


@eqx.filter_custom_vjp
def _summed(operands: tuple[PyTree, PyTree], function: Callable, size: int) -> Any:
    shared, rows = operands
    _, results = _scan(lambda carry, block: (carry, function(shared, block)), None, rows, size)
    return _total(results)


@_summed.def_fwd
def _summed_forward(perturbed: PyTree, operands: PyTree, function: Callable, size: int) -> Any:
    free, held = eqx.partition(operands, perturbed)
    (free_shared, free_rows), (held_shared, held_rows) = free, held

    def one_block(slope: PyTree, block: PyTree) -> tuple[PyTree, PyTree]:
        free_block, held_block = block

        def objective(free: PyTree) -> Any:
            return function(*eqx.combine(free, (held_shared, held_block)))

        gradient = eqx.filter_value_and_grad(objective, has_aux=True)
        result, (shared_slope, rows_slope) = gradient((free_shared, free_block))
        return jax.tree.map(jnp.add, slope, shared_slope), (result, rows_slope)

    start = jax.tree.map(jnp.zeros_like, free_shared)
    slope, parts = _scan(one_block, start, (free_rows, held_rows), size)
    results, row_slopes = zip(*parts, strict=True)
    return _total(results), (slope, _joined(row_slopes))


@_summed.def_bwd
def _summed_backward(slopes: PyTree, cotangents: Any, *others: Any) -> PyTree:
    del others
    return jax.tree.map(lambda slope: cotangents[0] * slope, slopes)


def _scan(function: Callable, carry: PyTree, rows: PyTree, size: int) -> tuple[PyTree, list]:
    """`lax.scan` over blocks, then the remainder: results with a leading axis over blocks."""
    whole = jax.tree.leaves(rows)[0].shape[0] // size
    blocks = jax.tree.map(lambda x: x[: whole * size].reshape(whole, size, *x.shape[1:]), rows)
    carry, results = jax.lax.scan(function, carry, blocks)
    rest = jax.tree.map(lambda x: x[whole * size :], rows)
    if not jax.tree.leaves(rest)[0].shape[0]:
        return carry, [results]
    carry, last = function(carry, rest)
    return carry, [results, jax.tree.map(lambda x: x[None], last)]


def _total(parts: Sequence[PyTree]) -> PyTree:
    return jax.tree.map(lambda *xs: sum(jnp.sum(x, axis=0) for x in xs), *parts)


def _joined(parts: Sequence[PyTree]) -> PyTree:
    def join(*xs: Array) -> Array:
        return jnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in xs])

    return jax.tree.map(join, *parts)
