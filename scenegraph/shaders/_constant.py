from typing import Any

import equinox as eqx

from .._typing import Color, Vector
from ..numerics import as_float_leaf, is_frozen, require_finite
from ..rays import Hit, Irradiance
from ._base import AbstractShader


class Constant(AbstractShader):
    """One colour everywhere, independent of light.

    **Arguments:**

    - `color`: red, green and blue.
    """

    color: Color = eqx.field(converter=as_float_leaf)

    def __check_init__(self):
        require_finite(self, "color")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del hit, view, lights
        return self.color


def as_shader(value: Any) -> Any:
    """Converts a colour (three numbers) to a `Constant`; shaders stay as they are."""
    shader = value.value if is_frozen(value) else value
    return value if isinstance(shader, AbstractShader) else Constant(value)
