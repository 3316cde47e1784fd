from typing import Any

import equinox as eqx

from .._typing import Color, Vector
from ..numerics import as_float_leaf
from ..rays import Hit
from ._base import AbstractShader


class Constant(AbstractShader):
    """One colour everywhere, whatever the light.

    **Arguments:**

    - `color`: red, green, blue.
    """

    color: Color = eqx.field(converter=as_float_leaf)

    def __call__(self, hit: Hit, view: Vector, lights: Any) -> Color:
        del hit, view, lights
        return self.color
