"""Filters: differentiable functions from picture to picture.

Read `_base` and `_pixels` first, of filters that change each pixel by itself; then any filter.
`_chain` strings them together, `_develop` applies them to a few pixels of several pictures.
"""

from ._aces import AcesToneMap as AcesToneMap
from ._agx import AgxToneMap as AgxToneMap
from ._base import AbstractFilter as AbstractFilter
from ._blur import Blur as Blur
from ._chain import Chain as Chain
from ._exposure import Exposure as Exposure
from ._gamma import Gamma as Gamma
from ._invert import Invert as Invert
from ._picture import Picture as Picture
from ._pixels import AbstractPixelFilter as AbstractPixelFilter
from ._tone_map import ToneMap as ToneMap
from ._vignette import Vignette as Vignette

# Internal: for other packages of the library, and for none of its users.
from ._develop import filter_pixel, require_pixel_filter
from ._pixels import relative_place

from .._first_use import finish_import


finish_import(__name__)
