"""A smooth path through given cameras."""

from typing import Literal

import jax.numpy as jnp
import jaxlie
import numpy as np

from ._base import AbstractCamera
from ._paths import count_frames
from ._poses import cameras_at


_FRAMES_BETWEEN = 10
# In how many pieces the way between two cameras is measured.
_PIECES = 64


def interpolate(
    camera: AbstractCamera,
    poses: np.ndarray,
    frames: int,
    *,
    order: Literal["nearest", "index"] = "nearest",
    keyframes: int | None = None,
) -> list[AbstractCamera]:
    """A smooth path through places and directions of other cameras, at constant speed.

    Places and quaternions are joined by a Catmull-Rom spline whose knots lie closer where cameras
    are close. Speed is that of the place, and of turning: a radian counts as much as the distance
    at which half of the cameras stand from their middle.

    **Arguments:**

    - `camera`: gives the intrinsics; it has a leaf `pose`.
    - `poses`: of the other cameras, world from camera, `cameras 4 4`.
    - `frames`: how many cameras.
    - `order`: `nearest` goes from neighbour to neighbour and back to the first one; `index` goes
      from the first to the last in the order of `poses`. Keyword only, as is what follows.
    - `keyframes`: through how many of the other cameras the path goes: for `nearest` such as are
      far apart, for `index` evenly spread ones; by default one for ten frames.

    **Returns:**

    The cameras; those of `nearest` go round, and the last is one step before the first.

    **Errors:**

    `ValueError` for fewer than one frame or keyframe.
    """
    count_frames(frames)
    poses = _distinct(np.asarray(poses, float))
    wanted = max(2, frames // _FRAMES_BETWEEN) if keyframes is None else keyframes
    if wanted < 1:
        raise ValueError(f"a path goes through at least one keyframe; got {wanted}.")
    points, reach = _as_points(poses)
    closed = order == "nearest"
    chosen = _nearest_tour(points, reach, wanted) if closed else _evenly(len(points), wanted)
    path = _at_constant_speed(_extended(points[chosen], closed), reach, frames, closed)
    return cameras_at(camera, _matrices(path))


def _distinct(poses: np.ndarray) -> np.ndarray:
    """Every pose once, in their order."""
    _, first = np.unique(np.round(poses.reshape(len(poses), 16), 6), axis=0, return_index=True)
    return poses[np.sort(first)]


def _as_points(poses: np.ndarray) -> tuple[np.ndarray, float]:
    """Places and quaternions, seven numbers a camera, and how far the cameras are apart."""
    turns = jaxlie.SO3.from_matrix(jnp.asarray(poses[:, :3, :3], jnp.float32)).wxyz
    turns, places = np.asarray(turns, float), poses[:, :3, 3]
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    reach = float(np.median(np.linalg.norm(places - places.mean(axis=0), axis=1)))
    return np.concatenate([places, turns], axis=1), reach or 1.0


def _distances(a: np.ndarray, b: np.ndarray, reach: float) -> np.ndarray:
    """How far poses are apart, turns included."""
    apart = (np.linalg.norm(a[..., 3:] + sign * b[..., 3:], axis=-1) for sign in (-1, 1))
    angles = 4 * np.arcsin(np.clip(np.minimum(*apart) / 2, 0, 1))
    return np.linalg.norm(a[..., :3] - b[..., :3], axis=-1) + reach * angles


def _evenly(count: int, wanted: int) -> np.ndarray:
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(int))


def _nearest_tour(points: np.ndarray, reach: float, wanted: int) -> np.ndarray:
    """A short round trip through some points that are far apart."""
    between = _distances(points[:, None], points[None], reach)
    chosen = [0]
    while len(chosen) < min(wanted, len(points)):
        chosen.append(int(np.argmax(between[chosen].min(axis=0))))
    return np.asarray(chosen)[short_tour(between[np.ix_(chosen, chosen)])]


def short_tour(between: np.ndarray) -> list[int]:
    """A short round trip: always to the nearest left, then mended by turning parts of it round.

    **Arguments:**

    - `between`: distances, `n n`.

    **Returns:**

    The order in which to go, from 0 on.
    """
    order, left = [0], set(range(1, len(between)))
    while left:
        order.append(min(left, key=lambda i: between[order[-1], i]))
        left.remove(order[-1])
    while any([_turn_round(order, between, i) for i in range(1, len(order) - 1)]):
        pass
    return order


def _turn_round(order: list[int], between: np.ndarray, start: int) -> bool:
    """Turns a part of a round trip that begins at `start`, if that makes it shorter."""
    before, first = order[start - 1], order[start]
    for end in range(start + 1, len(order)):
        last, after = order[end], order[(end + 1) % len(order)]
        gain = between[before, first] + between[last, after]
        gain -= between[before, last] + between[first, after]
        if gain > 1e-9:
            order[start : end + 1] = reversed(order[start : end + 1])
            return True
    return False


def _extended(points: np.ndarray, closed: bool) -> np.ndarray:
    """One point more before and behind; of each pair of opposite quaternions the nearer one."""
    if len(points) == 1:
        return np.repeat(points, 4, axis=0)
    ends = (points[-1:], points[:2]) if closed else (points[:0], points[:0])
    points = np.concatenate([ends[0], points, ends[1]])
    for before, point in zip(points[:-1], points[1:], strict=True):
        point[3:] *= 1 if before[3:] @ point[3:] >= 0 else -1
    if closed:
        return points
    return np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])


def _at_constant_speed(points: np.ndarray, reach: float, frames: int, closed: bool) -> np.ndarray:
    segments = len(points) - 3
    knots = np.sqrt(np.maximum(_distances(points[:-1], points[1:], reach), 1e-9 * reach))
    fine = np.linspace(0, segments, segments * _PIECES + 1)
    steps = _spline(points, knots, fine)
    length = np.concatenate([[0], np.cumsum(_distances(steps[:-1], steps[1:], reach))])
    wanted = np.linspace(0, length[-1], frames, endpoint=not closed)
    return _spline(points, knots, np.interp(wanted, length, fine))


def _spline(points: np.ndarray, knots: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A cubic Hermite spline whose slopes are those of parabolas through three points.

    `at` is 0 at the second point, 1 at the third, and so on; `knots` are the parameter's lengths.
    """
    i = np.clip(at.astype(int), 0, len(points) - 4)
    s, width = (at - i)[:, None], knots[i + 1][:, None]
    chords = np.diff(points, axis=0) / knots[:, None]
    share = (knots[:-1] / (knots[:-1] + knots[1:]))[:, None]
    slopes = share * chords[1:] + (1 - share) * chords[:-1]
    begin, end, out, into = points[i + 1], points[i + 2], slopes[i], slopes[i + 1]
    rise = s * s * (3 - 2 * s)
    bow = width * s * (1 - s) * ((1 - s) * out - s * into)
    path = (1 - rise) * begin + rise * end + bow
    path[:, 3:] /= np.linalg.norm(path[:, 3:], axis=1, keepdims=True)
    return path


def _matrices(points: np.ndarray) -> np.ndarray:
    matrices = np.tile(np.eye(4, dtype=np.float32), (len(points), 1, 1))
    matrices[:, :3, :3] = jaxlie.SO3(jnp.asarray(points[:, 3:], jnp.float32)).as_matrix()
    matrices[:, :3, 3] = points[:, :3]
    return matrices
