"""Maps over rows as primitives: tracing, and derivatives that are maps again."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from .._jax import (
    ad,
    batching,
    ClosedJaxpr,
    dce_jaxpr,
    dce_rules,
    jaxpr_as_fun,
    lower_when_compiled,
    mlir,
    Primitive,
)
from .._typing import Array, PyTree
from ._by_vmap import count_rows
from ._checkify import check_results
from ._derivatives import has_loops, is_smooth, push_row, transposed
from ._log import say
from ._operands import GROUP, ROW, SHARED
from ._target import is_available


def define_map(
    name: str,
    lowering: Callable,
    lowering_for_cpus: Callable,
    *,
    native: Callable | None = None,
) -> Primitive:
    """Defines a map as a primitive, whose derivatives of any order are such maps.

    Its parameters: `jaxpr` of one row; `varying`, which operands have a leading axis over rows (the
    others are the same for all rows); `reduced`, which results are summed over rows. Of `map_rows`
    either may also be said of `groups` of rows, and `guard` is the number of the operand that says
    which rows are used: the others have zeros as results. The lowerings take operands and
    parameters, and return arrays: `native` in programs of one CPU of this process.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    primitive.def_impl(lowering)
    primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[primitive] = partial(push_map, primitive)
    ad.primitive_transposes[primitive] = partial(transpose_map, primitive, _flip)
    batching.primitive_batchers[primitive] = partial(batch_rows, primitive)
    dce_rules[primitive] = _leave_out
    check_results(primitive)
    lower = lambda function: mlir.lower_fun(function, multiple_results=True)
    mlir.register_lowering(primitive, lower(lowering))
    plain, whole = lower(lowering_for_cpus), lower(native or lowering_for_cpus)

    def lower_for_cpus(context: Any, *operands: Any, **params: Any) -> Any:
        if runs_here(context.module_context):
            return whole(context, *operands, **params)
        if "name" in params:
            why = "not native: it is exported, or runs on several devices"
            say(params["name"], params["jaxpr"], params["varying"], why, 0.0)
        return plain(context, *operands, **params)

    mlir.register_lowering(primitive, lower_for_cpus, platform="cpu")
    return primitive


def lower_here(primitive: Any, plain: Callable, native: Callable) -> None:
    """Has a primitive lowered by a kernel on a CPU of this process, and by JAX alone elsewhere."""
    lower = partial(mlir.lower_fun, multiple_results=primitive.multiple_results)
    mlir.register_lowering(primitive, lower(plain))
    simple, quick = lower(plain), lower(native)

    def lower_for_cpus(context: Any, *operands: Any, **params: Any) -> Any:
        here = runs_here(context.module_context) and is_available()
        some = here and all(x.size for x in context.avals_in)
        return (quick if some else simple)(context, *operands, **params)

    mlir.register_lowering(primitive, lower_for_cpus, platform="cpu")


