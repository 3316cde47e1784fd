"""The cameras that a run remembers for its films."""

import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..cameras import AbstractCamera, NDCCamera, orbit, spiral
from ..data import llff_path, look_centre, Views
from ..fit import FitConfig, format_options, Run
from ..scene import load


CAMERAS_FILE = "cameras.sg"
PATHS = {"orbit": orbit, "spiral": spiral}
# The name of the path that a data set brings along, if it does.
OWN_PATH = "data"


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


def film_memory(views: Views, folder: pathlib.Path, config: FitConfig) -> dict[str, Any]:
    """What a run remembers for its films.

    **Arguments:**

    - `views`: the pictures of the scene.
    - `folder`: where they are from.
    - `config`: how they were loaded.

    **Returns:**

    What `turntable` gives, and the data set's own path if it has one.
    """
    options = format_options(config, folder)
    if "hold_every" not in options:
        return turntable(views)
    del options["hold_every"]
    limits = {"downscale": config.downscale, "near": config.near, "far": config.far}
    return {**turntable(views), OWN_PATH: llff_path(folder, **limits, **options)}


def has_own_path(run: Run) -> bool:
    """Whether a run's data set brought a path along.

    **Arguments:**

    - `run`: with remembered cameras.

    **Returns:**

    True for LLFF data.
    """
    return OWN_PATH in load(run.folder / CAMERAS_FILE)


def path_cameras(name: str, memory: dict[str, Any], frames: int) -> list[AbstractCamera]:
    """The cameras of a path.

    **Arguments:**

    - `name`: one of `PATHS`, or `OWN_PATH`.
    - `memory`: from `film_memory`.
    - `frames`: how many.

    **Returns:**

    The cameras.

    **Errors:**

    `ValueError` for `OWN_PATH` of a run whose data set has none.
    """
    if name == OWN_PATH:
        own = memory.get(OWN_PATH)
        if own is None:
            raise ValueError("this run's data set has no path of its own; pass --path orbit.")
        return [own[int(index)] for index in np.linspace(0, len(own), frames, endpoint=False)]
    return PATHS[name](memory["camera"], memory["target"], memory["up"], frames)
