"""A function of space as a function of constants and a point."""

from collections.abc import Callable
from typing import Any

import jax

from .._jax import ClosedJaxpr, HAS_PRIMITIVES, jaxpr_as_fun, Literal
from .._typing import PyTree, Scalar, Vector


def trace_distance(
    function: Callable[[Vector], Scalar], point: Vector
) -> tuple[Callable[[PyTree, Vector], Scalar], PyTree]:
    """Returns the function with all arrays that it uses as an argument, and these arrays.

    What does not depend on the point is computed here, once for all points.
    """
    like = jax.ShapeDtypeStruct(point.shape, point.dtype)
    if not HAS_PRIMITIVES:
        converted, constants = jax.closure_convert(function, like)
        return lambda constants, point: converted(point, *constants), constants
    traced = jax.make_jaxpr(function)(like)
    jaxpr = traced.jaxpr
    # What an input of varies, the point first of all, varies with it. All else is computed before,
    # and what the rest needs of it becomes its constants.
    varying, first, rest = set(jaxpr.invars), [], []
    for equation in jaxpr.eqns:
        varies = bool(varying.intersection(_variables(equation.invars))) or equation.effects
        (rest if varies else first).append(equation)
        varying.update(equation.outvars if varies else ())
    needed = [x for equation in rest for x in _variables(equation.invars)]
    needed = [x for x in dict.fromkeys([*needed, *_variables(jaxpr.outvars)]) if x not in varying]
    info = jaxpr.debug_info.with_unknown_names()
    before = jaxpr.replace(invars=[], eqns=first, outvars=needed, debug_info=info)
    invars = [*needed, *jaxpr.invars]
    after = ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars, eqns=rest, debug_info=info), [])
    call = lambda constants, point: jaxpr_as_fun(after)(*constants, point)[0]
    return call, jaxpr_as_fun(ClosedJaxpr(before, traced.consts))()


def _variables(atoms: Any) -> list[Any]:
    return [x for x in atoms if not isinstance(x, Literal)]
