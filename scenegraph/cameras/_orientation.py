"""The direction upwards of a capture, from its cameras and from the points of a table or floor."""

import numpy as np


# Below this length the mean of unit vectors says nothing of their direction.
_LEAST_MEAN = 0.5
# Pictures whose rows span less than this share of a plane do not show what is level.
_LEAST_SPREAD = 0.2
# A plane of points: within this angle of the cameras' upwards, with this share of the points in a
# slab of so many parts of their spread, found among so many trials.
_PLANE_ANGLE, _PLANE_SHARE, _PLANE_SLAB, _TRIALS = 0.35, 0.25, 0.02, 512
_PLANE_POINTS = 2048


def common_up(poses: np.ndarray, points: np.ndarray | None = None) -> np.ndarray:
    """Finds the direction that is upwards in most pictures, `3`, of poses world from camera.

    Points `n 3` refine it, if very many of them lie in one plane that is nearly level.
    """
    up = _camera_up(np.asarray(poses, float))
    plane = None if points is None else _level_plane(np.asarray(points, float), up)
    return up if plane is None else plane


def _camera_up(poses: np.ndarray) -> np.ndarray:
    x, y, back = (poses[:, :3, axis] for axis in range(3))
    # Phones that were held sideways have the world's upwards along their rows.
    mean = y.mean(axis=0)
    if np.linalg.norm(mean) < _LEAST_MEAN and np.linalg.norm(x.mean(axis=0)) >= _LEAST_MEAN:
        across, mean = y, x.mean(axis=0)
        # Of two signs, that with the cameras above what they look at.
        mean = mean if np.mean(back @ mean) >= 0 else -mean
    else:
        across = x
    length = float(np.linalg.norm(mean))
    if length < 1e-6:
        return np.array([0.0, 0.0, 1.0])
    mean = mean / length
    # Level cameras have their rows across the upward direction: min_u sum (x_i . u)^2, if the rows
    # span a plane.
    _, spread, rows = np.linalg.svd(across / np.sqrt(len(across)), full_matrices=True)
    level = rows[2] * np.sign(rows[2] @ mean or 1.0)
    spans = len(spread) > 2 and spread[1] > _LEAST_SPREAD and spread[2] < 0.5 * spread[1]
    return level if spans and level @ mean > 0.8 else mean


def _level_plane(points: np.ndarray, up: np.ndarray) -> np.ndarray | None:
    """Finds the normal of the plane that holds most points, if it is nearly level."""
    middle = np.median(points, axis=0)
    away = np.linalg.norm(points - middle, axis=1)
    points = points[away <= np.percentile(away, 80)]
    points = points[np.linspace(0, len(points) - 1, min(len(points), _PLANE_POINTS)).astype(int)]
    if len(points) < 64:
        return None
    slab = _PLANE_SLAB * float(np.median(away))
    # Normals of random triples, of which that with most points in its slab is taken.
    # RANSAC: Fischler and Bolles 1981, "Random Sample Consensus".
    triples = points[np.random.default_rng(0).integers(0, len(points), (_TRIALS, 3))]
    normals = np.cross(triples[:, 1] - triples[:, 0], triples[:, 2] - triples[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    normals *= np.sign(normals @ up)[:, None]
    level = normals @ up > np.cos(_PLANE_ANGLE)
    if not level.any():
        return None
    normals, starts = normals[level], triples[level, 0]
    # n . (x - p), of all points and planes
    heights = points @ normals.T - np.sum(normals * starts, axis=1)
    inside = np.abs(heights) < slab
    best = int(np.argmax(inside.sum(axis=0)))
    if inside[:, best].mean() < _PLANE_SHARE:
        return None
    # The direction of the least variance of the points in the slab.
    part = points[inside[:, best]]
    normal = np.linalg.svd(part - part.mean(axis=0), full_matrices=False)[2][2]
    normal = normal * np.sign(normal @ up)
    return normal if normal @ up > np.cos(_PLANE_ANGLE) else None
