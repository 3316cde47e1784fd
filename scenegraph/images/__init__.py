"""The picture record, colour spaces and resizing."""

from ._color import (
    as_color as as_color,
    linear_to_srgb as linear_to_srgb,
    srgb_to_linear as srgb_to_linear,
)
from ._image import (
    as_bytes as as_bytes,
    Image as Image,
    Linear as Linear,
    side_by_side as side_by_side,
    SRGB as SRGB,
)

# Internal: for other packages of the library, and for none of its users.
from ._color import by_table, was_decoded
from ._color_maps import color_map
from ._error_panels import ERROR_MAP, error_panels, ERROR_SCALE
from ._image import AbstractColorSpace, as_light, srgb_numbers
from ._published import published_suite
from ._resize import shrink
from ._visualise import depth_limits, Quantity, visualise

from .._first_use import finish_import


finish_import(__name__)
