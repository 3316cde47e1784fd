import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ._pixels import AbstractPixelFilter


# The primaries are moved together before the curve, and apart again after it; rows are outputs.
_TOGETHER = np.array(
    [
        [0.842479062253094, 0.0784335999999992, 0.0792237451477643],
        [0.0423282422610123, 0.878468636469772, 0.0791661274605434],
        [0.0423756549057051, 0.0784336, 0.879142973793104],
    ]
)
_APART = np.array(
    [
        [1.19687900512017, -0.0980208811401368, -0.0990297440797205],
        [-0.0528968517574562, 1.15190312990417, -0.0989611768448433],
        [-0.0529716355144438, -0.0980434501171241, 1.15107367264116],
    ]
)
# Binary logarithms of the light that becomes black and of that which becomes white.
_DARKEST, _BRIGHTEST = -12.47393, 4.026069
# The curve's polynomial, the highest power first.
_CURVE = (15.5, -40.14, 31.96, -6.868, 0.4298, 0.1191, -0.00232)


class AgxToneMap(AbstractPixelFilter):
    """Compression of bright light by AgX: bright colours fade to white and keep their hue.

    Light below 0.0002 becomes black, and above 16.3 white (0.997): there, pixels have no gradient.
    Light of 0.18 becomes 0.21. `Exposure` before it makes the picture darker or brighter.

    **Source:** Sobotka 2022, "AgX"; the polynomial of its curve is that of Wrensch 2023, "Minimal
    AgX Implementation".

    Example: a red lamp that looks bright.

    ```python
    lamp = sg.Image(jnp.broadcast_to(jnp.array([12.0, 0.5, 0.2]), (4, 6, 3)))
    image = sg.AgxToneMap()(lamp)
    ```
    """

    def pixel(self, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace) -> Color:
        light = space.to_linear(rgb)
        light = jnp.clip(_times(_TOGETHER, light), 2.0**_DARKEST, 2.0**_BRIGHTEST)
        # x = (log2 L - a) / (b - a)
        exposure = (jnp.log2(light) - _DARKEST) / (_BRIGHTEST - _DARKEST)
        curve = jnp.polyval(jnp.asarray(_CURVE, light.dtype), exposure)
        numbers = _times(_APART, curve)
        # The numbers are encoded by a power of 1 / 2.2.
        positive = numbers > 0
        return space.from_linear(jnp.where(positive, jnp.where(positive, numbers, 1) ** 2.2, 0))


def _times(matrix: np.ndarray, color: Color) -> Color:
    """Returns a matrix times a colour, by multiplications that no device rounds more coarsely."""
    return jnp.sum(jnp.asarray(matrix, color.dtype) * color, axis=-1)
