"""A closed path that stays among given cameras, for scenes that were seen from there only."""

from typing import NamedTuple

import numpy as np

from .._typing import VectorLike
from ._base import AbstractCamera
from ._interpolated import interpolate
from ._paths import aim_camera, orbit_frame, require_frames
from ._poses import pose_matrix


# The path is found at so many places, and smoothed over this share of them.
_PLACES, _SMOOTH = 240, 0.04
# Cameras look inwards if so many of them see the target within this angle (its cosine) of the axis.
_INWARD_SHARE, _INWARD_COSINE = 0.7, 0.6
# Cameras stand all around if no gap between them is wider, in radians; else they are swept to and
# fro, over this share of their arc.
_WIDEST_GAP, _SWEPT = 1.2, 0.9
# The least width of the cameras' neighbourhood that counts, in radians.
_LEAST_WIDTH = 0.15
# The bound: a multiple of what most cameras are from their nearest neighbour, or a share of the
# distance of the scene.
_NEIGHBOURS, _SHARE = 1.5, 0.1


class Loop(NamedTuple):
    """The cameras of a closed path, the distance within which one was, and what it is like."""

    cameras: list[AbstractCamera]
    bound: float
    kind: str


def loop(
    camera: AbstractCamera, poses: np.ndarray, target: VectorLike, up: VectorLike, frames: int
) -> list[AbstractCamera]:
    """Makes a closed path that stays near the positions of other cameras.

    Where these look inwards, it goes round at their own heights and distances, or to and fro if
    they do not stand all around, and looks at `target`. Otherwise it goes from camera to camera
    and looks where they look. No frame is farther from the nearest camera than one and a half times
    the distance that nine tenths of them have from their neighbours, or a tenth of their distance
    from `target`.

    **Arguments:**

    - `camera`: the camera that gives the intrinsics; it has a leaf `pose`.
    - `poses`: the other cameras' poses, world from camera, `cameras 4 4`.
    - `target`: the point that cameras which look inwards look at, `3`.
    - `up`: the direction that is upwards in every frame, `3`.
    - `frames`: the number of cameras; the last stands one step before the first.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for fewer than one frame.
    """
    return find_loop(camera, poses, target, up, frames).cameras


def find_loop(
    camera: AbstractCamera, poses: np.ndarray, target: VectorLike, up: VectorLike, frames: int
) -> Loop:
    """Finds the path of `loop`, with the bound that it keeps."""
    require_frames(frames)
    poses = np.asarray(poses, float)
    target, up, _ = orbit_frame(camera, target, up)
    places, bound = poses[:, :3, 3], near_bound(poses, target)
    if not _look_inwards(poses, target):
        passed = np.stack([np.asarray(pose_matrix(x)) for x in interpolate(camera, poses, frames)])
        eyes, ahead = keep_near(passed[:, :3, 3], places, bound), -passed[:, :3, 2]
        looks = [_level(camera, *pair, up) for pair in zip(eyes, ahead, strict=True)]
        return Loop(looks, bound, "goes from camera to camera")
    path, kind = _around(places - target, up, bound)
    eyes = keep_near(_resampled(path, frames) + target, places, bound)
    return Loop([_level(camera, eye, target - eye, up) for eye in eyes], bound, kind)


def near_bound(poses: np.ndarray, target: np.ndarray) -> float:
    """Returns the distance from the nearest camera within which a scene is known well."""
    places = poses[:, :3, 3]
    away = float(np.median(np.linalg.norm(places - target, axis=1)))
    if len(places) < 2:
        return _SHARE * away
    between = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(between, np.inf)
    # Pictures without a neighbour, such as close-ups, do not count.
    return max(_NEIGHBOURS * float(np.percentile(between.min(axis=1), 90)), _SHARE * away)


def keep_near(eyes: np.ndarray, places: np.ndarray, bound: float) -> np.ndarray:
    """Moves what is farther than a bound from the nearest of some places towards it."""
    # place + arm min(1, bound / |arm|), from the nearest place
    away = eyes[:, None] - places[None]
    nearest = np.argmin(np.linalg.norm(away, axis=2), axis=1)
    arm = away[np.arange(len(eyes)), nearest]
    length = np.linalg.norm(arm, axis=1, keepdims=True)
    # A little nearer, so that rounding to single precision stays within.
    short = arm * np.minimum(1.0, (1 - 1e-4) * bound / np.maximum(length, 1e-300))
    return places[nearest] + short


