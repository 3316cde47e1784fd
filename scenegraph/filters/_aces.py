import jax.numpy as jnp

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ._pixels import AbstractPixelFilter


class AcesToneMap(AbstractPixelFilter):
    """Compression of bright light as film does it, with more contrast than `ToneMap`.

    A fit of the curve of the Academy Color Encoding System (ACES), channel by channel. Light of
    0.18 becomes 0.27, of 1 it becomes 0.80, of 7.2 it becomes one; brighter light becomes up to
    1.033, which files cut off. `Exposure` before it makes the picture darker or brighter.

    **Source:** Narkowicz 2015, "ACES Filmic Tone Mapping Curve".

    Example: a sun in the picture, one stop darker.

    ```python
    bright = sg.Image(jnp.full((4, 6, 3), 20.0))
    image = sg.Chain([sg.Exposure(-1.0), sg.AcesToneMap()])(bright)
    ```
    """

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        light = space.to_linear(rgb)
        positive = jnp.maximum(light, 0)
        # L (2.51 L + 0.03) / (L (2.43 L + 0.59) + 0.14)
        curve = positive * (2.51 * positive + 0.03) / (positive * (2.43 * positive + 0.59) + 0.14)
        # Below zero, the curve's tangent at zero.
        return space.from_linear(jnp.where(light > 0, curve, 0.03 / 0.14 * light))
