from ..images import Image
from ._base import AbstractFilter


class Chain(AbstractFilter):
    """Several filters, one after the other.

    **Arguments:**

    - `filters`: in order.
    """

    filters: tuple[AbstractFilter, ...]

    def __call__(self, image: Image) -> Image:
        for one in self.filters:
            image = one(image)
        return image
