from typing import ClassVar

import equinox as eqx

from .._typing import Color, Vector
from ..rays import Hit, Irradiance
from ._albedo import AbstractAlbedoShader, albedo_of
from ._base import AbstractShader
from ._constant import as_shader


class VertexColor(AbstractAlbedoShader):
    """The colours of a mesh's vertices, interpolated over its faces; white on other shapes.

    Where a pixel covers several faces, it is the colour at the pixel's middle.

    **Arguments:**

    - `shader`: a shader or a colour that multiplies them, such as a texture.
    """

    shader: AbstractShader = eqx.field(converter=as_shader, default=(1.0, 1.0, 1.0))

    needs_light_behind: ClassVar[bool] = False

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        return _times_vertices(hit, self.shader(hit, view, lights))

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return _times_vertices(hit, albedo_of(self.shader, hit, view))


def _times_vertices(hit: Hit, color: Color) -> Color:
    return color if hit.color is None else hit.color * color
