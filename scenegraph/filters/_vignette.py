import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float
from ..images import Image
from ..numerics import as_float_leaf
from ._base import AbstractFilter, change_light


class Vignette(AbstractFilter):
    """Darkening towards the corners, as by a lens.

    **Arguments:**

    - `strength`: the squared tangent of the corners' angle to the optical axis; at zero nothing
      changes, at one the corners keep a quarter of their light.

    **Source:** the cosine-fourth law.
    """

    strength: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=0.3)

    def __call__(self, image: Image) -> Image:
        y, x = (jnp.arange(n) + 0.5 - n / 2 for n in (image.height, image.width))
        squares = (y[:, None] ** 2 + x**2) / ((image.height**2 + image.width**2) / 4)
        # cos(angle)^4 = (1 + tan(angle)^2)^-2
        light_left = (1 + self.strength * squares) ** -2
        return change_light(image, lambda light: light * light_left[..., None])
