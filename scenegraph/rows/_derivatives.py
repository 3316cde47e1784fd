"""Derivatives of the function of one row: its jaxpr, equation by equation, forwards and backwards.

JAX's own transformations keep branches, but not what a kernel needs of them: the jvp of a `cond` is
one of values and tangents together, which has no transpose; and parted by partial evaluation, every
case hands on all numbers that any case needs. Here the tangents of a branch are a branch of their
own, whose cases compute anew what they need, and the transpose of that is a branch of the
transposes of its cases. It takes half of the time to trace, too.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._jax import ad, ClosedJaxpr, jaxpr_as_fun, jaxprs_in_params, Literal
from .._typing import Array


# Primitives that only call what they have within.
_CALLS = "jit", "pjit", "closed_call"
_BRANCHES = "cond"


def has_loops(jaxpr: Any) -> bool:
    """Returns true if a jaxpr has loops, or whatever else has a jaxpr within."""
    known = *_CALLS, _BRANCHES, "custom_jvp_call"
    inner = [(x.primitive.name, list(jaxprs_in_params(x.params))) for x in jaxpr.eqns]
    return any(name not in known or any(map(has_loops, x)) for name, x in inner if x)


def is_smooth(aval: Any) -> bool:
    """Returns true for numbers that have derivatives."""
    return jnp.issubdtype(aval.dtype, jnp.inexact)


def push_row(
    closed: ClosedJaxpr, values: Sequence[Array], tangents: Sequence[Array | None]
) -> list[Array]:
    """Returns the tangents of those results of a jaxpr that have any, zero or not."""
    pushed = [tangent for _, tangent in _push(closed, list(zip(values, tangents, strict=True)))]
    pairs = zip(pushed, closed.out_avals, strict=True)
    return [_or_zeros(tangent, aval) for tangent, aval in pairs if is_smooth(aval)]


def _or_zeros(x: Array | None, aval: Any) -> Array:
    return jnp.zeros(aval.shape, aval.dtype) if x is None else x


def _compute(jaxpr: Any, equation: Any, values: Sequence[Any]) -> Sequence[Any]:
    """Computes one equation of a jaxpr as it is."""
    if not equation.primitive.name.startswith("custom_"):
        results = equation.primitive.bind(*values, **equation.params)
        return results if equation.primitive.multiple_results else [results]
    # By JAX, as a jaxpr of this equation alone: such a one has functions beside its parameters.
    pairs = zip(equation.invars, values, strict=True)
    named = {x: value for x, value in pairs if not isinstance(x, Literal)}
    ends = {"invars": list(named), "outvars": list(equation.outvars)}
    alone = jaxpr.replace(constvars=[], eqns=[equation], **ends)
    return jaxpr_as_fun(ClosedJaxpr(alone, ()))(*named.values())


def _called(equation: Any) -> ClosedJaxpr:
    return next(x for x in equation.params.values() if isinstance(x, ClosedJaxpr))


def _put(values: Sequence[Any], places: Sequence[int], others: Sequence[Any]) -> list[Any]:
    values = list(values)
    for place, other in zip(places, others, strict=True):
        values[place] = other
    return values


# --- Forwards

# A value and its tangent, `None` if it is zero.
_Dual = tuple[Any, Any]


def _push(closed: ClosedJaxpr, operands: Sequence[_Dual]) -> list[_Dual]:
    """Computes the results of a jaxpr, and their tangents."""
    jaxpr = closed.jaxpr
    constants = ((x, None) for x in closed.consts)
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *operands], strict=True))
    look_up = lambda x: (x.val, None) if isinstance(x, Literal) else known[x]
    for equation in jaxpr.eqns:
        inputs = list(map(look_up, equation.invars))
        known.update(zip(equation.outvars, _push_equation(jaxpr, equation, inputs), strict=True))
    return list(map(look_up, jaxpr.outvars))


def _push_equation(jaxpr: Any, equation: Any, inputs: list[_Dual]) -> Sequence[_Dual]:
    values, tangents = [x for x, _ in inputs], [x for _, x in inputs]
    primitive, params = equation.primitive, equation.params
    if all(x is None for x in tangents):
        return [(x, None) for x in _compute(jaxpr, equation, values)]
    if primitive.name in _CALLS:
        return _push(_called(equation), inputs)
    if primitive.name == _BRANCHES:
        return _push_branches(jaxpr, equation, values, tangents)
    rule = ad.primitive_jvps.get(primitive)
    if rule is None or primitive.name.startswith("custom_"):
        return _push_by_jax(jaxpr, equation, values, tangents)
    pairs = zip(equation.invars, tangents, strict=True)
    given = [ad.Zero(v.aval.to_tangent_aval()) if x is None else x for v, x in pairs]
    results, pushed = rule(values, given, **params)
    if not primitive.multiple_results:
        results, pushed = [results], [pushed]
    pushed = [None if isinstance(x, ad.Zero) else x for x in pushed]
    return list(zip(results, pushed, strict=True))


def _push_branches(
    jaxpr: Any, equation: Any, values: list[Any], tangents: list[Any]
) -> list[_Dual]:
    cases, (index, *operands) = equation.params["branches"], values
    moving = [i for i, x in enumerate(tangents[1:]) if x is not None]

    def push_case(case: ClosedJaxpr, operands: list, directions: list) -> list[Array]:
        return push_row(case, operands, _put([None] * len(operands), moving, directions))

    pushed = [functools.partial(push_case, case) for case in cases]
    found = lax.switch(index, pushed, operands, [tangents[1 + i] for i in moving])
    smooth = [i for i, x in enumerate(equation.outvars) if is_smooth(x.aval)]
    changes = _put([None] * len(equation.outvars), smooth, found)
    return list(zip(_compute(jaxpr, equation, values), changes, strict=True))


def _push_by_jax(jaxpr: Any, equation: Any, values: list[Any], tangents: list[Any]) -> list[_Dual]:
    """Differentiates an equation by JAX's own means, whatever they are."""
    moving = [i for i, x in enumerate(tangents) if x is not None]

    def moved(*some: Array) -> list[Array]:
        return list(_compute(jaxpr, equation, _put(values, moving, some)))

    points = [values[i] for i in moving]
    results, pushed = jax.jvp(moved, points, [tangents[i] for i in moving])
    pushed = [None if x.dtype == jax.dtypes.float0 else x for x in pushed]
    return list(zip(results, pushed, strict=True))


