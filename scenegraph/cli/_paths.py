"""The cameras that a run remembers for its films."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from ..cameras import AbstractCamera, NDCCamera, orbit, spiral
from ..data import look_centre, Views
from ._own_path import own_cameras, OWN_PATH


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
    lines = [_world(c).line(jnp.asarray([c.width, c.height]) / 2) for c in cameras]
    positions, directions = (np.stack(part).astype(np.float64) for part in zip(*lines, strict=True))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    target = look_centre(positions, directions)
    order = np.argsort(positions[:, 2] - target[2])
    camera = cameras[order[len(order) // 2]]
    up = [0.0, 1.0, 0.0] if isinstance(camera, NDCCamera) else [0.0, 0.0, 1.0]
    return {"camera": camera, "target": jnp.asarray(target), "up": jnp.asarray(up)}


def _world(camera: AbstractCamera) -> AbstractCamera:
    return camera.camera if isinstance(camera, NDCCamera) else camera


def path_cameras(name: str, memory: dict[str, Any], frames: int) -> list[AbstractCamera]:
    """The cameras of a path.

    **Arguments:**

    - `name`: one of `PATHS`, or `OWN_PATH`.
    - `memory`: from `turntable`, and of the data's own path.
    - `frames`: how many.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for `OWN_PATH` of a run whose data set has none.
    """
    if name == OWN_PATH:
        return own_cameras(memory, frames)
    return PATHS[name](memory["camera"], memory["target"], memory["up"], frames)
