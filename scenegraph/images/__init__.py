"""The picture record, colour spaces and resizing."""

from ._color import linear_to_srgb as linear_to_srgb, srgb_to_linear as srgb_to_linear
from ._color_maps import color_map as color_map
from ._error_panels import (
    ERROR_MAP as ERROR_MAP,
    error_panels as error_panels,
    ERROR_SCALE as ERROR_SCALE,
)
from ._image import (
    AbstractColorSpace as AbstractColorSpace,
    as_bytes as as_bytes,
    Image as Image,
    Linear as Linear,
    side_by_side as side_by_side,
    SRGB as SRGB,
    srgb_numbers as srgb_numbers,
)
from ._published import published_suite as published_suite
from ._resize import shrink as shrink
from ._shown import depth_limits as depth_limits, Shown as Shown, shown_as as shown_as
