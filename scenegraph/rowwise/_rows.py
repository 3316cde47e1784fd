"""`map_rows`: `jax.vmap` that a CPU computes component by component."""

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
from ._components import Components, joined, Reader


# Larger functions are left to `jax.vmap`: the time to compile grows with every component.
_LARGEST = 60_000
# A block of rows computes about so many numbers, and has at least so many rows. Measured: those of
# larger blocks are no longer in the cache when they are used, and in smaller ones calls count.
_AT_ONCE = 2**29
_FEWEST_ROWS = 2**13

_map_rows_p = Primitive("map_rows")
_map_rows_p.multiple_results = True


def map_rows(function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree) -> PyTree:
    """`jax.vmap` of a small function of one row, such as a ray, made for CPUs.

    Every component of every vector becomes an array over all rows, which is what a compiler for
    CPUs handles best. Derivatives of any kind are taken of the function of one row, and computed in
    one pass together with what they need of it: nothing is stored. Other devices use `jax.vmap`.

    **Arguments:**

    - `function`: called as `function(shared, row)`.
    - `shared`: what all rows use.
    - `rows`: arrays with one leading axis.

    **Returns:**

    What the function returns, with a leading axis over rows.
    """
    (shared, static), (rows, rest) = (eqx.partition(x, eqx.is_array) for x in (shared, rows))
    call = lambda shared, row: function(eqx.combine(shared, static), eqx.combine(row, rest))
    flat, structure = jax.tree.flatten((shared, rows))
    rowed = (False,) * len(jax.tree.leaves(shared)) + (True,) * len(jax.tree.leaves(rows))
    jaxpr, out, captured = _trace(call, structure, _row_avals(flat, rowed))
    rowed = (False,) * len(captured) + rowed
    summed = (False,) * len(jaxpr.out_avals)
    results = _map_rows_p.bind(*captured, *flat, jaxpr=jaxpr, rowed=rowed, summed=summed)
    return jax.tree.unflatten(jax.tree.structure(out), results)


def _trace(call: Callable, structure: Any, avals: Sequence[Any]) -> tuple[ClosedJaxpr, Any, list]:
    """The jaxpr of one row, what it returns, and traced arrays that it had closed over."""

    def flat_call(*leaves: Array) -> PyTree:
        return call(*jax.tree.unflatten(structure, leaves))

    jaxpr, out = jax.make_jaxpr(flat_call, return_shape=True)(*avals)
    places = [i for i, x in enumerate(jaxpr.consts) if isinstance(x, Tracer)]
    captured = [jaxpr.consts[i] for i in places]
    if not captured:
        return jaxpr, out, captured

    def opened(*leaves: Array) -> list[Array]:
        consts = list(jaxpr.consts)
        for i, x in zip(places, leaves, strict=False):
            consts[i] = x
        return jaxpr_as_fun(ClosedJaxpr(jaxpr.jaxpr, consts))(*leaves[len(places) :])

    whole = jax.make_jaxpr(opened)(*_row_avals(captured, (False,) * len(captured)), *avals)
    return whole, out, captured


def _row_avals(values: Sequence[Any], rowed: Sequence[bool]) -> list[jax.ShapeDtypeStruct]:
    return [
        jax.ShapeDtypeStruct(value.shape[1:] if is_rowed else value.shape, value.dtype)
        for value, is_rowed in zip(values, rowed, strict=True)
    ]


def _count(values: Sequence[Any], rowed: Sequence[bool]) -> int:
    return next(value.shape[0] for value, is_rowed in zip(values, rowed, strict=True) if is_rowed)


def _plainly(*values: Array, jaxpr: ClosedJaxpr, rowed: Any, summed: Any) -> list[Array]:
    axes = tuple(0 if is_rowed else None for is_rowed in rowed)
    results = jax.vmap(jaxpr_as_fun(jaxpr), axes, axis_size=_count(values, rowed))(*values)
    return [
        jnp.sum(x, axis=0) if is_summed else x for x, is_summed in zip(results, summed, strict=True)
    ]


