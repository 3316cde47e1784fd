"""Names that go with the next release."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx


F = TypeVar("F", bound=Callable[..., Any])


def tiered_jit(function: F) -> F:
    """Compiles a function: a former name of `equinox.filter_jit`, which serves as well now.

    **Arguments:**

    - `function`: the function.

    **Returns:**

    The compiled function; warns that the name goes with the next release.
    """
    message = "sg.tiered_jit is equinox.filter_jit now, and goes with the next release"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return eqx.filter_jit(function)  # pyright: ignore[reportReturnType]
