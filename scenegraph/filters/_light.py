from collections.abc import Callable

import equinox as eqx

from .._typing import Array, Float
from ..images import Image


def change_light(
    image: Image, change: Callable[[Float[Array, "height width 3"]], Float[Array, "height width 3"]]
) -> Image:
    """Changes a picture's linear light, whatever numbers it holds.

    **Arguments:**

    - `image`: in any colour space.
    - `change`: from light to light.

    **Returns:**

    The picture in the same space.
    """
    light = change(image.space.to_linear(image.rgb))
    return eqx.tree_at(lambda i: i.rgb, image, image.space.from_linear(light))
