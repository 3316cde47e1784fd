"""The cameras that a run remembers for its films."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..cameras import AbstractCamera, orbit, spiral
from ..data import look_centre, Views


CAMERAS_FILE = "cameras.sg"
PATHS = {"orbit": orbit, "spiral": spiral}


def turntable(views: Views) -> dict[str, Any]:
    """What a film of a scene needs: a typical camera, and what to turn about.

    **Arguments:**

    - `views`: the pictures of the scene.

    **Returns:**

    The camera of middle height above the horizon among those of the largest pictures, the point
    that all cameras look at, and up.
    """
    sizes = np.asarray(views.widths * views.heights)
    cameras = [views.camera(int(frame)) for frame in np.flatnonzero(sizes == sizes.max())[:50]]
    lines = [camera.line(jnp.asarray([camera.width, camera.height]) / 2) for camera in cameras]
    positions, directions = (np.stack(part).astype(np.float64) for part in zip(*lines, strict=True))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    target = look_centre(positions, directions)
    order = np.argsort(positions[:, 2] - target[2])
    camera = cameras[order[len(order) // 2]]
    return {"camera": camera, "target": jnp.asarray(target), "up": jnp.asarray([0.0, 0.0, 1.0])}


def path_cameras(name: str, memory: dict[str, Any], frames: int) -> list[AbstractCamera]:
    """The cameras of a path.

    **Arguments:**

    - `name`: one of `PATHS`.
    - `memory`: from `turntable`.
    - `frames`: how many.

    **Returns:**

    The cameras.
    """
    return PATHS[name](memory["camera"], memory["target"], memory["up"], frames)
