"""Inputs of materials: numbers, or shaders of which one channel counts."""

from typing import Any

from .._typing import Scalar, Vector
from ..numerics import as_float_leaf, require_fraction, unfreeze
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting


def as_input(value: Any) -> Any:
    """Converts a number to a leaf; shaders stay as they are."""
    return value if isinstance(unfreeze(value), AbstractShader) else as_float_leaf(value)


def as_optional_input(value: Any) -> Any:
    """Converts a number to a leaf; shaders and `None` stay."""
    return None if value is None else as_input(value)


def as_optional_shader(value: Any) -> Any:
    """Converts a colour to a shader; `None` stays."""
    return None if value is None else as_shader(value)


def read_input(
    value: Scalar | AbstractShader, channel: int, hit: Hit, view: Vector, lights: Irradiance
) -> Scalar:
    """Returns a number as it is, and of a shader one channel at a hit."""
    if isinstance(value, AbstractShader):
        return value(hit, view, lights)[channel]
    return value


def require_fraction_inputs(owner: Any, *names: str) -> None:
    """Refuses numbers, and constant colours, that are not between 0 and 1."""
    shaders = [x for x in names if isinstance(unfreeze(getattr(owner, x)), AbstractShader)]
    require_reflecting(owner, *shaders)
    require_fraction(owner, *(x for x in names if x not in shaders))
