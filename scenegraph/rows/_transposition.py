"""The transpose of the function of one row, equation by equation.

JAX's `linear_transpose` first parts a jaxpr by partial evaluation, so that every case of a branch
hands on all numbers that any case needs. Here the linear equations are gone through backwards as
they are, and a branch has as its transpose a branch of the transposes of its cases, which compute
anew what they need.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .._jax import ad, ClosedJaxpr, Literal
from .._typing import Array
from ._branches import BRANCHES, CALLS, closed_within, compute


def transpose_row(
    closed: ClosedJaxpr, values: Sequence[Any], cotangents: Sequence[Array | None]
) -> list[Array]:
    """Returns the cotangents of those operands of a jaxpr whose value is not given, but `None`.

    The results are linear in these. Cotangents of results that are `None` are zero.
    """
    given = _Transposition(closed, values).run(cotangents)
    pairs = zip(closed.jaxpr.invars, values, given, strict=True)
    return [
        jnp.zeros(x.aval.shape, x.aval.dtype) if cotangent is None else cotangent
        for x, value, cotangent in pairs
        if value is None
    ]


@dataclasses.dataclass(eq=False, slots=True)
class _Variable:
    """A number of a row: its value if that is known, or else the cotangent so far."""

    value: Any = None
    cotangent: Any = None

    def add(self, cotangent: Any) -> None:
        """Adds to the cotangent."""
        if cotangent is not None and not isinstance(cotangent, ad.Zero):
            before = self.cotangent
            self.cotangent = cotangent if before is None else ad.add_jaxvals(before, cotangent)


class _Transposition:
    """A jaxpr whose operands are known, or linear: the cotangents of the latter."""

    def __init__(self, closed: ClosedJaxpr, values: Sequence[Any]):
        # Equations that are linear, with their operands and results.
        self._linear: list[tuple[Any, list[_Variable], list[_Variable]]] = []
        self._operands = [_Variable(x) for x in values]
        self._results = self._open(closed, self._operands)

    def _open(self, closed: ClosedJaxpr, operands: list[_Variable]) -> list[_Variable]:
        """Computes what is known, and notes what is linear; calls are opened."""
        jaxpr = closed.jaxpr
        constants = map(_Variable, closed.consts)
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *operands], strict=True))
        look_up = lambda x: _Variable(x.val) if isinstance(x, Literal) else known[x]
        for equation in jaxpr.eqns:
            inputs = list(map(look_up, equation.invars))
            if equation.primitive.name in CALLS:
                outputs = self._open(closed_within(equation), inputs)
            elif any(x.value is None for x in inputs):
                outputs = [_Variable() for _ in equation.outvars]
                self._linear.append((equation, inputs, outputs))
            else:
                results = compute(jaxpr, equation, [x.value for x in inputs])
                outputs = list(map(_Variable, results))
            known.update(zip(equation.outvars, outputs, strict=True))
        return list(map(look_up, jaxpr.outvars))

    def run(self, cotangents: Sequence[Array | None]) -> list[Array | None]:
        """Returns the cotangents of all operands; `None` for those that are known, or have none."""
        for x, cotangent in zip(self._results, cotangents, strict=True):
            x.add(cotangent)
        for equation, inputs, outputs in reversed(self._linear):
            given = [x.cotangent for x in outputs]
            if all(x is None for x in given):
                continue
            added = _transpose_equation(equation, [x.value for x in inputs], given)
            for x, cotangent in zip(inputs, added, strict=True):
                if x.value is None:
                    x.add(cotangent)
        return [x.cotangent for x in self._operands]


def _transpose_equation(
    equation: Any, values: list[Any], cotangents: list[Array | None]
) -> Sequence[Any]:
    """Returns the cotangents of the operands of an equation that are linear, `None` in `values`."""
    primitive, params = equation.primitive, equation.params
    if primitive.name == BRANCHES:
        return _transpose_branches(equation, values, cotangents)
    if primitive.name in _RULES:
        return _RULES[primitive.name](equation, values, cotangents[0])
    rule = ad.primitive_transposes.get(primitive)
    avals = [x.aval for x in equation.invars]
    if rule is None:
        return _by_jax(equation, values, cotangents)
    pairs = zip(values, avals, strict=True)
    operands = [ad.UndefinedPrimal(aval) if x is None else x for x, aval in pairs]
    if not primitive.multiple_results:
        return rule(cotangents[0], *operands, **params)
    pairs = zip(cotangents, equation.outvars, strict=True)
    return rule([ad.Zero(v.aval) if x is None else x for x, v in pairs], *operands, **params)


def _transpose_branches(
    equation: Any, values: list[Any], cotangents: list[Array | None]
) -> list[Any]:
    index, *operands = values
    linear = [i for i, x in enumerate(operands) if x is None]
    given = [i for i, x in enumerate(cotangents) if x is not None]

    def transpose_case(case: ClosedJaxpr, operands: list, some: list) -> list[Array]:
        every: list[Array | None] = [None] * len(cotangents)
        for i, x in zip(given, some, strict=True):
            every[i] = x
        return transpose_row(case, operands, every)

    cases = [functools.partial(transpose_case, case) for case in equation.params["branches"]]
    found = lax.switch(index, cases, operands, [cotangents[i] for i in given])
    results: list[Any] = [None] * len(values)
    for i, x in zip(linear, found, strict=True):
        results[1 + i] = x
    return results


def _by_jax(equation: Any, values: list[Any], cotangents: list[Array | None]) -> list[Any]:
    """Transposes an equation by JAX's own means, whatever they are."""
    linear = [i for i, x in enumerate(values) if x is None]

    def call(*some: Array) -> Any:
        own = dict(zip(linear, some, strict=True))
        operands = [own.get(i, x) for i, x in enumerate(values)]
        results = equation.primitive.bind(*operands, **equation.params)
        return results if equation.primitive.multiple_results else [results]

    shapes = [equation.invars[i].aval for i in linear]
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in shapes]
    zeros = lambda aval: jnp.zeros(aval.shape, aval.dtype)
    pairs = zip(cotangents, equation.outvars, strict=True)
    given = [zeros(v.aval) if x is None else x for x, v in pairs]
    results: list[Any] = [None] * len(values)
    for i, x in zip(linear, jax.linear_transpose(call, *shapes)(given), strict=True):
        results[i] = x
    return results


def _transpose_slice(equation: Any, values: list[Any], cotangent: Any) -> list[Any]:
    del values
    params, shape = equation.params, equation.invars[0].aval.shape
    strides = params["strides"] or (1,) * len(shape)
    first = params["start_indices"]
    ends = [
        begin + (n - 1) * stride + 1 if n else begin
        for begin, n, stride in zip(first, cotangent.shape, strides, strict=True)
    ]
    edges = zip(first, (n - end for n, end in zip(shape, ends, strict=True)), strides, strict=True)
    zero = jnp.zeros((), cotangent.dtype)
    return [lax.pad(cotangent, zero, [(low, high, step - 1) for low, high, step in edges])]


def _transpose_dynamic_slice(equation: Any, values: list[Any], cotangent: Any) -> list[Any]:
    aval, (_, *starts) = equation.invars[0].aval, values
    table = jnp.zeros(aval.shape, aval.dtype)
    whole = lax.dynamic_update_slice_p.bind(table, cotangent, *starts)
    return [whole, *(None for _ in starts)]


# Of primitives that are frequent, and whose rules are of another form in new versions of JAX.
_RULES: dict[str, Callable[[Any, list[Any], Any], list[Any]]] = {
    "dynamic_slice": _transpose_dynamic_slice,
    "slice": _transpose_slice,
}
