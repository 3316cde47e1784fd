"""Filters: picture to picture."""

from ._base import AbstractFilter as AbstractFilter
from ._invert import Invert as Invert
