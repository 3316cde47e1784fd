import equinox as eqx

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ..numerics import as_float_leaf, dot
from ._pixels import AbstractPixelFilter


class Vignette(AbstractPixelFilter):
    """Darkening towards the corners, as by a lens.

    **Arguments:**

    - `strength`: the squared tangent of the corners' angle to the optical axis; at zero nothing
      changes, at one the corners keep a quarter of their light.

    **Source:** the cosine-fourth law.
    """

    strength: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=0.3)

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        # cos(angle)^4 = (1 + tan(angle)^2)^-2
        light_left = (1 + self.strength * dot(place, place)) ** -2
        return space.from_linear(space.to_linear(rgb) * light_left)