# --- Backwards


def transposed(
    closed: ClosedJaxpr, is_linear: Sequence[bool], is_given: Sequence[bool]
) -> ClosedJaxpr:
    """Returns the transpose of a jaxpr that is linear in some of its operands.

    It maps the other operands, and the cotangents of those results of which one is given, to the
    cotangents of the linear operands. What is known is computed by the equations that are there.
    """
    jaxpr, known, linear = closed.jaxpr, [], []
    pairs = list(zip(jaxpr.invars, is_linear, strict=True))
    values = {*jaxpr.constvars, *(x for x, moves in pairs if not moves)}
    is_known = lambda x: isinstance(x, Literal) or x in values
    for equation in jaxpr.eqns:
        if all(map(is_known, equation.invars)):
            known.append(equation)
            values.update(equation.outvars)
            continue
        if not all(_which_move(equation, [not is_known(x) for x in equation.invars])):
            return transposed(_without_calls(closed), is_linear, is_given)
        linear.append(equation)
    operands = (x for equation in linear for x in equation.invars if not isinstance(x, Literal))
    used = list(dict.fromkeys(x for x in operands if x in values))
    ends = list(itertools.compress(jaxpr.outvars, is_given))
    free = [x for x, moves in pairs if moves]

    def backward(*some: Array) -> list[Array]:
        fixed, cotangents = dict(zip(used, some, strict=False)), _Cotangents()
        for x, cotangent in zip(ends, some[len(used) :], strict=True):
            cotangents.add(x, cotangent)
        for equation in reversed(linear):
            given = [cotangents.of(x) for x in equation.outvars]
            if all(x is None for x in given):
                continue
            operands = [x.val if isinstance(x, Literal) else fixed.get(x) for x in equation.invars]
            added = _transpose_equation(equation, operands, given)
            for x, value, cotangent in zip(equation.invars, operands, added, strict=True):
                if value is None:
                    cotangents.add(x, cotangent)
        return [_or_zeros(cotangents.of(x), x.aval) for x in free]

    avals = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in (*used, *ends)]
    return _after(closed, known, [x for x, moves in pairs if not moves], used, backward, avals)


