"""The pictures of depth that the published mip-NeRF code writes."""

import numpy as np

from ._color_maps import color_map


_EPSILON = np.finfo(np.float32).eps
# The range of log depth after which the colours of `depth_mod` come again.
_PERIOD = 0.1


def published_suite(depth: np.ndarray, alpha: np.ndarray) -> dict[str, np.ndarray]:
    """Depth as colours, as colours that come again and again, and the normals of its relief.

    `depth` runs from red at the nearest pixel to blue at the farthest, evenly in its logarithm;
    `depth_mod` goes round a rainbow each time the logarithm changes by a tenth; `depth_normals`
    takes depth for the height of a relief over the picture, scaled to be about as deep as wide.

    Pixels at which there is nothing at all do not count for the nearest and the farthest; in the
    published code they do, with a depth of their ray's near end.

    **Arguments:**

    - `depth`: mean depth, `height width`.
    - `alpha`: opacity, of the same shape; the pictures fade to white where it falls.

    **Returns:**

    `depth`, `depth_mod` and `depth_normals`: arrays `height width 3`, from 0 to 1.

    **Source:** `visualize_suite` of the published mip-NeRF code.
    """
    t, opacity = np.asarray(depth, np.float64), np.asarray(alpha, np.float64)
    pictures = {
        "depth": color_map(_evenly_in_log(t, opacity), "turbo") / 255,
        "depth_mod": _sinebow(np.mod(-np.log(t + _EPSILON), _PERIOD) / _PERIOD),
        "depth_normals": _relief(t),
    }
    alpha_last = opacity[..., None]
    return {name: rgb * alpha_last + 1 - alpha_last for name, rgb in pictures.items()}


def _evenly_in_log(depth: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """1 at the nearest depth, 0 at the farthest."""
    there = depth[alpha > 0] if np.any(alpha > 0) else depth
    near, far = np.log(there.min() + _EPSILON), np.log(there.max() + _EPSILON)
    return np.clip((far - np.log(depth + _EPSILON)) / max(far - near, _EPSILON), 0, 1)


def _sinebow(hue: np.ndarray) -> np.ndarray:
    """Squared sines, a third of a turn apart: a rainbow that closes."""
    return np.sin(np.pi * (np.asarray([3, 5, 7]) / 6 - hue[..., None])) ** 2


def _relief(depth: np.ndarray) -> np.ndarray:
    """The normals of depth as a relief, `(normal + 1) / 2`; white where it is quite flat."""
    height, width = depth.shape
    across = (np.var(np.arange(width)) + np.var(np.arange(height))) / 2
    if not np.var(depth) > 0:
        return np.ones((height, width, 3))
    slopes = _slopes(depth * np.sqrt(across / np.var(depth)))
    normals = np.concatenate([slopes, np.ones((height, width, 1))], axis=-1)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True) / 2 + 0.5


def _slopes(z: np.ndarray) -> np.ndarray:
    """How `z` falls to the right and downwards, blurred across; beyond the border it is zero."""
    padded = np.pad(z, 1)
    down = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    right = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    return np.stack([down[:, :-2] - down[:, 2:], right[:-2] - right[2:]], axis=-1) / 2
