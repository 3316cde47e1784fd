from typing import Any

import equinox as eqx

from .._words import describe
from ..images import Image
from ._base import AbstractFilter


def _as_filters(value: Any) -> tuple[AbstractFilter, ...]:
    filters = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(one, AbstractFilter) for one in filters):
        raise TypeError(f"filters are wanted; got {describe(value)}")
    return filters


class Chain(AbstractFilter):
    """Several filters, one after the other.

    **Arguments:**

    - `filters`: the filters, in the order of their application; or one alone.
    """

    filters: tuple[AbstractFilter, ...] = eqx.field(converter=_as_filters)

    def __call__(self, image: Image) -> Image:
        for one in self.filters:
            image = one(image)
        return image
