"""The resolutions of a grid's levels, by the size of the pixels that see its box."""

import math

import numpy as np

from ..data import Ball, Views
from ..pixels import frame_lines, known_cameras
from ._volumes import Corners


# The resolution of the first level, and the least and the largest number of levels after it.
_COARSEST, _DOUBLINGS = 16, (3, 6)


def choose_resolutions(views: Views, box: Corners | Ball) -> tuple[int, ...]:
    """Returns levels, each twice as fine, until a cell is about as wide as a pixel."""
    # The power of two that is the nearest to the number of pixels along the box, in ratio.
    doublings = round(math.log2(_pixels_along(views, box) / _COARSEST))
    least, most = _DOUBLINGS
    finest = min(max(doublings, least), most)
    return tuple(_COARSEST * 2**level for level in range(finest + 1))


def _pixels_along(views: Views, box: Corners | Ball) -> float:
    """Returns how many pixels lie side by side along a box's longest side, seen at its middle."""
    cameras = known_cameras(views)
    middles = np.stack([views.widths, views.heights], axis=-1) / 2
    origins, axes = frame_lines(cameras, middles)
    _, beside = frame_lines(cameras, middles + np.array([1.0, 0.0]))
    angles = np.linalg.norm(beside - axes, axis=1)
    if isinstance(box, Ball):
        # Contracted space is two balls wide to either side.
        return 4 / float(np.median(angles))
    lower, upper = box
    # The width of a pixel there: distance * angle between two pixels.
    distance = np.linalg.norm(origins - (lower + upper) / 2, axis=1)
    width = np.median(distance * angles)
    return float(np.max(upper - lower) / width)
