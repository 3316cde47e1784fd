import abc

from ..images import Image
from ..numerics import AbstractModule


class AbstractFilter(AbstractModule):
    """Makes one picture from another, differentiably."""

    @abc.abstractmethod
    def __call__(self, image: Image) -> Image:
        """Filters a picture.

        **Arguments:**

        - `image`: the picture.

        **Returns:**

        The new picture; what the filter does not touch stays.
        """