def _on_cpu(*values: Array, jaxpr: ClosedJaxpr, rowed: Any, summed: Any) -> list[Array]:
    """In blocks of rows, so that what they compute is still in the cache when it is used."""
    size = _size(jaxpr.jaxpr)
    some = _plainly if size > _LARGEST else _by_components
    some = functools.partial(some, jaxpr=jaxpr, rowed=rowed, summed=summed)
    blocks = _blocks(_count(values, rowed), _AT_ONCE // max(size, 1))
    if blocks == 1:
        return some(*values)

    def one_block(parts: list[Array]) -> list[Array]:
        return some(*_replaced(values, rows, parts))

    rows = [i for i, is_rowed in enumerate(rowed) if is_rowed]
    parts = [x.reshape(blocks, -1, *x.shape[1:]) for x in (values[i] for i in rows)]
    results = zip(jax.lax.map(one_block, parts), summed, strict=True)
    return [
        jnp.sum(x, axis=0) if is_summed else x.reshape(-1, *x.shape[2:]) for x, is_summed in results
    ]


def _blocks(rows: int, most: int) -> int:
    """Into how many blocks of equal size rows are divided, none much larger than `most`."""
    fewest = -(-rows // max(most, _FEWEST_ROWS))
    return next((n for n in range(fewest, 2 * fewest) if rows % n == 0), 1)


def _by_components(*values: Array, jaxpr: ClosedJaxpr, rowed: Any, summed: Any) -> list[Array]:
    rows = _count(values, rowed)
    reader = Reader(rows)
    inputs = [
        reader.rowed(value) if is_rowed else value
        for value, is_rowed in zip(values, rowed, strict=True)
    ]
    avals = jaxpr.out_avals
    results = reader.read(jaxpr.jaxpr, jaxpr.consts, inputs)
    items = [reader.components(x, aval) for x, aval in zip(results, avals, strict=True)]
    computed = iter(reader.graph.compute([x for item in items for x in item.nodes.reshape(-1)]))
    return [
        _result(item, [next(computed) for _ in range(item.nodes.size)], is_summed, rows)
        for item, is_summed in zip(items, summed, strict=True)
    ]


def _result(item: Components, values: list[Array], is_summed: bool, rows: int) -> Array:
    if not is_summed:
        return joined(values, item.nodes.shape, item.dtype, rows)
    sums = [jnp.sum(value) for value in values] or [jnp.zeros((), item.dtype)]
    return jnp.stack(sums)[: item.nodes.size].reshape(item.nodes.shape)


def _size(jaxpr: Any) -> int:
    """How many numbers a jaxpr computes."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [equation.params[key] for key in ("jaxpr", "call_jaxpr") if key in equation.params]
        total += sum(_size(getattr(x, "jaxpr", x)) for x in inner)
        total += 0 if inner else sum(x.aval.size for x in equation.outvars)
    return total


def _abstract(*avals: Any, jaxpr: ClosedJaxpr, rowed: Any, summed: Any) -> list[Any]:
    rows = _count(avals, rowed)
    return [
        aval.update(shape=aval.shape if is_summed else (rows, *aval.shape))
        for aval, is_summed in zip(jaxpr.out_avals, summed, strict=True)
    ]


def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, rowed: Any, summed: Any) -> Any:
    """The tangents are a map over rows of their own, which computes again what it needs."""
    results = _map_rows_p.bind(*primals, jaxpr=jaxpr, rowed=rowed, summed=summed)
    moving = [i for i, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero)]
    smooth = [
        i for i, aval in enumerate(jaxpr.out_avals) if jnp.issubdtype(aval.dtype, jnp.inexact)
    ]

    def push(*values: Array) -> list[Array]:
        still, moves = values[: len(primals)], values[len(primals) :]

        def moved(*some: Array) -> list[Array]:
            inputs = _replaced(still, moving, some)
            outputs = jaxpr_as_fun(jaxpr)(*inputs)
            return [outputs[i] for i in smooth]

        return jax.jvp(moved, tuple(still[i] for i in moving), moves)[1]

    inputs = [*primals, *(tangents[i] for i in moving)]
    all_rowed = (*rowed, *(rowed[i] for i in moving))
    pushed = jax.make_jaxpr(push)(*_row_avals(inputs, all_rowed))
    of_smooth = tuple(summed[i] for i in smooth)
    slopes = _map_rows_p.bind(*inputs, jaxpr=pushed, rowed=all_rowed, summed=of_smooth)
    still = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
    return results, _replaced(still, smooth, slopes)


def _replaced(values: Sequence[Any], places: Sequence[int], others: Sequence[Any]) -> list[Any]:
    values = list(values)
    for place, other in zip(places, others, strict=True):
        values[place] = other
    return values


def _transpose(slopes: Any, *values: Any, jaxpr: ClosedJaxpr, rowed: Any, summed: Any) -> list[Any]:
    """What is shared by all rows gets the sum of what every row gives it."""
    linear = [i for i, value in enumerate(values) if ad.is_undefined_primal(value)]
    fixed = [i for i in range(len(values)) if i not in linear]
    given = [i for i, slope in enumerate(slopes) if not isinstance(slope, ad.Zero)]
    unknown = _row_avals([values[i].aval for i in linear], [rowed[i] for i in linear])

    def pull(*known: Array) -> Any:
        def forth(*free: Array) -> list[Array]:
            some = _replaced([None] * len(values), fixed, known[: len(fixed)])
            outputs = jaxpr_as_fun(jaxpr)(*_replaced(some, linear, free))
            return [outputs[i] for i in given]

        return jax.linear_transpose(forth, *unknown)(list(known[len(fixed) :]))

    inputs = [*(values[i] for i in fixed), *(slopes[i] for i in given)]
    all_rowed = (*(rowed[i] for i in fixed), *(not summed[i] for i in given))
    pulled = jax.make_jaxpr(pull)(*_row_avals(inputs, all_rowed))
    of_shared = tuple(not rowed[i] for i in linear)
    results = _map_rows_p.bind(*inputs, jaxpr=pulled, rowed=all_rowed, summed=of_shared)
    return _replaced([None] * len(values), linear, results)


def _batch(values: Any, axes: Any, **params: Any) -> tuple[list[Array], list[int]]:
    results = jax.vmap(functools.partial(_plainly, **params), tuple(axes))(*values)
    return results, [0] * len(results)


_map_rows_p.def_impl(_plainly)
_map_rows_p.def_abstract_eval(_abstract)
ad.primitive_jvps[_map_rows_p] = _jvp
ad.primitive_transposes[_map_rows_p] = _transpose
batching.primitive_batchers[_map_rows_p] = _batch
mlir.register_lowering(_map_rows_p, mlir.lower_fun(_plainly, multiple_results=True))
mlir.register_lowering(_map_rows_p, mlir.lower_fun(_on_cpu, multiple_results=True), platform="cpu")
