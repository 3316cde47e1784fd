from collections.abc import Callable

import equinox as eqx

from .._typing import Array, Float
from ..images import Image


def change_light(
    image: Image, change: Callable[[Float[Array, "height width 3"]], Float[Array, "height width 3"]]
) -> Image:
    """Applies a function to a picture's linear light, in whichever colour space it is."""
    light = change(image.space.to_linear(image.rgb))
    return eqx.tree_at(lambda i: i.rgb, image, image.space.from_linear(light))
