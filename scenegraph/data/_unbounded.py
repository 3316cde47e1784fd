"""Scenes without walls: the ball about which all of space is contracted, and what cameras see."""

from typing import NamedTuple

import numpy as np

from ..io import MappedArray
from ..pixels import frame_lines, known_cameras, Views
from ._bounds import focus_point, probe_views


# Of cameras that look outwards, how much farther than they are apart the unit ball reaches.
_AROUND = 4.0
# The opacity and the share of pixels from which on a picture counts as full; so many are read.
_FULL, _SOME = 0.99, 16
# Places along every probed line for every two cells along an axis.
_STEPS = 3


class Ball(NamedTuple):
    """The ball of the world that stays as it is where all of space is contracted."""

    centre: np.ndarray  # 3, in world units
    radius: float  # in world units


def find_ball(views: Views) -> Ball:
    """Finds the ball about what cameras look at, as large as they are typically far away from it.

    Cameras that look outwards, as in a panorama on foot, are in its middle.
    """
    (positions, centre), ahead = _focus(views)
    if np.mean(ahead > 0) >= 0.5:
        return Ball(centre, _positive(np.median(np.linalg.norm(centre - positions, axis=1))))
    centre = np.median(positions, axis=0)
    apart = float(np.median(np.linalg.norm(positions - centre, axis=1)))
    return Ball(centre, _positive(_AROUND * apart))


def _focus(views: Views) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Returns where cameras are, what they look at, and how far ahead of each that is."""
    middles = np.stack([views.widths, views.heights], axis=-1) / 2
    positions, axes = frame_lines(known_cameras(views), middles)
    centre = focus_point(positions, axes)
    # (c - x) . d
    return (positions, centre), np.sum((centre - positions) * axes, axis=1)


def _positive(length: float) -> float:
    return float(length) if length > 1e-6 else 1.0


def looks_outwards(views: Views) -> bool:
    """Returns true if most cameras have the point that their axes pass nearest to behind them."""
    _, ahead = _focus(views)
    return bool(np.mean(ahead > 0) < 0.5)


def shows_everything(views: Views) -> bool:
    """Returns true for pictures without opacity, and if it is next to full in all of some."""
    if views.pixels.shape[1] < 4:
        return True
    pixels = views.pixels if isinstance(views.pixels, MappedArray) else np.asarray(views.pixels)
    limit = _FULL * (255 if pixels.dtype == np.uint8 else 1)
    some = np.linspace(0, views.frames - 1, min(views.frames, _SOME)).astype(int).tolist()
    shares = (np.mean(np.asarray(pixels[views.part(frame)])[:, 3] > limit) for frame in some)
    return all(share > _FULL for share in shares)


def find_unseen_cells(views: Views, ball: Ball, resolution: int) -> np.ndarray:
    """Finds the cells of contracted space that no camera sees, and those outside of its ball."""
    # On a grid half as fine, which is enough.
    half = -(-resolution // 2)
    probe, seen = probe_views(views), np.zeros((half,) * 3, bool)
    for origins, directions in zip(probe.origins, probe.directions, strict=True):
        local = ((origins - ball.centre) / ball.radius).astype(np.float32)
        places = _contracted_lines(local, directions.astype(np.float32), half)
        # Contracted space reaches from -2 to 2.
        x, y, z = np.clip((places / 4 + 0.5) * half, 0, half - 1).astype(int).T
        seen[x, y, z] = True
    # A cell between two lines of the raster is beside one that a line meets.
    for axis in range(3):
        moved = np.moveaxis(seen, axis, 0)
        before, after = np.zeros_like(moved), np.zeros_like(moved)
        before[1:], after[:-1] = moved[:-1], moved[1:]
        seen = np.moveaxis(moved | before | after, 0, axis)
    for axis in range(3):
        seen = np.repeat(seen, 2, axis)
    return ~(seen[(slice(resolution),) * 3] & _in_ball(resolution))


def _contracted_lines(origins: np.ndarray, directions: np.ndarray, resolution: int) -> np.ndarray:
    """Returns places on lines, about a cell apart, in contracted space of radius 2; `n 3`."""
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    middle = -np.sum(origins * directions, axis=1, keepdims=True)
    # Even in the contracted distance from the place that is nearest to the middle of space.
    begin = _contract(-middle)
    steps = np.linspace(0, 1, _STEPS * resolution // 2, endpoint=False, dtype=np.float32)
    even = begin + (2 - begin) * steps
    # With |y| = 2 - 1 / |x|: |x| = 1 / (2 - |y|).
    far = np.sign(even) / np.maximum(2 - np.maximum(np.abs(even), 1), 1e-6)
    distance = middle + np.where(np.abs(even) < 1, even, far)
    # Mip-NeRF 360, equation 10: (2 - 1 / |x|) x / |x| beyond the unit ball.
    points = origins[:, None] + distance[..., None] * directions[:, None]
    length = np.maximum(np.linalg.norm(points, axis=-1, keepdims=True), 1)
    return (points * ((2 - 1 / length) / length)).reshape(-1, 3)


def _contract(length: np.ndarray) -> np.ndarray:
    far = np.sign(length) * (2 - 1 / np.maximum(np.abs(length), 1))
    return np.where(np.abs(length) < 1, length, far)


def _in_ball(resolution: int) -> np.ndarray:
    """Finds which cells of the cube about contracted space reach into its ball."""
    middles = (np.arange(resolution) + 0.5) * (4 / resolution) - 2
    squares = middles**2
    distance = np.sqrt(squares[:, None, None] + squares[:, None] + squares)
    # Half a cell's diagonal: sqrt(3) / 2 * 4 / resolution.
    return distance <= 2 + np.sqrt(3) * 2 / resolution