def _which_move(equation: Any, moving: Sequence[bool]) -> list[bool]:
    """Returns which results of an equation change with those operands that move."""
    if equation.primitive.name not in _CALLS:
        return [any(moving)] * len(equation.outvars)
    jaxpr = _called(equation).jaxpr
    moves = dict(zip(jaxpr.invars, moving, strict=True))
    look_up = lambda x: not isinstance(x, Literal) and moves.get(x, False)
    for inner in jaxpr.eqns:
        moves.update(
            zip(inner.outvars, _which_move(inner, list(map(look_up, inner.invars))), strict=True)
        )
    return list(map(look_up, jaxpr.outvars))


def _after(
    closed: ClosedJaxpr,
    equations: list[Any],
    operands: list[Any],
    used: list[Any],
    function: Callable[..., list[Array]],
    avals: list[jax.ShapeDtypeStruct],
) -> ClosedJaxpr:
    """Returns a jaxpr that computes equations, then a function of variables and further operands.

    The function is traced for the shapes of those variables that it has `used`, and of the others.
    """
    traced = jax.make_jaxpr(function)(*avals)
    inner, name = traced.jaxpr, dict(zip(traced.jaxpr.invars, used, strict=False))
    renamed = lambda xs: [x if isinstance(x, Literal) else name.get(x, x) for x in xs]
    jaxpr = closed.jaxpr.replace(
        constvars=[*closed.jaxpr.constvars, *inner.constvars],
        invars=[*operands, *inner.invars[len(used) :]],
        outvars=renamed(inner.outvars),
        eqns=[*equations, *(x.replace(invars=renamed(x.invars)) for x in inner.eqns)],
    )
    return ClosedJaxpr(jaxpr, [*closed.consts, *traced.consts])