def _look_inwards(poses: np.ndarray, target: np.ndarray) -> bool:
    # Cameras look along -z: cos = -(target - x) . z / |target - x|.
    arms = target - poses[:, :3, 3]
    distance = np.linalg.norm(arms, axis=1)
    cosine = -np.sum(arms * poses[:, :3, 2], axis=1) / np.maximum(distance, 1e-300)
    return bool(np.mean(cosine > _INWARD_COSINE) >= _INWARD_SHARE)


def _around(arms: np.ndarray, up: np.ndarray, bound: float) -> tuple[np.ndarray, str]:
    """Finds a closed path about the axis `up` through arms from the target to the cameras."""
    first = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
    first /= np.linalg.norm(first)
    frame = np.stack([first, np.cross(up, first), up])
    x, y, height = frame @ arms.T
    azimuth, shape = np.arctan2(y, x), np.stack([np.hypot(x, y), height], axis=1)
    # The widest gap between neighbours in azimuth; the arc of cameras begins behind it.
    order = np.sort(azimuth)
    gaps = np.diff(np.append(order, order[0] + 2 * np.pi))
    widest = int(np.argmax(gaps))
    phase = np.linspace(0, 2 * np.pi, _PLACES, endpoint=False)
    width = max(_LEAST_WIDTH, 0.5 * float(np.percentile(gaps, 95)))
    if gaps[widest] <= _WIDEST_GAP:
        angles, kind = phase, "goes once around at the cameras' heights and distances"
        sway = np.zeros_like(phase)
    else:
        begin = order[(widest + 1) % len(order)]
        half = 0.5 * (2 * np.pi - gaps[widest])
        # To and fro about the middle of the arc, at begin + half.
        angles = begin + half * (1 + _SWEPT * np.sin(phase))
        kind = "goes to and fro before the scene, where the cameras stood"
        # Forth above, back below: half of the deviation of the heights.
        sway = 0.5 * float(np.std(height)) * np.cos(phase)
    found = _follow(angles, azimuth, shape, width, max(bound, 1e-9))
    found[:, 1] += sway
    found = _smoothed(found)
    radius, height = found.T
    local = np.stack([radius * np.cos(angles), radius * np.sin(angles), height], axis=1)
    return local @ frame, kind


def _follow(
    angles: np.ndarray, azimuth: np.ndarray, shape: np.ndarray, width: float, bound: float
) -> np.ndarray:
    """Follows the cameras' distances and heights along angles, twice around."""
    # A mean over the cameras near in azimuth, and near what it was before: of several rings of
    # cameras, it keeps to one.
    usual = np.sum((shape - np.median(shape, axis=0)) ** 2, axis=1)
    found, last = np.zeros((len(angles), 2)), shape[np.argmin(usual)]
    for index in [*range(len(angles))] * 2:
        # Weights exp(-(turn / width)^2 / 2 - |shape - last|^2 / (2 bound^2)); turns from -pi to pi.
        turn = np.angle(np.exp(1j * (azimuth - angles[index])))
        apart = np.sum((shape - last) ** 2, axis=1) / bound**2
        cost = 0.5 * ((turn / width) ** 2 + apart)
        weight = np.exp(np.min(cost) - cost)
        last = weight @ shape / weight.sum()
        found[index] = last
    return found


def _smoothed(values: np.ndarray) -> np.ndarray:
    """Smooths a closed path by a Gaussian."""
    steps = np.arange(len(values))
    apart = np.minimum(steps, len(values) - steps) / (_SMOOTH * len(values))
    weight = np.exp(-0.5 * apart**2)
    # A convolution around the path is a product of spectra.
    spectrum = np.fft.rfft(weight / weight.sum())[:, None] * np.fft.rfft(values, axis=0)
    return np.fft.irfft(spectrum, n=len(values), axis=0)


def _resampled(path: np.ndarray, frames: int) -> np.ndarray:
    """Samples a closed path at steps of equal length."""
    ends = np.concatenate([path, path[:1]])
    length = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(ends, axis=0), axis=1))])
    even = np.linspace(0, length[-1], frames, endpoint=False)
    return np.stack([np.interp(even, length, ends[:, axis]) for axis in range(3)], axis=1)


def _level(
    camera: AbstractCamera, eye: np.ndarray, ahead: np.ndarray, up: np.ndarray
) -> AbstractCamera:
    """Moves a camera to `eye`, to look along `ahead`, with `up` upwards in its picture."""
    return aim_camera(camera, eye, eye + ahead, up)
