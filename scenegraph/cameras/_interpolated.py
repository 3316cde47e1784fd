"""A smooth path through given cameras."""

from typing import Literal

import jax
import jax.numpy as jnp
import jaxlie
import numpy as np

from .._typing import Array, Float
from ..numerics import in_full_precision
from ._base import AbstractCamera
from ._paths import require_frames
from ._poses import cameras_at


_FRAMES_BETWEEN = 10
# The number of pieces in which the way between two cameras is measured.
_PIECES = 64
_BLOCK = 256


def interpolate(
    camera: AbstractCamera,
    poses: np.ndarray,
    frames: int,
    *,
    order: Literal["nearest", "index"] = "nearest",
    keyframes: int | None = None,
) -> list[AbstractCamera]:
    """Makes a smooth path through positions and directions of other cameras, at constant speed.

    Poses are joined by a Catmull-Rom spline of rigid motions, whose knots lie closer where cameras
    are close. Between cameras that look at one thing from one distance, it does so too. Speed is
    that of position and of turning: a radian counts as much as the median distance of the cameras
    from their middle.

    **Arguments:**

    - `camera`: the camera that gives the intrinsics; it has a leaf `pose`.
    - `poses`: the other cameras' poses, world from camera, `cameras 4 4`.
    - `frames`: the number of cameras.
    - `order`: the order of the poses: `nearest` goes from neighbour to neighbour and back to the
      first one; `index` goes from the first to the last in the order of `poses`. Keyword only, as
      is what follows.
    - `keyframes`: the number of the other cameras that the path goes through: for `nearest` such as
      are far apart, for `index` evenly spaced ones; by default one for ten frames.

    **Returns:**

    The cameras; those of `nearest` go round, and the last is one step before the first.

    **Errors:**

    `ValueError` for fewer than one frame or keyframe.

    **Source:** the cumulative form of Kim, Kim and Shin 1995, "A general construction scheme for
    unit quaternion curves".
    """
    require_frames(frames)
    points, radius = _as_points(_distinct(np.asarray(poses, float)))
    count = max(2, frames // _FRAMES_BETWEEN) if keyframes is None else keyframes
    if count < 1:
        raise ValueError(f"a path goes through at least one keyframe; got {count}.")
    closed, count = order == "nearest", min(count, len(points))
    if closed:
        chosen = _nearest_tour(points, radius, count)
    else:
        chosen = np.unique(np.linspace(0, len(points) - 1, count).round().astype(int))
    if len(chosen) == 1:
        return cameras_at(camera, np.repeat(_matrices(points[chosen]), frames, axis=0))
    path = _at_constant_speed(points[chosen], radius, frames, closed)
    return cameras_at(camera, _matrices(path))


def _distinct(poses: np.ndarray) -> np.ndarray:
    """Drops poses that are there already."""
    _, first = np.unique(np.round(poses.reshape(len(poses), 16), 6), axis=0, return_index=True)
    return poses[np.sort(first)]


def _as_points(poses: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns quaternions and positions, `cameras 7`, and the median distance from the middle."""
    points = np.asarray(jaxlie.SE3.from_matrix(jnp.asarray(poses, jnp.float32)).wxyz_xyz, float)
    points[:, :4] /= np.linalg.norm(points[:, :4], axis=1, keepdims=True)
    away = np.linalg.norm(points[:, 4:] - points[:, 4:].mean(axis=0), axis=1)
    return points, float(np.median(away)) or 1.0


@in_full_precision
def _matrices(points: np.ndarray) -> np.ndarray:
    return np.asarray(jaxlie.SE3(jnp.asarray(points, jnp.float32)).as_matrix())


def _distances(a: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """Computes distances between poses, turns included."""
    # |x_a - x_b| + radius angle, with angle = 4 asin(min |q_a +- q_b| / 2)
    apart = (np.linalg.norm(a[..., :4] + sign * b[..., :4], axis=-1) for sign in (-1, 1))
    angles = 4 * np.arcsin(np.clip(np.minimum(*apart) / 2, 0, 1))
    return np.linalg.norm(a[..., 4:] - b[..., 4:], axis=-1) + radius * angles


def _nearest_tour(points: np.ndarray, radius: float, count: int) -> np.ndarray:
    """Finds a short round trip through `count` points that are far apart."""
    # Farthest point sampling: each next point is the one farthest from all chosen before.
    between = _distances(points[:, None], points[None], radius)
    chosen = [0]
    while len(chosen) < count:
        chosen.append(int(np.argmax(between[chosen].min(axis=0))))
    return np.asarray(chosen)[short_tour(between[np.ix_(chosen, chosen)])]


def short_tour(between: np.ndarray) -> list[int]:
    """Finds a short round trip by distances `n n`: nearest neighbours, then 2-opt moves."""
    # 2-opt: Croes 1958, "A Method for Solving Traveling-Salesman Problems".
    order, left = [0], set(range(1, len(between)))
    while left:
        order.append(min(left, key=lambda i: between[order[-1], i]))
        left.remove(order[-1])
    while any([_two_opt(order, between, i) for i in range(1, len(order) - 1)]):
        pass
    return order


def _two_opt(order: list[int], between: np.ndarray, start: int) -> bool:
    """Reverses a part of a round trip that begins at `start`, if that makes it shorter."""
    before, first = order[start - 1], order[start]
    for end in range(start + 1, len(order)):
        last, after = order[end], order[(end + 1) % len(order)]
        # |a b| + |c d| - |a c| - |b d|, for the way a b ... c d that becomes a c ... b d
        gain = between[before, first] + between[last, after]
        gain -= between[before, last] + between[first, after]
        if gain > 1e-9:
            order[start : end + 1] = reversed(order[start : end + 1])
            return True
    return False


def _at_constant_speed(points: np.ndarray, radius: float, frames: int, closed: bool) -> np.ndarray:
    """Samples the spline through poses at steps of equal length."""
    # Centripetal knots: parameter lengths are square roots of distances.
    ends = np.concatenate([points, points[:1]]) if closed else points
    knots = np.sqrt(np.maximum(_distances(ends[:-1], ends[1:], radius), 1e-9 * radius))
    moves = _motions(jnp.asarray(ends, jnp.float32))
    # One more motion before and after: that of the other end, or the same once more.
    beyond = [-1, *range(len(knots)), 0] if closed else [0, *range(len(knots)), -1]
    spline = jnp.asarray(ends, jnp.float32), moves[jnp.asarray(beyond)], knots[beyond]
    # The length up to each parameter, inverted at even lengths.
    fine = np.linspace(0, len(knots), len(knots) * _PIECES + 1)
    steps = _spline(*spline, fine)
    length = np.concatenate([[0], np.cumsum(_distances(steps[:-1], steps[1:], radius))])
    even = np.linspace(0, length[-1], frames, endpoint=not closed)
    return _spline(*spline, np.interp(even, length, fine))


@jax.jit
@in_full_precision
def _motions(points: Float[Array, "poses 7"]) -> Float[Array, "poses-1 6"]:
    """Computes the tangents of the rigid motions from each pose to the next, `log(A^-1 B)`."""
    return (jaxlie.SE3(points[:-1]).inverse() @ jaxlie.SE3(points[1:])).log()


def _spline(points: Array, moves: Array, knots: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Evaluates the spline through poses at parameters that are 0 at the first, 1 at the second."""
    # `moves` and the parameter's lengths `knots` have one more before and after. Kim, Kim and Shin:
    # pose(s) = A_i exp(b_0 m_(i-1)) exp(b_1 m_i) exp(b_2 m_(i+1)).
    i = np.clip(at.astype(int), 0, len(points) - 2)
    s, (k0, k1, k2) = at - i, (knots[i + j] for j in range(3))
    # b: a cubic whose derivatives at both ends are those of parabolas through three points, written
    # as shares of the three motions about it.
    out, into = s * (1 - s) ** 2, -(s**2) * (1 - s)
    shares = [
        out * k1**2 / (k0 * (k0 + k1)),
        s * s * (3 - 2 * s) + out * k0 / (k0 + k1) + into * k2 / (k1 + k2),
        into * k1**2 / (k2 * (k1 + k2)),
    ]
    steps = np.stack(shares, axis=1)[:, :, None] * np.asarray(moves)[i[:, None] + np.arange(3)]
    found = _in_blocks(np.asarray(points)[i], steps.astype(np.float32)).astype(float)
    found[:, :4] /= np.linalg.norm(found[:, :4], axis=1, keepdims=True)
    return found


def _in_blocks(points: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Applies steps to poses in blocks of one size, so that it is compiled once."""
    count = len(points)
    index = np.minimum(np.arange(-(-count // _BLOCK) * _BLOCK), count - 1).reshape(-1, _BLOCK)
    return np.concatenate([np.asarray(_apply_steps(points[i], steps[i])) for i in index])[:count]


@jax.jit
@in_full_precision
def _apply_steps(points: Float[Array, "n 7"], steps: Float[Array, "n 3 6"]) -> Float[Array, "n 7"]:
    """Applies three steps to each pose, one after the other."""
    pose = jaxlie.SE3(points)
    for number in range(3):
        pose = pose @ jaxlie.SE3.exp(steps[:, number])
    return pose.wxyz_xyz
