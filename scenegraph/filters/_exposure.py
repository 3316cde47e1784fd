import equinox as eqx

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ..numerics import as_float_leaf
from ._pixels import AbstractPixelFilter


class Exposure(AbstractPixelFilter):
    """A change of exposure, as by a longer shutter time.

    **Arguments:**

    - `stops`: the exponent; linear light is multiplied by `2**stops`.
    """

    stops: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=0.0)

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        return space.from_linear(space.to_linear(rgb) * 2.0**self.stops)
