from .._typing import Array, Color, Float
from ..images import AbstractColorSpace
from ._base import AbstractFilter
from ._chain import Chain
from ._pixels import AbstractPixelFilter


def require_pixel_filter(filter: AbstractFilter, place: str) -> None:
    """Refuses a filter, or a chain with one, that mixes pixels."""
    if isinstance(filter, Chain):
        for one in filter.filters:
            require_pixel_filter(one, place)
    elif not isinstance(filter, AbstractPixelFilter):
        raise TypeError(
            f"{place} must change each pixel by itself, as an `AbstractPixelFilter` does; a "
            f"{type(filter).__name__} needs the whole picture."
        )


def filter_pixel(
    filter: AbstractFilter, rgb: Color, place: Float[Array, "2"], space: AbstractColorSpace
) -> Color:
    """Applies a filter of pixels, or a chain of them, to one pixel."""
    if isinstance(filter, AbstractPixelFilter):
        return filter.pixel(rgb, place, space)
    assert isinstance(filter, Chain)
    for one in filter.filters:
        rgb = filter_pixel(one, rgb, place, space)
    return rgb
