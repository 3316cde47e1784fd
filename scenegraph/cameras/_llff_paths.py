"""Poses as the LLFF data sets use them: means, normalised worlds, and paths of films."""

import numpy as np


def average_pose(poses: np.ndarray) -> np.ndarray:
    """Averages poses that look roughly the same way: mean position, axis and upward direction."""
    back, up = poses[:, :3, 2].sum(axis=0), poses[:, :3, 1].sum(axis=0)
    return _look_at(back, up, poses[:, :3, 3].mean(axis=0))


def recentre_poses(poses: np.ndarray) -> np.ndarray:
    """Moves the world so that the average pose is at its origin, looking along -z."""
    # The world of the average camera: M^-1 pose.
    return np.linalg.inv(average_pose(poses)) @ poses


def spherify_poses(poses: np.ndarray) -> tuple[np.ndarray, float]:
    """Moves and scales the world so that cameras looking inwards are about the unit sphere."""
    # The point nearest to all axes solves sum (I - d d^T) (c - x) = 0; z points to the cameras.
    axes, places = poses[:, :3, 2], poses[:, :3, 3]
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    # P = I - d d^T is its own square, so that sum P^T P c = sum P x is that equation.
    squares = (across.transpose(0, 2, 1) @ across).mean(axis=0)
    centre = np.linalg.solve(squares, (across @ places[:, :, None]).mean(axis=0)[:, 0])
    up = _unit((places - centre).mean(axis=0))
    first = _unit(np.cross([0.1, 0.2, 0.3], up))
    frame = np.eye(4)
    frame[:3] = np.stack([first, _unit(np.cross(up, first)), up, centre], axis=1)
    moved = np.linalg.inv(frame) @ poses
    # The root mean square distance becomes one.
    scale = 1 / np.sqrt(np.mean(np.sum(moved[:, :3, 3] ** 2, axis=1)))
    moved[:, :3, 3] *= scale
    return moved, float(scale)


def llff_spiral(
    poses: np.ndarray,
    bounds: np.ndarray,
    frames: int = 120,
    *,
    turns: float = 2.0,
    rise: float = 0.5,
) -> np.ndarray:
    """Makes a spiral about the average of forward-facing poses, looking at one point before them.

    **Arguments:**

    - `poses`: the cameras' poses, world from camera, `frames 4 4`, about the origin.
    - `bounds`: the nearest and the farthest depth that each camera sees, `frames 2`.
    - `frames`: the number of poses; the last stands one step before the first.
    - `turns`: the number of turns. Keyword only argument.
    - `rise`: the number of times it goes forth and back for each turn. Keyword only argument.

    **Returns:**

    The poses, world from camera, `frames 4 4`. Sideways the spiral is as wide as nine tenths of
    the positions.

    **Errors:**

    `ValueError` for fewer than one frame.

    **Source:** `_generate_spiral_poses` of the published mip-NeRF code.
    """
    if frames < 1:
        raise ValueError(f"a path needs at least one frame; got {frames}.")
    middle, up = average_pose(poses), poses[:, :3, 1].sum(axis=0)
    # The point to look at is 1 / (1/4 / near + 3/4 / far) away.
    near, far = 0.9 * bounds.min(), 5.0 * bounds.max()
    focus = 1 / (0.25 / near + 0.75 / far)
    target = middle[:3] @ [0, 0, -focus, 1]
    reach = np.percentile(np.abs(poses[:, :3, 3]), 90, axis=0)
    angles = np.linspace(0, 2 * np.pi * turns, frames, endpoint=False)
    # place = middle + R reach (cos a, -sin a, -sin(rise a))
    swing = np.stack([np.cos(angles), -np.sin(angles), -np.sin(angles * rise)], axis=1) * reach
    places = swing @ middle[:3, :3].T + middle[:3, 3]
    return np.stack([_look_at(place - target, up, place) for place in places])


def spherified_circle(poses: np.ndarray, frames: int = 120, *, closed: bool = False) -> np.ndarray:
    """Makes a level circle about the z axis, at the cameras' mean height and distance.

    **Arguments:**

    - `poses`: the cameras' poses, world from camera, `frames 4 4`, about the unit sphere.
    - `frames`: the number of poses.
    - `closed`: if true, the last pose is the first again, as in the published code. Keyword only
      argument.

    **Returns:**

    The poses, looking inwards, world from camera, `frames 4 4`.

    **Errors:**

    `ValueError` for fewer than one frame.

    **Source:** `_generate_spherical_poses` of the published mip-NeRF code.
    """
    if frames < 1:
        raise ValueError(f"a path needs at least one frame; got {frames}.")
    # r^2 = mean |x|^2 - height^2
    places = poses[:, :3, 3]
    height = places[:, 2].mean()
    radius = np.sqrt(max(np.mean(np.sum(places**2, axis=1)) - height**2, 0.0))
    angles = np.linspace(0, 2 * np.pi, frames, endpoint=closed)
    circle = [[radius * np.cos(x), radius * np.sin(x), height] for x in angles]
    return np.stack([_look_at(place, [0.0, 0.0, 1.0], place) for place in np.asarray(circle)])


def _look_at(back: np.ndarray, up: np.ndarray | list[float], place: np.ndarray) -> np.ndarray:
    """Makes the pose at a position whose z axis is `back`."""
    back = _unit(back)
    right = _unit(np.cross(up, back))
    pose = np.eye(4)
    # Columns: right = up x back, back x right, back, position.
    pose[:3] = np.stack([right, _unit(np.cross(back, right)), back, place], axis=1)
    return pose


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
