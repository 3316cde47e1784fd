"""Camera paths: lists of cameras of one kind and size, so that rendering them compiles once."""

import math
from typing import Any

import equinox as eqx
import numpy as np

from .._typing import VectorLike
from ..transforms import Pose
from ._base import AbstractCamera


def orbit(
    camera: AbstractCamera, target: VectorLike, up: VectorLike, frames: int
) -> list[AbstractCamera]:
    """One turn about the axis `up` through `target`, starting where the camera stands.

    **Arguments:**

    - `camera`: gives intrinsics, distance and height; it has a leaf `pose`.
    - `target`: what every camera looks at.
    - `up`: the axis of the turn.
    - `frames`: how many cameras; the last stands one step before the first.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for fewer than one frame.
    """
    angles = np.linspace(0, 2 * math.pi, count_frames(frames), endpoint=False)
    target, axis, arm = frame_about(camera, target, up)
    eyes = [target + _turn(arm, axis, angle) for angle in angles]
    return [look_from(camera, eye, target, axis) for eye in eyes]


def spiral(
    camera: AbstractCamera,
    target: VectorLike,
    up: VectorLike,
    frames: int,
    *,
    turns: float = 2.0,
    rise: float = 0.5,
) -> list[AbstractCamera]:
    """Several turns about `target` while the camera rises and sinks.

    **Arguments:**

    - `camera`, `target`, `up`, `frames`: as in `orbit`.
    - `turns`: how many turns.
    - `rise`: how far the camera's angle above the horizon swings to either side, in radians.

    **Returns:**

    The cameras, all at the distance of the first.

    **Errors:**

    `ValueError` for fewer than one frame.
    """
    phases = np.linspace(0, 2 * math.pi, count_frames(frames), endpoint=False)
    target, axis, arm = frame_about(camera, target, up)
    eyes = [
        target + _turn(_tilt(arm, axis, rise * math.sin(phase)), axis, turns * phase)
        for phase in phases
    ]
    return [look_from(camera, eye, target, axis) for eye in eyes]


def count_frames(frames: int) -> int:
    """How many frames there are, if there is any."""
    if frames < 1:
        raise ValueError(f"a path needs at least one frame; got {frames}.")
    return frames


def frame_about(
    camera: Any, target: VectorLike, up: VectorLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a turn about a point begins with."""
    target, axis = np.asarray(target, float), np.asarray(up, float)
    return target, axis / np.linalg.norm(axis), np.asarray(camera.pose.offset(), float) - target


def _turn(arm: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' rotation of `arm` about the unit vector `axis`."""
    along = axis * (axis @ arm)
    return along + (arm - along) * math.cos(angle) + np.cross(axis, arm) * math.sin(angle)


def _tilt(arm: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Changes the angle above the horizon, staying 0.1 radians away from the poles."""
    height = axis @ arm
    level = arm - axis * height
    elevation = np.clip(
        math.atan2(height, float(np.linalg.norm(level))) + angle,
        0.1 - math.pi / 2,
        math.pi / 2 - 0.1,
    )
    outward = level / max(float(np.linalg.norm(level)), 1e-12)
    distance = float(np.linalg.norm(arm))
    return distance * (math.cos(elevation) * outward + math.sin(elevation) * axis)


def look_from(
    camera: AbstractCamera, eye: np.ndarray, target: np.ndarray, up: np.ndarray
) -> AbstractCamera:
    """A camera, moved to look at a point."""
    pose = Pose.look_at(eye.tolist(), target.tolist(), up.tolist())
    return eqx.tree_at(lambda c: c.pose, camera, pose)
