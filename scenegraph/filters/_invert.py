from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ._pixels import AbstractPixelFilter


class Invert(AbstractPixelFilter):
    """The negative of a picture: every colour `c` becomes `1 - c`."""

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        return 1 - rgb
