import equinox as eqx

from .._typing import Array, Float
from ..images import Image
from ..numerics import as_float_leaf
from ._base import AbstractFilter, change_light


class Exposure(AbstractFilter):
    """A change of exposure, as by a longer shutter time.

    **Arguments:**

    - `stops`: the exponent; linear light is multiplied by `2**stops`.
    """

    stops: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=0.0)

    def __call__(self, image: Image) -> Image:
        return change_light(image, lambda light: light * 2.0**self.stops)
