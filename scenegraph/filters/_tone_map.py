import equinox as eqx

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ..numerics import as_float_leaf
from ._pixels import AbstractPixelFilter


class ToneMap(AbstractPixelFilter):
    """Compression of bright light: dark tones stay, and light of `white` becomes one.

    **Arguments:**

    - `white`: the linear light that becomes one, channel by channel; positive.

    **Source:** Reinhard et al. 2002, "Photographic Tone Reproduction", equation 4.
    """

    white: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=4.0)

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        # Equation 4: L (1 + L / white^2) / (1 + L).
        light = space.to_linear(rgb)
        return space.from_linear(light * (1 + light / self.white**2) / (1 + light))
