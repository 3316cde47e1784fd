import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace, Image
from ._base import AbstractFilter


class AbstractPixelFilter(AbstractFilter):
    """A filter that changes each pixel by itself, so that a few pixels can be filtered alone."""

    @abc.abstractmethod
    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        """Filters one pixel.

        **Arguments:**

        - `rgb`: its colour, `3`.
        - `place`: its centre, right and down from the middle of the picture, in halves of the
          picture's diagonal, `2`.
        - `space`: the colour space of `rgb`.

        **Returns:**

        The new colour, in the same space, `3`.
        """

    def __call__(self, image: Image) -> Image:
        rows, columns = (jnp.arange(n) + 0.5 for n in (image.height, image.width))
        pixels = jnp.stack(jnp.meshgrid(columns, rows), axis=-1).astype(image.rgb.dtype)
        places = relative_place(pixels, jnp.asarray([image.width, image.height]))
        filtered = jax.vmap(jax.vmap(lambda rgb, place: self.pixel(rgb, place, image.space)))
        return eqx.tree_at(lambda i: i.rgb, image, filtered(image.rgb, places))


def relative_place(pixel: Float[Array, "*rays 2"], size: Array) -> Float[Array, "*rays 2"]:
    """Returns the places of pixels from the picture's middle, in halves of its diagonal."""
    # (p - size / 2) / (|size| / 2): corners are at distance one.
    size = size.astype(pixel.dtype)
    return (pixel - size / 2) / (jnp.sqrt(jnp.sum(size**2, axis=-1, keepdims=True)) / 2)
