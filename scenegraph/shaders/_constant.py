from typing import Any, ClassVar

import equinox as eqx

from .._typing import Color, Vector
from ..images import as_color
from ..numerics import is_frozen, is_tied, require_finite, require_fraction, unfreeze
from ..rays import Hit, Irradiance
from ._base import AbstractShader


class Constant(AbstractShader):
    """One colour everywhere, independent of light.

    **Arguments:**

    - `color`: red, green and blue; or a name or hexadecimal number, as in `images.as_color`.
    """

    color: Color = eqx.field(converter=as_color)

    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_finite(self, "color")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del hit, view, lights
        return self.color


def as_shader(value: Any) -> Any:
    """Converts a colour (three numbers, or a name) to a `Constant`; shaders stay as they are."""
    shader = value.value if is_frozen(value) else value
    if isinstance(shader, AbstractShader):
        return value
    color = value if is_tied(value) else as_color(value)
    if not is_tied(color) and color.shape != (3,):
        raise TypeError(
            f"a shader is wanted, or a colour of three numbers; got {color.dtype}"
            f"{list(color.shape)}"
        )
    return Constant(color)


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
