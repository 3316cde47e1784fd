"""The pictures of depth that the published mip-NeRF code writes."""

import numpy as np

from ._color_maps import color_map


_EPSILON = np.finfo(np.float32).eps
# The range of log depth after which the colours of `depth_mod` come again.
_PERIOD = 0.1


def published_suite(depth: np.ndarray, alpha: np.ndarray) -> dict[str, np.ndarray]:
    """Draws `depth`, `depth_mod` and `depth_normals`, `height width 3` from 0 to 1."""
    # `visualize_suite` of the published mip-NeRF code. `depth` is even in its logarithm, which
    # `depth_mod` repeats at every tenth; `depth_normals` takes depth for the height of a relief.
    t, opacity = np.asarray(depth, np.float64), np.asarray(alpha, np.float64)
    pictures = {
        "depth": color_map(_log_scale(t, opacity), "turbo") / 255,
        "depth_mod": _sinebow(np.mod(-np.log(t + _EPSILON), _PERIOD) / _PERIOD),
        "depth_normals": _relief(t),
    }
    alpha_last = opacity[..., None]
    return {name: rgb * alpha_last + 1 - alpha_last for name, rgb in pictures.items()}


def _log_scale(depth: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Scales log depth from 1 at the nearest pixel to 0 at the farthest."""
    # Pixels at which nothing is do not count; in the published code they do, with their ray's near.
    there = depth[alpha > 0] if np.any(alpha > 0) else depth
    near, far = np.log(there.min() + _EPSILON), np.log(there.max() + _EPSILON)
    return np.clip((far - np.log(depth + _EPSILON)) / max(far - near, _EPSILON), 0, 1)


def _sinebow(hue: np.ndarray) -> np.ndarray:
    """Computes squared sines, a third of a turn apart: a rainbow that closes."""
    return np.sin(np.pi * (np.asarray([3, 5, 7]) / 6 - hue[..., None])) ** 2


def _relief(depth: np.ndarray) -> np.ndarray:
    """Draws the normals of depth as a relief, `(normal + 1) / 2`; white where it is flat."""
    # z is scaled to vary as much as the pixels' coordinates do; n = (-dz/dx, -dz/dy, 1) / |...|
    height, width = depth.shape
    across = (np.var(np.arange(width)) + np.var(np.arange(height))) / 2
    if not np.var(depth) > 0:
        return np.ones((height, width, 3))
    z = np.pad(depth * np.sqrt(across / np.var(depth)), 1)
    # Differences of neighbours, blurred across by (1, 2, 1) / 4; beyond the border z is zero.
    down = (z[:-2] + 2 * z[1:-1] + z[2:]) / 4
    right = (z[:, :-2] + 2 * z[:, 1:-1] + z[:, 2:]) / 4
    falls = np.stack([down[:, :-2] - down[:, 2:], right[:-2] - right[2:]], axis=-1) / 2
    normals = np.concatenate([falls, np.ones((height, width, 1))], axis=-1)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True) / 2 + 0.5