def _without_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Returns a jaxpr in which calls are opened."""

    def run(closed: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
        jaxpr = closed.jaxpr
        names = [*jaxpr.constvars, *jaxpr.invars]
        known = dict(zip(names, [*closed.consts, *values], strict=True))
        look_up = lambda x: x.val if isinstance(x, Literal) else known[x]
        for equation in jaxpr.eqns:
            inputs, is_call = list(map(look_up, equation.invars)), equation.primitive.name in _CALLS
            results = (
                run(_called(equation), inputs) if is_call else _compute(jaxpr, equation, inputs)
            )
            known.update(zip(equation.outvars, results, strict=True))
        return list(map(look_up, jaxpr.outvars))

    avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in closed.in_avals]
    return jax.make_jaxpr(lambda *values: run(closed, values))(*avals)


class _Cotangents:
    """The cotangents of variables so far."""

    def __init__(self) -> None:
        self._sums: dict[Any, Array] = {}

    def of(self, x: Any) -> Array | None:
        """Returns the cotangent of a variable, `None` if it is zero."""
        return self._sums.get(x)

    def add(self, x: Any, cotangent: Any) -> None:
        """Adds to the cotangent of a variable."""
        if cotangent is None or isinstance(cotangent, ad.Zero) or isinstance(x, Literal):
            return
        before = self._sums.get(x)
        self._sums[x] = cotangent if before is None else lax.add(before, cotangent)


def _transpose_equation(
    equation: Any, values: list[Any], cotangents: list[Array | None]
) -> Sequence[Any]:
    """Returns the cotangents of the operands of an equation that are linear, `None` in `values`."""
    primitive = equation.primitive
    if primitive.name in _CALLS:
        is_linear, is_given = [x is None for x in values], [x is not None for x in cotangents]
        call = jaxpr_as_fun(transposed(_called(equation), is_linear, is_given))
        found = call(*(x for x in (*values, *cotangents) if x is not None))
        return _put([None] * len(values), [i for i, x in enumerate(values) if x is None], found)
    if primitive.name == _BRANCHES:
        return _transpose_branches(equation, values, cotangents)
    if primitive.name in _RULES:
        return _RULES[primitive.name](equation, values, cotangents[0])
    rule = ad.primitive_transposes.get(primitive)
    if rule is None:
        return _transpose_by_jax(equation, values, cotangents)
    pairs = zip(values, equation.invars, strict=True)
    operands = [ad.UndefinedPrimal(v.aval) if x is None else x for x, v in pairs]
    if not primitive.multiple_results:
        return rule(cotangents[0], *operands, **equation.params)
    pairs = zip(cotangents, equation.outvars, strict=True)
    given = [ad.Zero(v.aval) if x is None else x for x, v in pairs]
    return rule(given, *operands, **equation.params)


def _transpose_branches(
    equation: Any, values: list[Any], cotangents: list[Array | None]
) -> list[Any]:
    is_linear, is_given = [x is None for x in values], [x is not None for x in cotangents]
    cases = [transposed(x, is_linear[1:], is_given) for x in equation.params["branches"]]
    operands = [x for x in (*values, *cotangents) if x is not None]
    found = equation.primitive.bind(*operands, **equation.params | {"branches": tuple(cases)})
    return _put([None] * len(values), [i for i, x in enumerate(is_linear) if x], found)


def _transpose_by_jax(
    equation: Any, values: list[Any], cotangents: list[Array | None]
) -> list[Any]:
    """Transposes an equation by JAX's own means, whatever they are."""
    linear = [i for i, x in enumerate(values) if x is None]

    def call(*some: Array) -> Any:
        results = equation.primitive.bind(*_put(values, linear, some), **equation.params)
        return results if equation.primitive.multiple_results else [results]

    avals = [equation.invars[i].aval for i in linear]
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals]
    pairs = zip(cotangents, equation.outvars, strict=True)
    given = [_or_zeros(x, v.aval) for x, v in pairs]
    return _put([None] * len(values), linear, jax.linear_transpose(call, *shapes)(given))


def _transpose_slice(equation: Any, values: list[Any], cotangent: Any) -> list[Any]:
    del values
    params, shape = equation.params, equation.invars[0].aval.shape
    strides = params["strides"] or (1,) * len(shape)
    edges = []
    for n, begin, own, stride in zip(
        shape, params["start_indices"], cotangent.shape, strides, strict=True
    ):
        end = begin + (own - 1) * stride + 1 if own else begin
        edges.append((begin, n - end, stride - 1))
    return [lax.pad(cotangent, jnp.zeros((), cotangent.dtype), edges)]


def _transpose_dynamic_slice(equation: Any, values: list[Any], cotangent: Any) -> list[Any]:
    table, (_, *starts) = _or_zeros(None, equation.invars[0].aval), values
    whole = lax.dynamic_update_slice_p.bind(table, cotangent, *starts)
    return [whole, *(None for _ in starts)]


# Of primitives that are frequent, and whose rules are of another form in new versions of JAX.
_RULES: dict[str, Callable[[Any, list[Any], Any], list[Any]]] = {
    "dynamic_slice": _transpose_dynamic_slice,
    "slice": _transpose_slice,
}
