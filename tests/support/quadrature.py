"""Brute force in plain numpy, written apart from the library: thousands of points along each ray.

Conventions of its own: a frame is a 4x4 matrix "world from local"; a medium is asked at points;
its density is per unit length of its own frame.
"""

import dataclasses
from collections.abc import Callable

import numpy as np


POINTS = 40_000


def fog(extinction: float) -> Callable:
    """The same density at all points."""
    return lambda points: np.full(len(points), extinction)


def blob(center, radius: float, extinction: float) -> Callable:
    """A Gaussian bump of density."""
    return lambda points: extinction * np.exp(-0.5 * np.sum((points - center) ** 2, 1) / radius**2)


def frame(linear, shift=(0.0, 0.0, 0.0)) -> np.ndarray:
    """A 4x4 matrix from a 3x3 one and a shift."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = linear, shift
    return matrix


def turn(axis, angle: float) -> np.ndarray:
    """The 3x3 rotation about an axis, by Rodrigues' formula."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def quaternion(axis, angle: float) -> np.ndarray:
    """The same rotation as `wxyz`, for the library."""
    unit = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * unit)])


def camera_frame(eye, target, up) -> np.ndarray:
    """World from camera: the camera looks along its -z, its y is up in the picture."""
    ahead = np.subtract(target, eye) / np.linalg.norm(np.subtract(target, eye))
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    return frame(np.column_stack([right, np.cross(right, ahead), -ahead]), eye)


@dataclasses.dataclass
class Matter:
    """A density and a colour in a frame, within a box of that frame (or everywhere)."""

    density: Callable
    color: tuple
    frame: np.ndarray | None = None
    box: tuple | None = None

    def absorption(self, points: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """At points of a line `origin + t * direction`: optical depth per unit of `t`."""
        to_local = np.linalg.inv(np.eye(4) if self.frame is None else self.frame)
        local = points @ to_local[:3, :3].T + to_local[:3, 3]
        inside = np.ones(len(points), bool)
        if self.box is not None:
            lower, upper = np.asarray(self.box)
            inside = np.all((local > lower) & (local < upper), axis=1)
        return inside * self.density(local) * np.linalg.norm(to_local[:3, :3] @ direction)


def look_along(matters, origin, direction, near, far, background):
    """Colour, opacity and mean `t` (of what was met) of one ray, front to back."""
    step = (far - near) / POINTS
    t = near + step * (np.arange(POINTS) + 0.5)
    points = origin + t[:, None] * direction
    each = np.stack([matter.absorption(points, direction) for matter in matters])
    total = each.sum(0)
    left = np.exp(-step * (np.cumsum(total) - total))  # what is not absorbed before each point
    weights = left * -np.expm1(-step * total)
    mixed = each.T @ np.array([matter.color for matter in matters])
    colors = mixed / np.maximum(total, 1e-300)[:, None]
    alpha = weights.sum()
    rgb = weights @ colors + (1 - alpha) * np.asarray(background)
    return rgb, alpha, weights @ t / max(alpha, 1e-300)


def picture(matters, pose, width, height, focal, near, far, background, *, parallel=False):
    """`(rgb, alpha, depth)` of a pinhole camera, or of one with parallel rays."""
    pixels = []
    for row in range(height):
        for column in range(width):
            x = (column + 0.5 - width / 2) / focal
            y = (height / 2 - row - 0.5) / focal
            start, ahead = ([x, y, 0], [0, 0, -1]) if parallel else ([0, 0, 0], [x, y, -1])
            origin, direction = pose[:3, :3] @ start + pose[:3, 3], pose[:3, :3] @ ahead
            pixels.append(look_along(matters, origin, direction, near, far, background))
    rgb, alpha, depth = (np.array(x) for x in zip(*pixels, strict=True))
    shape = (height, width)
    return rgb.reshape(*shape, 3), alpha.reshape(shape), depth.reshape(shape)
