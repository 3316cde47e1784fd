from typing import Any

import equinox as eqx

from .._typing import Color, Vector
from ..numerics import as_float_leaf, is_frozen, require_finite, require_fraction, unfreeze
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


def require_reflecting(owner: Any, *names: str) -> None:
    """Refuses constant colours that reflect more light than arrives, or less than none."""
    for name in names:
        shader = unfreeze(getattr(owner, name))
        if isinstance(shader, Constant):
            try:
                require_fraction(shader, "color")
            except ValueError as error:
                message = str(error).replace("Constant.color", f"{type(owner).__name__}.{name}")
                raise ValueError(message) from None
