"""Points of a reconstruction, and the pixels in which it found them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .._typing import Float, Int
from ..pixels import Sightings


# So many say where a scene's surfaces are; and indices of more pixels are no `int32`.
_MOST, _PIXELS = 2**20, 2**31


class SeenPoints(NamedTuple):
    """The points that a picture shows, and where."""

    places: Float[np.ndarray, "seen 2"]  # in pixels of the lens
    points: Float[np.ndarray, "seen 3"]  # in the world


def find_sightings(
    seen: Sequence[SeenPoints | None],
    scales: Float[np.ndarray, "frames 2"],
    sizes: Int[np.ndarray, "frames 2"],
) -> Sightings | None:
    """Finds the pixels that show points; `None` if no picture shows any.

    A picture's places are scaled by `scales`, width and height, to pictures of `sizes`. Those
    outside of it show nothing.
    """
    counts = np.prod(sizes.astype(np.int64), axis=1)
    starts = np.cumsum(counts) - counts
    pixels, points = [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for one, scale, size, start in zip(seen, scales, sizes, starts, strict=True):
        if one is None:
            continue
        # Pixel (column, row) reaches from there to (column + 1, row + 1).
        column, row = np.floor(one.places * scale).T
        inside = (column >= 0) & (row >= 0) & (column < size[0]) & (row < size[1])
        pixels.append((start + row * size[0] + column)[inside].astype(np.int64))
        points.append(one.points[inside])
    pixel, point = np.concatenate(pixels), np.concatenate(points)
    if not len(pixel) or np.sum(counts) >= _PIXELS:
        return None
    if len(pixel) > _MOST:
        some = np.linspace(0, len(pixel) - 1, _MOST).astype(int)
        pixel, point = pixel[some], point[some]
    return Sightings(jnp.asarray(pixel, jnp.int32), jnp.asarray(point, jnp.float32))
