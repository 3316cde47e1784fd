import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float
from ..images import Image
from ..numerics import as_float_leaf
from ._base import AbstractFilter


class Gamma(AbstractFilter):
    """A power of every number of the picture; numbers of zero and below stay as they are.

    **Arguments:**

    - `exponent`: the power, positive; above one it darkens middle tones.
    """

    exponent: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=1.0)

    def __call__(self, image: Image) -> Image:
        positive = image.rgb > 0
        powers = jnp.where(positive, image.rgb, 1.0) ** self.exponent
        return eqx.tree_at(lambda i: i.rgb, image, jnp.where(positive, powers, image.rgb))
