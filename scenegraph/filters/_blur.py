import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..images import Image
from ..numerics import as_float_leaf
from ._base import AbstractFilter


class Blur(AbstractFilter):
    """A Gaussian blur of colours and opacity; at the edges it averages what there is.

    **Arguments:**

    - `sigma`: standard deviation, in pixels; a leaf like any other. Zero does nothing.
    """

    sigma: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=1.0)

    def __call__(self, image: Image) -> Image:
        rows, columns = (_weights(self.sigma, n) for n in (image.height, image.width))

        def blur(plane: Float[Array, "height width"]) -> Float[Array, "height width"]:
            return rows @ plane @ columns.T

        rgb = jax.vmap(blur, in_axes=-1, out_axes=-1)(image.rgb)
        blurred = eqx.tree_at(lambda i: i.rgb, image, rgb)
        if image.alpha is None:
            return blurred
        return eqx.tree_at(lambda i: i.alpha, blurred, blur(image.alpha))


def _weights(sigma: Scalar, count: int) -> Float[Array, "count count"]:
    """Of every pixel of a line in every other one; each row adds up to one."""
    places = jnp.arange(count, dtype=sigma.dtype)
    squares = (places[:, None] - places) ** 2
    precision = 0.5 / jnp.maximum(sigma**2, 1e-6)
    return jax.nn.softmax(-precision * squares, axis=1)
