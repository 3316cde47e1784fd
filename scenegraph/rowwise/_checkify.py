"""Maps over rows under `jax.experimental.checkify`, which looks for errors within them, too."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax

# The rules of primitives are on no public page.
from jax._src.checkify import error_checks
from jax.experimental.checkify import Error
from jax.extend.core import Primitive


def check_within(primitive: Primitive, lowering: Callable) -> None:
    """Has `checkify` look through a map, as through its lowering to JAX's own primitives."""
    error_checks[primitive] = partial(_rule, lowering)


def _rule(lowering: Callable, *args: Any, **params: Any) -> Any:
    # What versions of JAX pass, then the errors so far, the kinds to look for, and the operands.
    begin = next(i for i, x in enumerate(args) if isinstance(x, Error)) + 2
    context, operands = args[:begin], args[begin:]
    closed = jax.make_jaxpr(jax.jit(partial(lowering, **params)))(*operands)
    (call,) = closed.jaxpr.eqns
    known = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    known |= dict(zip(closed.jaxpr.invars, operands, strict=True))
    values = [known[x] for x in call.invars]
    return error_checks[call.primitive](*context, *values, **call.params)
