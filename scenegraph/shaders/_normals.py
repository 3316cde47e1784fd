from typing import ClassVar

from .._typing import Color, Vector
from ..rays import Hit, Irradiance
from ._base import AbstractShader


class Normals(AbstractShader):
    """The surface's normal as a colour, `(normal + 1) / 2`, independent of light."""

    needs_light_behind: ClassVar[bool] = False

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        return 0.5 * hit.normal + 0.5
