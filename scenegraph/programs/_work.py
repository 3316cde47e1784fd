"""The work of equations, as far as it is known before they run."""

import contextlib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import jax

from .._jax import jaxprs_in_params, Primitive, scan_p, weakref_lru_cache


# Within such a scope, all is done so many times.
_SCOPE = re.compile(r"times_(\d+)")


def say_times(count: int) -> contextlib.AbstractContextManager[Any]:
    """Says of loops of an unknown number of turns that they do about so many things."""
    return jax.named_scope(f"times_{count}")


# Of primitives that have more within than their parameters hold: what is within an equation.
_within: dict[Primitive, Callable[[Any], Any]] = {}


def find_within(primitive: Primitive, find: Callable[[Any], Any]) -> None:
    """Says how to find the jaxpr of what equations of a primitive do."""
    _within[primitive] = find


def _jaxprs_within(equation: Any) -> Iterable[Any]:
    if equation.primitive in _within:
        return [_within[equation.primitive](equation)]
    return jaxprs_in_params(equation.params)


def count_equations(equation: Any) -> int:
    """Counts an equation, and all within."""
    return 1 + sum(map(_count_all, _jaxprs_within(equation)))


@weakref_lru_cache
def _count_all(jaxpr: Any) -> int:
    return sum(map(count_equations, jaxpr.eqns))


# Primitives that are a few kernels, however many equations they have within.
_kernels: set[Primitive] = set()


def are_kernels(primitive: Primitive) -> None:
    """Says that equations of a primitive are a few kernels each."""
    _kernels.add(primitive)


def count_outside_of_kernels(equation: Any) -> int:
    """Counts an equation, and all within that is not part of a kernel."""
    if equation.primitive in _kernels:
        return 1
    return 1 + sum(map(_count_outside, _jaxprs_within(equation)))


@weakref_lru_cache
def _count_outside(jaxpr: Any) -> int:
    return sum(map(count_outside_of_kernels, jaxpr.eqns))


def estimate_work(equation: Any) -> int:
    """Returns the number of equations times how often each is said to be computed."""
    turns = equation.params["length"] if equation.primitive is scan_p else 1
    times = math.prod(map(int, _SCOPE.findall(str(equation.source_info.name_stack))))
    return times * (1 + turns * sum(map(_estimate_all, _jaxprs_within(equation))))


@weakref_lru_cache
def _estimate_all(jaxpr: Any) -> int:
    return sum(map(estimate_work, jaxpr.eqns))
