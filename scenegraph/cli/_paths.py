"""Where the camera of a film goes, and what a run remembers for it."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from ..cameras import (
    AbstractCamera,
    ellipse,
    interpolate,
    NDCCamera,
    orbit,
    pose_matrix,
    spiral,
)
from ..data import focus_point, Views
from ..runs import Run
from ..scene import load
from ._eval import remembered_data
from ._own_path import own_cameras, OWN_PATH


CAMERAS_FILE = "cameras.sg"


def turntable(views: Views) -> dict[str, Any]:
    """What a film of a scene needs: a typical camera, all poses, and what to turn about.

    **Arguments:**

    - `views`: the pictures of the scene.

    **Returns:**

    The camera of middle height above the horizon among those of the largest pictures, the point
    that all cameras look at, up, and the poses of all cameras.
    """
    cameras = [views.camera(frame) for frame in _largest(views)[:50]]
    lines = [_world(c).line(jnp.asarray([c.width, c.height]) / 2) for c in cameras]
    positions, directions = (np.stack(part).astype(np.float64) for part in zip(*lines, strict=True))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    target = focus_point(positions, directions)
    order = np.argsort(positions[:, 2] - target[2])
    camera = cameras[order[len(order) // 2]]
    up = [0.0, 1.0, 0.0] if isinstance(camera, NDCCamera) else [0.0, 0.0, 1.0]
    return {
        "camera": camera,
        "target": jnp.asarray(target),
        "up": jnp.asarray(up),
        "poses": poses_of(views),
    }


def _largest(views: Views) -> list[int]:
    """The pictures of the largest size; smaller ones may be the same seen from the same places."""
    sizes = np.asarray(views.widths * views.heights)
    return np.flatnonzero(sizes == sizes.max()).tolist()


def _world(camera: AbstractCamera) -> AbstractCamera:
    return camera.camera if isinstance(camera, NDCCamera) else camera


def poses_of(views: Views) -> np.ndarray:
    """Where all cameras of the largest pictures are.

    **Arguments:**

    - `views`: the pictures of a scene.

    **Returns:**

    World from camera, `cameras 4 4`.
    """
    return np.stack([np.asarray(pose_matrix(views.camera(i))) for i in _largest(views)])


@dataclasses.dataclass(frozen=True)
class Known:
    """What a run knows of the cameras of its data.

    **Arguments:**

    - `run`: the run.
    - `memory`: what `turntable` found when it began.
    """

    run: Run
    memory: dict[str, Any]

    @property
    def camera(self) -> AbstractCamera:
        """A typical one."""
        return self.memory["camera"]

    @property
    def place(self) -> tuple[Any, Any]:
        """The point that all cameras look at, and up."""
        return self.memory["target"], self.memory["up"]

    def poses(self) -> np.ndarray:
        """Of all cameras; runs of earlier versions remember none, and look at their data again.

        **Returns:**

        World from camera, `cameras 4 4`.

        **Errors:**

        `FileError` if an earlier version's data folder is gone.
        """
        if "poses" in self.memory:
            return np.asarray(self.memory["poses"])
        config, others = self.run.load_config()
        return poses_of(config.data.load(remembered_data(self.run, others)))

    def usual_path(self) -> str:
        """The name of the path to take if nobody says.

        **Returns:**

        The data set's own if it has one, else an orbit.
        """
        return OWN_PATH if OWN_PATH in self.memory else "orbit"


def known_cameras(run: Run) -> Known:
    """What a run remembers of its cameras.

    **Arguments:**

    - `run`: with a file of cameras.

    **Returns:**

    What it knows.
    """
    return Known(run, load(run.folder / CAMERAS_FILE))


@dataclasses.dataclass(frozen=True)
class Wanted:
    """How a path is to be followed.

    **Arguments:**

    - `frames`: how many.
    - `order`, `keyframes`: as in `interpolate`.
    """

    frames: int
    order: Literal["nearest", "index"] = "nearest"
    keyframes: int | None = None


# A path is a function of what is known and what is wanted; a new one is a line here.
PATHS: dict[str, Callable[[Known, Wanted], list[AbstractCamera]]] = {
    "orbit": lambda known, wanted: orbit(known.camera, *known.place, wanted.frames),
    "spiral": lambda known, wanted: spiral(known.camera, *known.place, wanted.frames),
    "ellipse": lambda known, wanted: ellipse(
        known.camera, known.poses(), *known.place, wanted.frames
    ),
    "interpolate": lambda known, wanted: interpolate(
        known.camera, known.poses(), wanted.frames, order=wanted.order, keyframes=wanted.keyframes
    ),
    OWN_PATH: lambda known, wanted: own_cameras(known.memory, wanted.frames),
}
