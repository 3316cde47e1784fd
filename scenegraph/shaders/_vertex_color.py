from .._typing import Color, Vector
from ..rays import Hit, Irradiance
from ._base import AbstractShader


class VertexColor(AbstractShader):
    """The colours that a mesh has at its vertices, interpolated; white on other shapes."""

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        return hit.color
