import equinox as eqx

from .._typing import Array, Float
from ..images import Image
from ..numerics import as_float_leaf
from ._base import AbstractFilter, change_light


class ToneMap(AbstractFilter):
    """Compression of bright light: dark tones stay, and light of `white` becomes one.

    **Arguments:**

    - `white`: the linear light that becomes one, channel by channel; positive.

    **Source:** Reinhard et al. 2002, "Photographic Tone Reproduction", equation 4.
    """

    white: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=4.0)

    def __call__(self, image: Image) -> Image:
        # Equation 4: L (1 + L / white^2) / (1 + L).
        return change_light(image, lambda x: x * (1 + x / self.white**2) / (1 + x))
