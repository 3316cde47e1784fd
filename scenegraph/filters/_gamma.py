import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ..numerics import as_float_leaf
from ._pixels import AbstractPixelFilter


class Gamma(AbstractPixelFilter):
    """A power of every number of the picture; numbers of zero and below stay as they are.

    **Arguments:**

    - `exponent`: the power, positive; above one it darkens middle tones.
    """

    exponent: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=1.0)

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        positive = rgb > 0
        # d x^e / de = x^e log(x), which at zero is 0 times infinity.
        powers = jnp.where(positive, rgb, 1.0) ** self.exponent
        return jnp.where(positive, powers, rgb)
