"""Run-time checks of shapes and types, applied to the whole library once it is imported."""

import functools
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from jaxtyping import AbstractArray, jaxtyped, PyTree, TypeCheckError


_METHODS = (classmethod, staticmethod, property)


def check_calls(package: str) -> None:
    """Checks every call of a package's annotated functions and methods, whoever calls them."""
    modules = [m for name, m in sys.modules.items() if f"{name}.".startswith(f"{package}.")]
    checked = functools.cache(_checked)
    for owner in (*modules, *_classes(modules, package)):
        for name, value in list(vars(owner).items()):
            if _is_public(name) and _is_annotated(value, package):
                setattr(owner, name, checked(value))


def _classes(modules: list[types.ModuleType], package: str) -> Iterator[type]:
    found = (value for module in modules for value in vars(module).values())
    return iter({x for x in found if isinstance(x, type) and _belongs(x, package)})


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__")


def _belongs(value: Any, package: str) -> bool:
    return f"{getattr(value, '__module__', None)}.".startswith(f"{package}.")


def _is_annotated(value: Any, package: str) -> bool:
    function = _innermost(value)
    ours = isinstance(function, types.FunctionType) and _belongs(function, package)
    return ours and (bool(function.__annotations__) or function.__name__ == "__init__")


def _innermost(value: Any) -> Any:
    """The function inside a method, a property or a transformed function."""
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    return getattr(value, "__wrapped__", value)


def _checked(value: Any) -> Any:
    checked = _lazily_checked(_innermost(value) if isinstance(value, _METHODS) else value)
    return type(value)(checked) if isinstance(value, _METHODS) else checked


def _lazily_checked(function: Callable) -> Callable:
    checked = None

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        nonlocal checked
        if checked is None:
            plain = _as_function(function)
            checked = _with_shapes(plain) if _has_shapes(plain) else _beartype()(plain)
        return checked(*args, **kwargs)

    return wrapper


def _with_shapes(function: Callable) -> Callable:
    return jaxtyped(function, typechecker=_beartype())


def _has_shapes(function: Callable) -> bool:
    """Returns true if annotations name axes; remembering these takes most of a check."""
    return any(map(_names_axes, function.__annotations__.values()))


def _names_axes(annotation: Any) -> bool:
    is_array = isinstance(annotation, type) and issubclass(annotation, AbstractArray)
    is_tree = isinstance(annotation, type(PyTree)) and annotation is not PyTree
    # What is written as text may be anything.
    unknown = isinstance(annotation, str)
    return is_array or is_tree or unknown or any(map(_names_axes, typing.get_args(annotation)))


def _as_function(value: Callable) -> Callable:
    """A plain function in place of a transformed one, which is an object."""
    if isinstance(value, types.FunctionType):
        return value
    return functools.wraps(_innermost(value))(lambda *args, **kwargs: value(*args, **kwargs))


def _beartype() -> Callable:
    from beartype import beartype, BeartypeConf

    # An int is welcome where a float is annotated, as Python's type rules have it.
    return beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeCheckError))
