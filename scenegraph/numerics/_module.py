import dataclasses
import functools
import typing

import equinox as eqx
import numpy as np
from jaxtyping import AbstractArray, jaxtyped

from .._typing import typecheck_enabled
from ._frozen import is_frozen
from ._overrides import check_overrides
from ._tied import is_tied


@functools.cache
def _array_fields(cls: type) -> dict[str, typing.Any]:
    hints = typing.get_type_hints(cls)
    fields = {field.name: _array_hint(hints[field.name]) for field in dataclasses.fields(cls)}
    return {name: hint for name, hint in fields.items() if hint is not None}


def _array_hint(hint: typing.Any) -> typing.Any:
    """Returns the annotation of an array, also where `None` or a Module may take its place."""
    kinds = [x for x in typing.get_args(hint) if x is not type(None)] or [hint]
    classes = [x for x in kinds if isinstance(x, type)]
    arrays = [x for x in classes if issubclass(x, AbstractArray)]
    others = [x for x in classes if issubclass(x, eqx.Module)]
    return arrays[0] if len(arrays) == 1 and len(arrays + others) == len(kinds) else None


class AbstractModule(eqx.Module, is_abstract=True):
    """An Equinox Module whose array fields are checked against their annotated shapes.

    The check runs once, at construction, after converters; the fields of one Module share their
    dimension names. Methods that a user writes in place of abstract ones must take the same
    arguments and return the same kinds. It is off when the environment variable
    `SCENEGRAPH_TYPECHECK` is `0`.
    """

    def __init_subclass__(cls):
        check_overrides(cls)

    def __check_init__(self):
        if not typecheck_enabled():
            return
        every = _array_fields(type(self)).items()
        fields = {name: hint for name, hint in every if not _is_other(self, name)}
        # Not in a function of its own: every annotated function has dimension names of its own.
        with jaxtyped("context"):
            wrong = [name for name in fields if not isinstance(_unfrozen(self, name), fields[name])]
        if wrong:
            raise TypeError(_message(self, wrong[0], fields[wrong[0]]))


def wrong_field(module: AbstractModule) -> tuple[str, str] | None:
    """Returns a field that holds no array as it is annotated, and a message; `None` for none."""
    fields = _array_fields(type(module))
    values = {name: _unfrozen(module, name) for name in fields}
    missing = [x for x in fields if values[x] is None and not _may_be_none(type(module), x)]
    there = {name: hint for name, hint in fields.items() if not _is_other(module, name)}
    with jaxtyped("context"):
        wrong = [name for name in there if not _fits(values[name], there[name])]
    for name in missing + wrong:
        return name, _message(module, name, fields[name]) + _remedy(values[name], fields[name])
    return None


# Not annotated, so that the fields of a module share their dimension names.
def _fits(value, annotation):  # noqa: ANN001, ANN202
    """Returns true for an array as annotated, one of NumPy included."""
    if isinstance(value, np.ndarray | np.generic):
        value, annotation = np.asarray(value), _numpy_annotation(annotation)
    return isinstance(value, annotation)


@functools.cache
def _numpy_annotation(annotation: typing.Any) -> typing.Any:
    return annotation.dtype[np.ndarray, annotation.dim_str]


def _may_be_none(cls: type, name: str) -> bool:
    return type(None) in typing.get_args(_hints(cls)[name])


@functools.cache
def _hints(cls: type) -> dict[str, typing.Any]:
    return typing.get_type_hints(cls)


def _remedy(value: typing.Any, annotation: typing.Any) -> str:
    """Returns what to do with a number, or with a stack of what is annotated."""
    if isinstance(value, int | float):
        return " `sg.replace` puts numbers in, and converts them."
    if not eqx.is_array(value) or not value.ndim or not value.shape[0]:
        return ""
    with jaxtyped("context"):
        stacked = isinstance(value[0], annotation)
    count = value.shape[0]
    return f" It is a stack of {count}: `eqx.filter_vmap` renders one after the other." * stacked


def _is_other(module: AbstractModule, name: str) -> bool:
    """Returns true if a field holds what may take the place of an array."""
    value = _unfrozen(module, name)
    return value is None or is_tied(value) or isinstance(value, _modules(type(module))[name])


@functools.cache
def _modules(cls: type) -> dict[str, tuple[type, ...]]:
    """Returns the classes of Modules that may take the place of arrays."""
    hints = typing.get_type_hints(cls)
    kinds = {name: typing.get_args(hints[name]) for name in _array_fields(cls)}
    is_module = lambda kind: isinstance(kind, type) and issubclass(kind, eqx.Module)
    return {name: tuple(filter(is_module, every)) for name, every in kinds.items()}


def _unfrozen(module: AbstractModule, name: str) -> typing.Any:
    value = getattr(module, name)
    return value.value if is_frozen(value) else value


def _message(module: AbstractModule, name: str, annotation: typing.Any) -> str:
    kind = annotation.dtype.__name__.lower()
    others = [other for other in _array_fields(type(module)) if other != name]
    beside = ", ".join(f"`{other}` {_shape(getattr(module, other))}" for other in others)
    return (
        f"`{type(module).__name__}.{name}` must be a {kind} array of shape "
        f"({annotation.dim_str}); got {_shape(getattr(module, name))}"
        f"{beside and ' beside '}{beside}."
    )


def _shape(value: typing.Any) -> str:
    return f"{value.dtype}{list(value.shape)}" if eqx.is_array(value) else repr(value)
