"""Values that may differ between rows, found before any scalar is made."""

from collections.abc import Sequence
from typing import Any

from .._jax import Literal
from ._by_vmap import CALLS


def varying_results(closed: Any, flags: Sequence[bool]) -> list[bool]:
    """Returns which results of a jaxpr may differ between rows, by which of its operands may."""
    jaxpr = getattr(closed, "jaxpr", closed)
    known = dict.fromkeys(jaxpr.constvars, False)
    known.update(zip(jaxpr.invars, flags, strict=True))
    look_up = lambda x: False if isinstance(x, Literal) else known[x]
    for equation in jaxpr.eqns:
        operands = [look_up(x) for x in equation.invars]
        known.update(zip(equation.outvars, _results_of(equation, operands), strict=True))
    return [look_up(x) for x in jaxpr.outvars]


def _results_of(equation: Any, flags: list[bool]) -> list[bool]:
    name, params = equation.primitive.name, equation.params
    if name == "any_in_packet":
        return [False]
    if name in CALLS and CALLS[name] in params:
        return varying_results(params[CALLS[name]], flags)
    if name == "while":
        return varying_loop(equation, flags)
    if name == "cond":
        cases = [varying_results(case, flags[1:]) for case in params["branches"]]
        return [flags[0] or any(some) for some in zip(*cases, strict=True)]
    return [any(flags)] * len(equation.outvars)


def varying_scan(closed: Any, flags: Sequence[bool], consts: int, carried: int) -> list[bool]:
    """Returns which variables of a `scan` may differ between rows in any of its turns."""
    fixed, slices = list(flags[:consts]), list(flags[consts + carried :])
    state = list(flags[consts : consts + carried])
    while True:
        results = varying_results(closed, [*fixed, *state, *slices])[:carried]
        after = [x or y for x, y in zip(state, results, strict=True)]
        if after == state:
            return state
        state = after


def varying_loop(equation: Any, flags: Sequence[bool]) -> list[bool]:
    """Returns which variables of a `while` may differ between rows in any of its turns."""
    params = equation.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    test_with, turn_with = list(flags[:first]), list(flags[first : first + second])
    state = list(flags[first + second :])
    while True:
        # Rows whose condition is false stay as they are, so that they differ from others.
        [stops] = varying_results(params["cond_jaxpr"], [*test_with, *state])
        after = varying_results(params["body_jaxpr"], [*turn_with, *state])
        after = [x or y or stops for x, y in zip(state, after, strict=True)]
        if after == state:
            return state
        state = after
