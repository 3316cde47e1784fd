import dataclasses
import functools
import typing

import equinox as eqx
from jaxtyping import AbstractArray, jaxtyped

from .._typing import typecheck_enabled


@functools.lru_cache(maxsize=None)
def _array_fields(cls: type) -> dict[str, typing.Any]:
    hints = typing.get_type_hints(cls)
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(cls)
        if isinstance(hints[field.name], type) and issubclass(hints[field.name], AbstractArray)
    }


class AbstractModule(eqx.Module):
    """An Equinox Module whose array fields are checked against their annotated shapes.

    The check runs once, at construction, after converters; the fields of one Module share their
    dimension names. It is off when the environment variable `SCENEGRAPH_TYPECHECK` is `0`.
    """

    def __check_init__(self):
        if typecheck_enabled():
            with jaxtyped("context"):
                for name, annotation in _array_fields(type(self)).items():
                    _check_field(self, name, annotation)


def _check_field(module: AbstractModule, name: str, annotation: typing.Any) -> None:
    value = getattr(module, name)
    if not isinstance(value, annotation):
        got = f"{value.dtype}{list(value.shape)}" if eqx.is_array(value) else repr(value)
        raise TypeError(
            f"`{type(module).__name__}.{name}` must be {annotation.dtypes[0]}-like of shape "
            f"({annotation.dim_str}); got {got}."
        )
