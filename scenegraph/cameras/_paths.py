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
    """Makes one turn about the axis `up` through `target`, starting where the camera stands.

    **Arguments:**

    - `camera`: the camera that gives intrinsics, distance and height; it has a leaf `pose`.
    - `target`: the point that every camera looks at, `3`.
    - `up`: the axis of the turn, `3`.
    - `frames`: the number of cameras; the last stands one step before the first.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for fewer than one frame.
    """
    # eye_k = target + R(axis, 2 pi k / frames) arm
    angles = np.linspace(0, 2 * math.pi, require_frames(frames), endpoint=False)
    target, axis, arm = orbit_frame(camera, target, up)
    eyes = [target + _rotate_about(arm, axis, angle) for angle in angles]
    return [aim_camera(camera, eye, target, axis) for eye in eyes]


def spiral(
    camera: AbstractCamera,
    target: VectorLike,
    up: VectorLike,
    frames: int,
    *,
    turns: float = 2.0,
    rise: float = 0.5,
) -> list[AbstractCamera]:
    """Makes several turns about `target` while the camera rises and sinks.

    **Arguments:**

    - `camera`, `target`, `up`, `frames`: the arguments of `orbit`.
    - `turns`: the number of turns.
    - `rise`: the swing of the camera's angle above the horizon to either side, in radians.

    **Returns:**

    The cameras, all at the distance of the first.

    **Errors:**

    `ValueError` for fewer than one frame.
    """
    # eye_k = target + R(axis, turns phase) elevate(arm, rise sin(phase))
    phases = np.linspace(0, 2 * math.pi, require_frames(frames), endpoint=False)
    target, axis, arm = orbit_frame(camera, target, up)
    eyes = [
        target + _rotate_about(_elevate(arm, axis, rise * math.sin(phase)), axis, turns * phase)
        for phase in phases
    ]
    return [aim_camera(camera, eye, target, axis) for eye in eyes]


def require_frames(frames: int) -> int:
    """Returns the number of frames; refuses fewer than one."""
    if frames < 1:
        raise ValueError(f"a path needs at least one frame; got {frames}.")
    return frames


def orbit_frame(
    camera: Any, target: VectorLike, up: VectorLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the target, the unit axis, and the vector from the target to the camera."""
    target, axis = np.asarray(target, float), np.asarray(up, float)
    return target, axis / np.linalg.norm(axis), np.asarray(camera.pose.offset(), float) - target


def _rotate_about(arm: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotates `arm` about the unit vector `axis`."""
    # Rodrigues: v cos a + (k x v) sin a + k (k . v) (1 - cos a)
    along = axis * (axis @ arm)
    return along + (arm - along) * math.cos(angle) + np.cross(axis, arm) * math.sin(angle)


def _elevate(arm: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Changes the angle above the horizon, staying 0.1 radians away from the poles."""
    # At a pole the view would be parallel to `axis`, which is upwards in the picture.
    height = axis @ arm
    level = arm - axis * height
    elevation = np.clip(
        math.atan2(height, float(np.linalg.norm(level))) + angle,
        0.1 - math.pi / 2,
        math.pi / 2 - 0.1,
    )
    # |arm| (cos(e) outward + sin(e) axis)
    outward = level / max(float(np.linalg.norm(level)), 1e-12)
    distance = float(np.linalg.norm(arm))
    return distance * (math.cos(elevation) * outward + math.sin(elevation) * axis)


def aim_camera(
    camera: AbstractCamera, eye: np.ndarray, target: np.ndarray, up: np.ndarray
) -> AbstractCamera:
    """Moves a camera to `eye`, to look at `target`."""
    pose = Pose.look_at(eye.tolist(), target.tolist(), up.tolist())
    return eqx.tree_at(lambda c: c.pose, camera, pose)
