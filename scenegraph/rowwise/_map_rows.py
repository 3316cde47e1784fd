"""`map_rows`: tracing, the primitive, and its derivatives."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun, Primitive
from jax.interpreters import ad, batching, mlir

from .._typing import Array, PyTree
from ._lower import by_scalars, by_vmap, count_rows


# The parameters of the primitive: `jaxpr` of one row; `varying`, which operands have a leading axis
# over rows (the others are the same for all rows); `reduced`, which results are summed over rows.
_map_rows_p = Primitive("map_rows")
_map_rows_p.multiple_results = True


def map_rows(function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree) -> PyTree:
    """Maps a small function over rows, such as rays: a `jax.vmap` made for CPUs.

    On a CPU, every component of every vector becomes an array over all rows, which is what a
    compiler for CPUs handles best. Derivatives of any kind are taken of the function of one row,
    and computed in one pass together with what they need of it: nothing is stored. Other devices
    use `jax.vmap`. Results, NaN and infinities among them, are those of `jax.vmap`.

    **Arguments:**

    - `function`: a function of `shared` and one row.
    - `shared`: a tree that all rows use.
    - `rows`: a tree of arrays with one leading axis over rows.

    **Returns:**

    The results of the function, with a leading axis over rows.

    Example: the lengths of two vectors.

    ```python
    lengths = sg.rowwise.map_rows(lambda unit, x: unit * jnp.linalg.norm(x), 1.0, jnp.eye(3)[:2])
    ```
    """
    (shared, static), (rows, rest) = (eqx.partition(x, eqx.is_array) for x in (shared, rows))
    call = lambda shared, row: function(eqx.combine(shared, static), eqx.combine(row, rest))
    flat, structure = jax.tree.flatten((shared, rows))
    varying = (False,) * len(jax.tree.leaves(shared)) + (True,) * len(jax.tree.leaves(rows))
    jaxpr, out, captured = _trace(call, structure, _row_avals(flat, varying))
    varying = (False,) * len(captured) + varying
    reduced = (False,) * len(jaxpr.out_avals)
    results = _map_rows_p.bind(*captured, *flat, jaxpr=jaxpr, varying=varying, reduced=reduced)
    return jax.tree.unflatten(jax.tree.structure(out), results)


def _trace(call: Callable, structure: Any, avals: Sequence[Any]) -> tuple[ClosedJaxpr, Any, list]:
    """Returns the jaxpr of one row, the tree of results, and the tracers that `call` closes over.

    Those tracers become the first operands of the jaxpr, so that they have derivatives.
    """

    def flat_call(*leaves: Array) -> PyTree:
        return call(*jax.tree.unflatten(structure, leaves))

    jaxpr, out = jax.make_jaxpr(flat_call, return_shape=True)(*avals)
    places = [i for i, x in enumerate(jaxpr.consts) if isinstance(x, Tracer)]
    captured = [jaxpr.consts[i] for i in places]
    if not captured:
        return jaxpr, out, captured

    def opened(*leaves: Array) -> list[Array]:
        consts = _replaced(jaxpr.consts, places, leaves[: len(places)])
        return jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, consts))(*leaves[len(places) :])

    whole = jax.make_jaxpr(opened)(*_row_avals(captured, (False,) * len(captured)), *avals)
    return whole, out, captured


def _row_avals(values: Sequence[Any], varying: Sequence[bool]) -> list[jax.ShapeDtypeStruct]:
    return [
        jax.ShapeDtypeStruct(value.shape[1:] if varies else value.shape, value.dtype)
        for value, varies in zip(values, varying, strict=True)
    ]


def _replaced(values: Sequence[Any], places: Sequence[int], others: Sequence[Any]) -> list[Any]:
    values = list(values)
    for place, other in zip(places, others, strict=True):
        values[place] = other
    return values


def _abstract(*avals: Any, jaxpr: ClosedJaxpr, varying: Any, reduced: Any) -> list[Any]:
    rows = count_rows(avals, varying)
    return [
        aval.update(shape=aval.shape if is_reduced else (rows, *aval.shape))
        for aval, is_reduced in zip(jaxpr.out_avals, reduced, strict=True)
    ]


def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, varying: Any, reduced: Any) -> Any:
    """Maps the jvp of the row function: a second `map_rows`, which recomputes what it needs."""
    # y_r = f(s, x_r), and so dy_r = f_s(s, x_r) ds + f_x(s, x_r) dx_r for every row r.
    results = _map_rows_p.bind(*primals, jaxpr=jaxpr, varying=varying, reduced=reduced)
    moving = [i for i, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero)]
    smooth = [
        i for i, aval in enumerate(jaxpr.out_avals) if jnp.issubdtype(aval.dtype, jnp.inexact)
    ]

    def push(*values: Array) -> list[Array]:
        fixed, directions = values[: len(primals)], values[len(primals) :]

        def moved(*some: Array) -> list[Array]:
            outputs = jaxpr_as_fun(jaxpr)(*_replaced(fixed, moving, some))
            return [outputs[i] for i in smooth]

        return jax.jvp(moved, tuple(fixed[i] for i in moving), directions)[1]

    inputs = [*primals, *(tangents[i] for i in moving)]
    varying = (*varying, *(varying[i] for i in moving))
    pushed = jax.make_jaxpr(push)(*_row_avals(inputs, varying))
    reduced = tuple(reduced[i] for i in smooth)
    pushed_forward = _map_rows_p.bind(*inputs, jaxpr=pushed, varying=varying, reduced=reduced)
    zeros = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
    return results, _replaced(zeros, smooth, pushed_forward)


def _transpose(
    cotangents: Any, *values: Any, jaxpr: ClosedJaxpr, varying: Any, reduced: Any
) -> list[Any]:
    """Maps the transpose of the row function; cotangents of uniform operands are summed."""
    # For y_r = A_r s + B_r x_r, the cotangents are those of rows, B_r' y_r, and sum_r A_r' y_r.
    linear = [i for i, value in enumerate(values) if ad.is_undefined_primal(value)]
    fixed = [i for i in range(len(values)) if i not in linear]
    given = [i for i, ct in enumerate(cotangents) if not isinstance(ct, ad.Zero)]
    unknown = _row_avals([values[i].aval for i in linear], [varying[i] for i in linear])

    def pull(*known: Array) -> Any:
        def forward(*free: Array) -> list[Array]:
            some = _replaced([None] * len(values), fixed, known[: len(fixed)])
            outputs = jaxpr_as_fun(jaxpr)(*_replaced(some, linear, free))
            return [outputs[i] for i in given]

        return jax.linear_transpose(forward, *unknown)(list(known[len(fixed) :]))

    inputs = [*(values[i] for i in fixed), *(cotangents[i] for i in given)]
    all_varying = (*(varying[i] for i in fixed), *(not reduced[i] for i in given))
    pulled = jax.make_jaxpr(pull)(*_row_avals(inputs, all_varying))
    summed = tuple(not varying[i] for i in linear)
    results = _map_rows_p.bind(*inputs, jaxpr=pulled, varying=all_varying, reduced=summed)
    return _replaced([None] * len(values), linear, results)


def _batch(values: Any, axes: Any, **params: Any) -> tuple[list[Array], list[int]]:
    results = jax.vmap(functools.partial(by_vmap, **params), tuple(axes))(*values)
    return results, [0] * len(results)


_map_rows_p.def_impl(by_vmap)
_map_rows_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_map_rows_p] = _jvp
ad.primitive_transposes[_map_rows_p] = _transpose
batching.primitive_batchers[_map_rows_p] = _batch
mlir.register_lowering(_map_rows_p, mlir.lower_fun(by_vmap, multiple_results=True))
mlir.register_lowering(
    _map_rows_p, mlir.lower_fun(by_scalars, multiple_results=True), platform="cpu"
)