def define_operation(
    name: str,
    abstract: Callable,
    plain: Callable,
    native: Callable,
    *,
    multiple: bool,
    static: Sequence[str] = (),
) -> Primitive:
    """Defines an operation without derivatives: a kernel on a CPU of this process, else JAX's own.

    `plain` and `native` take its operands, and its `static` parameters by name.
    """
    primitive = Primitive(name)
    primitive.multiple_results = multiple
    lower_when_compiled(primitive)
    primitive.def_impl(jax.jit(plain, static_argnames=static))
    primitive.def_abstract_eval(abstract)

    def batch(values: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        results = jax.vmap(partial(plain, **params), tuple(axes))(*values)
        return results, [0] * len(results) if multiple else 0

    batching.primitive_batchers[primitive] = batch
    lower_here(primitive, plain, native)
    return primitive


def _flip(kind: int) -> int:
    """Returns what is said of a cotangent: one for every row of what rows share, and so on."""
    return {SHARED: ROW, ROW: SHARED, GROUP: GROUP}[kind]


def runs_here(module: Any) -> bool:
    """Returns true for programs of one device of this process: not exported, and not divided."""
    exported = getattr(getattr(module, "lowering_parameters", None), "for_export", True)
    devices = getattr(getattr(module, "axis_context", None), "num_devices", None)
    return not exported and devices == 1


def trace_row(
    call: Callable, structure: Any, avals: Sequence[Any]
) -> tuple[ClosedJaxpr, Any, list]:
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

    whole = jax.make_jaxpr(opened)(*row_avals(captured, (False,) * len(captured)), *avals)
    return whole, out, captured


def row_avals(values: Sequence[Any], varying: Sequence[bool | int]) -> list[jax.ShapeDtypeStruct]:
    return [
        jax.ShapeDtypeStruct(value.shape[1:] if varies else value.shape, value.dtype)
        for value, varies in zip(values, varying, strict=True)
    ]


def _replaced(values: Sequence[Any], places: Sequence[int], others: Sequence[Any]) -> list[Any]:
    values = list(values)
    for place, other in zip(places, others, strict=True):
        values[place] = other
    return values


def _abstract(
    *avals: Any, jaxpr: ClosedJaxpr, varying: Any, reduced: Any, groups: int = 1, **others: Any
) -> list[Any]:
    del others
    front = {SHARED: (count_rows(avals, varying),), ROW: (), GROUP: (groups,)}
    return [
        aval.update(shape=(*front[kind], *aval.shape))
        for aval, kind in zip(jaxpr.out_avals, reduced, strict=True)
    ]


def push_map(
    primitive: Primitive,
    primals: Any,
    tangents: Any,
    *,
    jaxpr: ClosedJaxpr,
    varying: Any,
    reduced: Any,
    **others: Any,
) -> Any:
    """Maps the jvp of the row function: a second map, which recomputes what it needs."""
    # y_r = f(s, x_r), and so dy_r = f_s(s, x_r) ds + f_x(s, x_r) dx_r for every row r.
    how = {"jaxpr": jaxpr, "varying": varying, "reduced": reduced, **others}
    results = primitive.bind(*primals, **how)
    moving = [i for i, tangent in enumerate(tangents) if not isinstance(tangent, ad.Zero)]
    smooth = [i for i, aval in enumerate(jaxpr.out_avals) if is_smooth(aval)]

    def push(*values: Array) -> list[Array]:
        fixed, directions = values[: len(primals)], values[len(primals) :]
        if not has_loops(jaxpr.jaxpr):
            return push_row(jaxpr, fixed, _replaced([None] * len(fixed), moving, directions))

        def moved(*some: Array) -> list[Array]:
            outputs = jaxpr_as_fun(jaxpr)(*_replaced(fixed, moving, some))
            return [outputs[i] for i in smooth]

        # Linearised, what is linear stands apart from the rest.
        return jax.linearize(moved, *(fixed[i] for i in moving))[1](*directions)

    inputs = [*primals, *(tangents[i] for i in moving)]
    varying = (*varying, *(varying[i] for i in moving))
    pushed = _needed_of(jax.make_jaxpr(push)(*row_avals(inputs, varying)))
    reduced = tuple(reduced[i] for i in smooth)
    how |= {"jaxpr": pushed, "varying": varying, "reduced": reduced, **_renamed(others, "tangent")}
    pushed_forward = primitive.bind(*inputs, **how)
    zeros = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in results]
    return results, _replaced(zeros, smooth, pushed_forward)


def _renamed(params: dict, what: str) -> dict:
    """Returns parameters with the name of a derivative, if they have a name."""
    return params | {key: f"{what} of {value}" for key, value in params.items() if key == "name"}


