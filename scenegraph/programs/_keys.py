"""Keys by which equal equations are known: they are compiled once."""

from collections.abc import Iterator, Sequence
from typing import Any

from .._jax import ClosedJaxpr, custom_jvp_call_p, Jaxpr, jit_p, Literal


def key_of(equations: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """Returns what equal groups of equations share, however their variables are called.

    Of a part of a program that is computed again, in the backward pass, functions are copies, and
    are compared by their equations; loops have the same ones.
    """
    return tuple(_keys(equations, inputs, outputs, False))


def _keys(
    equations: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], within: bool
) -> Iterator[Any]:
    numbers: dict[Any, int] = {}
    kind = lambda x: (x.aval.str_short(), getattr(x.aval, "weak_type", None))
    name = lambda x: (numbers.setdefault(x, len(numbers)), kind(x))
    value = lambda x: (repr(x.val), kind(x)) if isinstance(x, Literal) else name(x)
    yield from map(name, inputs)
    for x in equations:
        # A program does not depend on derivatives.
        names = ["call_jaxpr"] if x.primitive is custom_jvp_call_p else sorted(x.params)
        deep = within or x.primitive in (jit_p, custom_jvp_call_p)
        params = [(key, _comparable(x.params[key], deep)) for key in names]
        yield x.primitive, *params, *map(value, x.invars), *map(name, x.outvars)
    yield from map(value, outputs)


def _comparable(value: Any, deep: bool) -> Any:
    """Returns a parameter as something to compare: itself, or by its equations or identity."""
    if deep and isinstance(value, ClosedJaxpr) and not value.consts:
        value = value.jaxpr
    if deep and isinstance(value, Jaxpr):
        return tuple(_keys(value.eqns, (*value.constvars, *value.invars), value.outvars, deep))
    if deep and isinstance(value, tuple):
        return tuple(_comparable(x, deep) for x in value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
