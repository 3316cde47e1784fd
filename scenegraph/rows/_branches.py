"""Derivatives of branches: what is linear in tangents stands apart from what is not.

JAX's rule for the jvp of a `cond` is a `cond` of values and tangents together, which has no
transpose; and parted by partial evaluation, every case hands on all that any case needs. Here the
tangents are a `cond` of their own, which computes anew what its cases need.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import ClosedJaxpr, jaxpr_as_fun, jaxprs_in_params, Literal
from .._typing import Array


# Primitives that only call what they have within, by whose rules it is differentiated.
CALLS = "jit", "pjit", "closed_call"
BRANCHES = "cond"


def has_loops(jaxpr: Any) -> bool:
    """Returns true if a jaxpr has loops, or whatever else has a jaxpr within."""
    known = *CALLS, BRANCHES, "custom_jvp_call"
    inner = [(x.primitive.name, list(jaxprs_in_params(x.params))) for x in jaxpr.eqns]
    return any(name not in known or any(map(has_loops, x)) for name, x in inner if x)


def has_branches(jaxpr: Any) -> bool:
    """Returns true if a jaxpr has branches, but for those of functions with a rule of their own."""
    inner = [(x, jaxprs_in_params(x.params)) for x in jaxpr.eqns if x.primitive.name in CALLS]
    own = any(x.primitive.name == BRANCHES for x in jaxpr.eqns)
    return own or any(has_branches(within) for _, some in inner for within in some)


def with_linear_branches(closed: ClosedJaxpr) -> Callable[..., list[Array]]:
    """Returns the function of a jaxpr, whose branches have a `cond` of tangents as derivative."""

    def call(*values: Array) -> list[Array]:
        return _run(closed.jaxpr, closed.consts, values)

    return call


def _run(jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
    look_up = lambda x: x.val if isinstance(x, Literal) else known[x]
    for equation in jaxpr.eqns:
        results = _apply(jaxpr, equation, [look_up(x) for x in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [look_up(x) for x in jaxpr.outvars]


def _apply(jaxpr: Any, equation: Any, values: list[Any]) -> Sequence[Any]:
    if equation.primitive.name in CALLS:
        closed = closed_within(equation)
        return _run(closed.jaxpr, closed.consts, values)
    if equation.primitive.name == BRANCHES:
        return _switch(equation.params["branches"])(*values)
    return compute(jaxpr, equation, values)


def closed_within(equation: Any) -> ClosedJaxpr:
    """Returns what an equation calls."""
    return next(x for x in equation.params.values() if isinstance(x, ClosedJaxpr))


def compute(jaxpr: Any, equation: Any, values: list[Any]) -> Sequence[Any]:
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


def _switch(branches: Sequence[ClosedJaxpr]) -> Callable[..., list[Array]]:
    """Returns a `cond` of an index and operands, whose tangents are a `cond` of their own."""
    cases = list(map(with_linear_branches, branches))
    avals = branches[0].out_avals
    smooth = [i for i, x in enumerate(avals) if jnp.issubdtype(x.dtype, jnp.inexact)]

    @jax.custom_jvp
    def choose(index: Array, *operands: Array) -> list[Array]:
        return jax.lax.switch(index, cases, *operands)

    def push(primals: tuple, tangents: tuple) -> tuple[list, list]:
        index, *operands = primals
        moving = [
            i
            for i, x in enumerate(tangents[1:])
            if not isinstance(x, jax.custom_derivatives.SymbolicZero)
        ]
        directions = [tangents[1 + i] for i in moving]

        def push_case(case: Callable, fixed: list, directions: list) -> list[Array]:
            def moved(*some: Array) -> list[Array]:
                own = dict(zip(moving, some, strict=True))
                results = case(*(own.get(i, x) for i, x in enumerate(fixed)))
                return [results[i] for i in smooth]

            return jax.jvp(moved, [fixed[i] for i in moving], directions)[1]

        pushed = [functools.partial(push_case, case) for case in cases]
        found = jax.lax.switch(index, pushed, operands, directions)
        changes: list[Any] = [np.zeros(x.shape, jax.dtypes.float0) for x in avals]
        for i, x in zip(smooth, found, strict=True):
            changes[i] = x
        return choose(*primals), changes

    choose.defjvp(push, symbolic_zeros=True)
    return choose
