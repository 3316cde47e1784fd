"""Filters: differentiable functions from picture to picture."""

from ._base import AbstractFilter as AbstractFilter
from ._blur import Blur as Blur
from ._chain import Chain as Chain
from ._exposure import Exposure as Exposure
from ._gamma import Gamma as Gamma
from ._invert import Invert as Invert
from ._picture import Picture as Picture
from ._tone_map import ToneMap as ToneMap
from ._vignette import Vignette as Vignette
