import math

import numpy as np

from .._typing import VectorLike
from ._base import AbstractCamera
from ._paths import aim_camera, orbit_frame, require_frames


# A narrower ellipse would pass too close to its centre.
_FLATTEST = 0.25
_STEPS = 2048


def ellipse(
    camera: AbstractCamera, poses: np.ndarray, target: VectorLike, up: VectorLike, frames: int
) -> list[AbstractCamera]:
    """Makes one turn, at constant speed, on an ellipse that is fitted to other cameras' positions.

    It lies level about `target`, at the median height of the cameras; along each of its two axes
    nine tenths of them stand no further out.

    **Arguments:**

    - `camera`: the camera that gives the intrinsics, and the side on which the turn begins; it has
      a leaf `pose`.
    - `poses`: the other cameras' poses, world from camera, `cameras 4 4`.
    - `target`: the point that every camera looks at, `3`.
    - `up`: the axis of the turn, `3`.
    - `frames`: the number of cameras; the last stands one step before the first.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for fewer than one frame, or if all other cameras stand on the axis.
    """
    require_frames(frames)
    target, axis, own = orbit_frame(camera, target, up)
    arms = np.asarray(poses, float)[:, :3, 3] - target
    if not np.any(np.linalg.norm(np.cross(arms, axis), axis=1) > 1e-6):
        raise ValueError("an ellipse cannot be fitted to cameras that all stand on its axis.")
    # eye(a) = target + r_0 cos(a) u_0 + r_1 sin(a) u_1 + height axis
    across = _principal_axes(arms, axis)
    radii = np.percentile(np.abs(arms @ across.T), 90, axis=0)
    radii = np.maximum(radii, _FLATTEST * radii.max())
    height = np.median(arms @ axis)
    # (cos a, sin a) of the camera, were it on the ellipse
    start = across @ own / radii
    angles = _even_angles(radii, math.atan2(start[1], start[0]), frames)
    level = np.stack([np.cos(angles), np.sin(angles)], axis=1) * radii
    eyes = target + level @ across + height * axis
    return [aim_camera(camera, eye, target, axis) for eye in eyes]


def _principal_axes(arms: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Finds two level directions, of the largest and the least variance."""
    # The largest eigenvector of the level covariance; the axis gets a negative eigenvalue.
    level = arms - np.outer(arms @ axis, axis)
    spread = level.T @ level - 2 * np.trace(level.T @ level) * np.outer(axis, axis)
    widest = np.linalg.eigh(spread)[1][:, -1]
    widest = widest - axis * (axis @ widest)
    widest /= np.linalg.norm(widest)
    return np.stack([widest, np.cross(axis, widest)])


def _even_angles(radii: np.ndarray, start: float, frames: int) -> np.ndarray:
    """Finds parameters of an ellipse between which its arc is equally long, from `start` on."""
    # ds/da = |(r_0 sin a, r_1 cos a)|, summed by the trapezoidal rule and inverted
    angles = start + np.linspace(0, 2 * math.pi, _STEPS + 1)
    speed = np.hypot(radii[0] * np.sin(angles), radii[1] * np.cos(angles))
    length = np.concatenate([[0], np.cumsum((speed[1:] + speed[:-1]) / 2)])
    return np.interp(np.linspace(0, length[-1], frames, endpoint=False), length, angles)
