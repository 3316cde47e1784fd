from ..images import Image
from ._base import AbstractFilter


class Chain(AbstractFilter):
    """Several filters, one after the other.

    **Arguments:**

    - `filters`: the filters, in the order of their application.
    """

    filters: tuple[AbstractFilter, ...]

    def __call__(self, image: Image) -> Image:
        for one in self.filters:
            image = one(image)
        return image
