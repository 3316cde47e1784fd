from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree, Scalar
from ._blocks import drop_unit_axes, reshape_like, scaled_gradients


def sum_over_runs(
    function: Callable[[Any, Any, Any], tuple[Scalar, PyTree]],
    shared: PyTree,
    rows: PyTree,
    costs: Int[Array, " rows"],
    *,
    most: int,
    size: int,
) -> tuple[Scalar, PyTree]:
    """Sums a function over runs of consecutive rows that cost about the same.

    As `sum_over_blocks`, but a run has as many rows, up to `size`, as cost `most` together, and
    there are as many runs as it takes: rows whose costs differ leave no gaps. `function(shared,
    run, taken)` counts the rows whose entry of `taken` is true; it must not close over traced
    arrays. Gradients flow through the scalar alone, and are computed in the same pass.
    """
    size = min(size, costs.shape[0])
    value, others = _summed((shared, rows), costs, function, most, size)
    return value, jax.lax.stop_gradient(others)


@eqx.filter_custom_vjp
def _summed(operands: PyTree, costs: Array, function: Callable, most: int, size: int) -> Any:
    shared, rows = operands

    def one_run(which: Array, taken: Array) -> Any:
        return function(shared, _take(rows, which), taken), ()

    return _loop(one_run, (), costs, most, size)[0]


@_summed.def_fwd
def _summed_forward(
    perturbed: PyTree, operands: PyTree, costs: Array, function: Callable, most: int, size: int
) -> Any:
    # With f = sum_r f_r(shared, rows_r), the residuals are the gradients themselves:
    # df/dshared = sum_r df_r/dshared, and df/drows is put together run by run.
    free, fixed = eqx.partition(operands, perturbed)
    (free_shared, free_rows), (fixed_shared, fixed_rows) = free, fixed
    flat_shared = drop_unit_axes(free_shared)

    def one_run(which: Array, taken: Array) -> Any:
        def objective(free: PyTree) -> Any:
            free = reshape_like(free[0], free_shared), free[1]
            own = eqx.combine(free, (fixed_shared, _take(fixed_rows, which)))
            return function(*own, taken)

        differentiate = eqx.filter_value_and_grad(objective, has_aux=True)
        result, (by_shared, by_rows) = differentiate((flat_shared, _take(free_rows, which)))
        return result, (by_shared, _put(free_rows, by_rows, which, taken))

    zeros = jax.tree.map(jnp.zeros_like, (flat_shared, free_rows))
    results, (by_shared, by_rows) = _loop(one_run, zeros, costs, most, size)
    return results, (reshape_like(by_shared, free_shared), by_rows)


_summed.def_bwd(scaled_gradients)


def _loop(one_run: Callable, zeros: PyTree, costs: Array, most: int, size: int) -> Any:
    """Adds up what runs return, one after the other: sums of results, and of gradients."""
    count, places = costs.shape[0], jnp.arange(size)
    # Traced once, for the shapes of its results and for the loop.
    one_run = eqx.filter_closure_convert(one_run, places, places == 0)
    results = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), one_run.out_struct[0])

    def advance(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        start, sums = carry
        which = jnp.minimum(start + places, count - 1)
        # The first rows that cost no more than `most`, and the first of all.
        fits = (jnp.cumsum(costs[which]) <= most).at[0].set(True)
        taken = fits & (start + places < count)
        added = one_run(which, taken)
        return start + jnp.sum(taken), jax.tree.map(jnp.add, sums, added)

    begin = jnp.zeros((), places.dtype), (results, zeros)
    return jax.lax.while_loop(lambda carry: carry[0] < count, advance, begin)[1]


def _take(rows: PyTree, which: Int[Array, " size"]) -> PyTree:
    return jax.tree.map(lambda x: x[which], rows)


def _put(rows: PyTree, gradients: PyTree, which: Array, taken: Array) -> PyTree:
    """Returns the gradients of some rows at their places among all."""

    def put(x: Array, gradient: Array) -> Array:
        counts = taken.reshape(-1, *[1] * (x.ndim - 1))
        return jnp.zeros_like(x).at[which].add(jnp.where(counts, gradient, 0))

    return jax.tree.map(put, rows, gradients)
