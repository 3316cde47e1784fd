import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float
from ..images import Image
from ..numerics import as_float_leaf, matmul
from ._base import AbstractFilter


class Blur(AbstractFilter):
    """A Gaussian blur of colours and opacity, whose kernel is renormalised at the borders.

    **Arguments:**

    - `sigma`: standard deviation, in pixels; a leaf like any other. Zero leaves the picture as is.
    """

    sigma: Float[Array, ""] = eqx.field(converter=as_float_leaf, default=1.0)

    def __call__(self, image: Image) -> Image:
        rows, columns = self._weights(image.height), self._weights(image.width)

        def blur(plane: Float[Array, "height width"]) -> Float[Array, "height width"]:
            # A Gaussian is separable: K_y P K_x^T.
            return matmul(matmul(rows, plane), columns.T)

        rgb = jax.vmap(blur, in_axes=-1, out_axes=-1)(image.rgb)
        blurred = eqx.tree_at(lambda i: i.rgb, image, rgb)
        if image.alpha is None:
            return blurred
        return eqx.tree_at(lambda i: i.alpha, blurred, blur(image.alpha))

    def _weights(self, count: int) -> Float[Array, "count count"]:
        # exp(-(i - j)^2 / (2 sigma^2)), normalised in each row: a softmax.
        pixels = jnp.arange(count, dtype=self.sigma.dtype)
        squares = (pixels[:, None] - pixels) ** 2
        precision = 0.5 / jnp.maximum(self.sigma**2, 1e-6)
        return jax.nn.softmax(-precision * squares, axis=1)
