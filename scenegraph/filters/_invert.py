import equinox as eqx

from ..images import Image
from ._base import AbstractFilter


class Invert(AbstractFilter):
    """The negative of a picture: every colour `c` becomes `1 - c`."""

    def __call__(self, image: Image) -> Image:
        return eqx.tree_at(lambda i: i.rgb, image, 1 - image.rgb)
