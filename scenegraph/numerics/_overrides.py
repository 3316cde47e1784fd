"""Checks of methods that a user writes for the abstract ones of the library."""

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._typing import fits, typecheck_enabled
from .._words import describe, wanted


def check_overrides(cls: type) -> None:
    """Refuses methods that are not called like the abstract ones, and checks what they return."""
    if not typecheck_enabled() or _is_ours(cls):
        return
    for name, method in list(vars(cls).items()):
        base = next((x for x in cls.__mro__[1:] if name in vars(x)), None)
        if base is None or not _is_ours(base) or not _is_abstract(vars(base)[name]):
            continue
        if isinstance(method, types.FunctionType) and not _is_abstract(method):
            _refuse_signature(cls, method, base)
            setattr(cls, name, _checked(method, vars(base)[name], f"`{cls.__name__}.{name}`"))


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == __name__.split(".")[0]


def _is_abstract(method: Any) -> bool:
    is_function = isinstance(method, types.FunctionType)
    return is_function and vars(method).get("__isabstractmethod__", False)


def _refuse_signature(cls: type, method: Callable, base: type) -> None:
    """Refuses a method that cannot take what the library gives it."""
    own = inspect.signature(method)
    needed = inspect.signature(vars(base)[method.__name__]).parameters.values()
    by_name = {p.name: None for p in needed if p.kind is p.KEYWORD_ONLY}
    in_order = [p.name for p in needed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variable = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in needed)
    try:
        # Called as the library does: in order, and by name.
        own.bind(*in_order, **by_name)
    except TypeError:
        if variable:
            return
        row = lambda names: ", ".join(f"`{x}`" for x in names if x != "self") or "nothing"
        only = f", and by name {row(by_name)}" if by_name else ""
        message = (
            f"`{cls.__name__}.{method.__name__}` takes {row(own.parameters)}; as the method of "
            f"`{base.__name__}`, it must take {row(in_order)}{only}."
        )
        raise TypeError(message) from None


def _checked(method: Callable, abstract: Callable, name: str) -> Callable:
    """Returns a method that says in one line if what it returns is of another kind."""

    @functools.wraps(method)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result, hint = method(*args, **kwargs), _result_hint(abstract)
        # A plain number stands for the array that it becomes.
        number = isinstance(result, bool | int | float | np.ndarray | np.generic)
        if not fits(result, hint) and not (number and fits(jnp.asarray(result), hint)):
            raise TypeError(f"{name} returned {describe(result)}; it must return {wanted(hint)}.")
        return result

    return wrapper


@functools.cache
def _result_hint(abstract: Callable) -> Any:
    try:
        return typing.get_type_hints(inspect.unwrap(abstract)).get("return", Any)
    except NameError:
        return Any