def _needed_of(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Returns a jaxpr without what is computed and not needed."""
    needed, _ = dce_jaxpr(closed.jaxpr, True, instantiate=True)
    return ClosedJaxpr(needed, closed.consts)


def transpose_map(
    primitive: Primitive,
    flip: Callable[[Any], Any],
    cotangents: Any,
    *values: Any,
    jaxpr: ClosedJaxpr,
    varying: Any,
    reduced: Any,
    **others: Any,
) -> list[Any]:
    """Maps the transpose of the row function; cotangents of uniform operands are summed.

    What `reduced` says of a result, `varying` says of its cotangent once it is flipped, and the
    other way round.
    """
    # For y_r = A_r s + B_r x_r, the cotangents are those of rows, B_r' y_r, and sum_r A_r' y_r.
    linear = [i for i, value in enumerate(values) if ad.is_undefined_primal(value)]
    fixed = [i for i in range(len(values)) if i not in linear]
    given = [i for i, ct in enumerate(cotangents) if not isinstance(ct, ad.Zero)]

    inputs = [*(values[i] for i in fixed), *(cotangents[i] for i in given)]
    all_varying = (*(varying[i] for i in fixed), *(flip(reduced[i]) for i in given))
    is_linear = [i in linear for i in range(len(values))]
    is_given = [i in given for i in range(len(cotangents))]
    program = _needed_of(transposed(jaxpr, is_linear, is_given))
    summed = tuple(flip(varying[i]) for i in linear)
    how = {"jaxpr": program, "varying": all_varying, "reduced": summed}
    how |= _renamed(others, "cotangent")
    if how.get("guard") is not None:
        how["guard"] = fixed.index(how["guard"])
    results = primitive.bind(*inputs, **how)
    return _replaced([None] * len(values), linear, results)


def _leave_out(used: list[bool], *others: Any) -> tuple[list[bool], Any]:
    """Leaves out those results of a map that nothing needs, and the operands that only they need.

    The first operand stays, which may be a number of rows, one that has rows, and the guard.
    """
    # The equation is last; from JAX 0.12 on, which references are read later stands before it.
    equation = others[-1]
    if not any(used):
        return [False] * len(equation.invars), None
    its, some = equation.params, lambda xs, which: tuple(itertools.compress(xs, which))
    kept = 0, its["varying"].index(ROW), its.get("guard")
    stays = [i in kept for i in range(len(equation.invars))]
    jaxpr, needed = dce_jaxpr(its["jaxpr"].jaxpr, used, instantiate=stays)
    params = its | {
        "jaxpr": ClosedJaxpr(jaxpr, its["jaxpr"].consts),
        "varying": some(its["varying"], needed),
        "reduced": some(its["reduced"], used),
    }
    if its.get("guard") is not None:
        params["guard"] = sum(needed[: its["guard"]])
    inputs, outputs = list(some(equation.invars, needed)), list(some(equation.outvars, used))
    return needed, equation.replace(invars=inputs, outvars=outputs, params=params)


def batch_rows(primitive: Primitive, values: Any, axes: Any, **params: Any) -> tuple[list, Any]:
    """Maps over a batch of rows: one group of rows for every element of the batch, or several."""
    size = next(x.shape[axis] for x, axis in zip(values, axes, strict=True) if axis is not None)
    kinds, reduced, groups = params["varying"], params["reduced"], params["groups"]
    operands, new = [], []
    for value, axis, kind in zip(values, axes, kinds, strict=True):
        if axis is None and kind == SHARED:
            operands.append(value)
            new.append(SHARED)
            continue
        x = jnp.broadcast_to(value, (size, *value.shape)) if axis is None else value
        x = x if axis is None else jnp.moveaxis(x, axis, 0)
        if kind == SHARED:
            x = jnp.broadcast_to(x[:, None], (size, groups, *x.shape[1:]))
        # Not -1: what has no numbers has no number of rows by them.
        operands.append(x.reshape(size * x.shape[1], *x.shape[2:]))
        new.append(kind or GROUP)
    sums = tuple(kind and GROUP for kind in reduced)
    if GROUP not in (*new, *sums):
        # Nothing tells groups apart.
        how = params | {"varying": tuple(new), "groups": 1}
    else:
        how = params | {"varying": tuple(new), "reduced": sums, "groups": size * groups}
    results = primitive.bind(*operands, **how)
    apart = [x.reshape(size, x.shape[0] // size, *x.shape[1:]) for x in results]
    pairs = zip(apart, reduced, strict=True)
    return [jnp.sum(x, axis=1) if kind == ROW else x for x, kind in pairs], [0] * len(results)
