from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, PyTree, Scalar


# How many times larger blocks are than on a CPU. Measured on a GPU: a turn of a loop takes as long
# as many blocks of a CPU, because kernels start one by one, and no small cache has to hold a block.
_TIMES = {"cpu": 1}
_TIMES_ELSEWHERE = 64


def choose_block(on_cpu: int, elsewhere: int | None = None) -> int:
    """Returns the number of rows to compute at once: so many on a CPU, far more elsewhere."""
    times = _TIMES.get(jax.default_backend(), _TIMES_ELSEWHERE)
    return on_cpu if times == 1 else elsewhere or times * on_cpu


def sum_over_blocks(
    function: Callable[[Any, Any], tuple[Scalar, PyTree]], shared: PyTree, rows: PyTree, size: int
) -> tuple[Scalar, PyTree]:
    """Sums a function over blocks of rows.

    Reverse-mode derivatives are computed in the same pass as the values, block by block, while
    a block's numbers are at hand: nothing is stored for later and nothing is computed twice. So
    memory grows with `size`, not with the number of rows.

    **Arguments:**

    - `function`: called as `function(shared, block)`; returns a scalar and a tree of arrays, all
      of which are summed. It must not close over traced arrays.
    - `shared`: the operands that all blocks use.
    - `rows`: arrays with one leading axis.
    - `size`: the number of rows in a block; the last one may have fewer. Static.

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
    # With f = sum_b f_b(shared, rows_b), the residuals are the gradients themselves:
    # df/dshared = sum_b df_b/dshared is carried along, df/drows_b is stacked block by block.
    free, fixed = eqx.partition(operands, perturbed)
    (free_shared, free_rows), (fixed_shared, fixed_rows) = free, fixed
    flat_shared = drop_unit_axes(free_shared)

    def one_block(gradient: PyTree, block: PyTree) -> tuple[PyTree, PyTree]:
        free_block, fixed_block = block

        def objective(free: PyTree) -> Any:
            free = reshape_like(free[0], free_shared), free[1]
            return function(*eqx.combine(free, (fixed_shared, fixed_block)))

        differentiate = eqx.filter_value_and_grad(objective, has_aux=True)
        result, (by_shared, by_rows) = differentiate((flat_shared, free_block))
        return jax.tree.map(jnp.add, gradient, by_shared), (result, by_rows)

    start = jax.tree.map(jnp.zeros_like, flat_shared)
    gradient, parts = _scan(one_block, start, (free_rows, fixed_rows), size)
    results, row_gradients = zip(*parts, strict=True)
    merge = lambda *xs: jnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in xs])
    gradient = reshape_like(gradient, free_shared)
    return _total(results), (gradient, jax.tree.map(merge, *row_gradients))


def map_used_blocks(
    function: Callable[[PyTree], PyTree], rows: PyTree, used: Bool[Array, " rows"], size: int
) -> PyTree:
    """Maps over blocks of rows; those without a used row are not computed, and zero."""
    # So a list with space for more than there is costs little more than what is in it. Under `vmap`
    # every block is computed.
    count = used.shape[0]
    if count <= size:
        return function(rows)
    blocks = -(-count // size)

    def divide(x: Array) -> Array:
        # Rows of zeros behind the last fill its block.
        filled = jnp.pad(x, [(0, blocks * size - count), *[(0, 0)] * (x.ndim - 1)])
        return filled.reshape(blocks, size, *x.shape[1:])

    def compute(block: PyTree) -> PyTree:
        none = lambda rows: jax.tree.map(
            lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, rows)
        )
        rows, used = block
        return jax.lax.cond(jnp.any(used), function, none, rows)

    results = jax.lax.map(compute, jax.tree.map(divide, (rows, used)))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count], results)


def drop_unit_axes(tree: PyTree) -> PyTree:
    """Drops leading axes of one, as stacks of one node have them.

    XLA adds the gradient of a look-up to a sum in place, unless there is a reshape between them.
    """
    return jax.tree.map(lambda x: x.reshape(x.shape[1:]) if x.shape[:1] == (1,) else x, tree)


def reshape_like(tree: PyTree, other: PyTree) -> PyTree:
    """Gives arrays the shapes of others."""
    return jax.tree.map(lambda x, y: x.reshape(y.shape), tree, other)


def scaled_gradients(gradients: PyTree, cotangents: Any, *others: Any) -> PyTree:
    """Multiplies gradients, the residuals of a sum, by its cotangent."""
    del others
    # Only the scalar is differentiated, so the cotangent is one number.
    return jax.tree.map(lambda gradient: cotangents[0] * gradient, gradients)


_summed.def_bwd(scaled_gradients)


def _scan(function: Callable, carry: PyTree, rows: PyTree, size: int) -> tuple[PyTree, list]:
    """Scans over blocks, then the remainder: results with a leading axis over blocks."""
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
