"""Films of a run: the cameras that it remembers, and the paths along which they are filmed."""

import dataclasses
import difflib
import os
import pathlib
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..cameras import (
    AbstractCamera,
    common_up,
    ellipse,
    find_loop,
    interpolate,
    loop,
    NDCCamera,
    orbit,
    read_camera_path,
    scale_resolution,
    spiral,
)
from ..data import focus_point, Views
from ..fitting import poses_of
from ..io import FileError
from ..pixels import known_cameras, on_host, pixel_lines, take_camera
from ..rendering import Film, Track, write_film
from ..scene import load, load_whole, Scene
from ..settings import check_direction, held_out_split, moved_cameras
from ._run import CAMERAS_FILE, Run


# The path that LLFF data bring along: its name, and its place in a run's memory.
OWN_PATH = "data"
_FRAMES = 60
# Frames a second.
FILM_SPEED = 20.0


@dataclasses.dataclass(frozen=True)
class PathRequest:
    """The cameras of a film that is to be rendered.

    **Arguments:**

    - `path`: `orbit`, `spiral`, `ellipse`, `loop`, `interpolate`, `data` (the path of LLFF data),
      `views` (the cameras of `split`), or a JSON file of cameras; by default `data`, or `loop` for
      pictures without opacity, or else `orbit`.
    - `frames`: the number of frames; by default 60, or all views, or all cameras of the file.
    - `order`, `keyframes`: the arguments of `interpolate`.
    - `split`: the split of `views`; by default `test`, or else `val`, or else `train`.
    - `data`: the data folder of `views`; by default that of the fit.
    - `up`: the direction that is upwards, `3`; by default that which the data have, or, of pictures
      without opacity, that which the cameras have in common.
    """

    path: str | None = None
    frames: int | None = None
    order: Literal["nearest", "index"] = "nearest"
    keyframes: int | None = None
    split: str | None = None
    data: str | os.PathLike | None = None
    up: tuple[float, float, float] | None = None

    def __post_init__(self):
        check_direction("`up`", self.up)

    @property
    def length(self) -> int:
        """The number of frames of a path that has no number of its own."""
        return _FRAMES if self.frames is None else self.frames


@dataclasses.dataclass(frozen=True)
class PathContext:
    """The cameras of a run's data, as `summarise_cameras` found them when the run began."""

    run: Run
    memory: dict[str, Any]

    @property
    def camera(self) -> AbstractCamera:
        """A typical camera."""
        return self.memory["camera"]

    @property
    def place(self) -> tuple[Any, Any]:
        """The point that all cameras look at, and the direction upwards."""
        return self.memory["target"], self.memory["up"]

    @property
    def usual_path(self) -> str:
        """The path that is taken by default."""
        if OWN_PATH in self.memory:
            return OWN_PATH
        return "loop" if bool(self.memory.get("is_capture", False)) else "orbit"

    def turned(self, up: tuple[float, float, float] | None) -> "PathContext":
        """Returns the same with another direction upwards, if one is given."""
        if up is None:
            return self
        unit = np.asarray(up, np.float32) / np.linalg.norm(up)
        return dataclasses.replace(self, memory=self.memory | {"up": jnp.asarray(unit)})

    def poses(self) -> np.ndarray:
        """Returns the poses of all cameras; runs of earlier versions read them from their data."""
        if "poses" in self.memory:
            return np.asarray(self.memory["poses"])
        config, _ = self.run.load_config()
        return _poses(config.data.load(self.run.data_folder()))

    def own_cameras(self, frames: int) -> list[AbstractCamera]:
        """Returns cameras evenly spread along the data set's own path."""
        if OWN_PATH not in self.memory:
            raise ValueError("this run's data set has no path of its own; pass --path orbit.")
        own = self.memory[OWN_PATH]
        return [own[int(index)] for index in np.linspace(0, len(own), frames, endpoint=False)]


# A path is a function of context and request; a new one is a line here.
PATHS: dict[str, Callable[[PathContext, PathRequest], list[AbstractCamera]]] = {
    "orbit": lambda known, request: orbit(known.camera, *known.place, request.length),
    "spiral": lambda known, request: spiral(known.camera, *known.place, request.length),
    "ellipse": lambda known, request: ellipse(
        known.camera, known.poses(), *known.place, request.length
    ),
    "loop": lambda known, request: loop(known.camera, known.poses(), *known.place, request.length),
    "interpolate": lambda known, request: interpolate(
        known.camera,
        known.poses(),
        request.length,
        order=request.order,
        keyframes=request.keyframes,
    ),
    OWN_PATH: lambda known, request: known.own_cameras(request.length),
}


# What a run remembers of its cameras, and whether a value is such.
_MEMORY: dict[str, Callable[[Any], bool]] = {
    "camera": lambda x: isinstance(x, AbstractCamera),
    "target": lambda x: np.shape(x) == (3,),
    "up": lambda x: np.shape(x) == (3,),
    "poses": lambda x: np.ndim(x) == 3 and np.shape(x)[1:] == (4, 4),
    "is_capture": lambda x: np.shape(x) == (),
    OWN_PATH: lambda x: (
        isinstance(x, list | tuple)
        and len(x) > 0
        and all(isinstance(one, AbstractCamera) for one in x)
    ),
}


def film_run(
    run: Run,
    out: str | os.PathLike,
    request: PathRequest = PathRequest(),
    *,
    scene: Scene | None = None,
    max_width: int | None = None,
    track: Track = iter,
) -> list[pathlib.Path]:
    """Films a run along a camera path.

    **Arguments:**

    - `run`: the run.
    - `out`: the file of the film; it ends in `.gif` or `.mp4`.
    - `request`: the camera path.
    - `scene`: the scene; by default the saved one. Keyword only, as is all that follows.
    - `max_width`: the largest width of a frame, in pixels; by default that of the data.
    - `track`: an iterator over frame numbers, which may show progress.

    **Returns:**

    The file, in a list.
    """
    scene = load_whole(run.folder) if scene is None else scene
    cameras, speed = find_cameras(run, request)
    if max_width is not None and cameras[0].width > max_width:
        cameras = [scale_resolution(camera, max_width / camera.width) for camera in cameras]
    film, out = Film(scene, cameras), pathlib.Path(out)
    return write_film(film, out, frames_per_second=speed or FILM_SPEED, track=track)


def find_cameras(run: Run, request: PathRequest) -> tuple[list[AbstractCamera], float | None]:
    """Returns the cameras of a path of a run, and the frames a second that a file asks for."""
    if request.path == "views":
        config, _ = run.load_config()
        folder = run.find_data(request.data)
        views = config.data.load(folder, request.split or held_out_split(folder))
        if config.corrections.refines:
            views = moved_cameras(load_whole(run.folder), views)
        return _some([views.camera(i) for i in range(views.frames)], request.frames), None
    known = path_context(run).turned(request.up)
    path = request.path or known.usual_path
    if path in PATHS:
        return PATHS[path](known, request), None
    return read_cameras(request, known.camera, run.origin())


def describe_path(run: Run, request: PathRequest) -> str | None:
    """Says in one line where a loop among the cameras goes; `None` for other paths."""
    if request.path not in (None, "loop"):
        return None
    known = path_context(run).turned(request.up)
    if (request.path or known.usual_path) != "loop":
        return None
    found = find_loop(known.camera, known.poses(), *known.place, request.length)
    up = ", ".join(f"{x:.2f}" for x in np.asarray(known.place[1]))
    others = [path for path in PATHS if path not in ("loop", OWN_PATH)]
    return (
        f"the film {found.kind}, within {found.bound:.3g} of the nearest training picture, with "
        f"({up}) upwards (`scenegraph render` has --up, and --path {', '.join(others)} or views)"
    )


def read_cameras(
    request: PathRequest,
    camera: AbstractCamera,
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> tuple[list[AbstractCamera], float | None]:
    """Returns the cameras of a file, and its frames a second; sizes by default are a camera's.

    The scene's places are counted from `origin`, a place of the file's world.
    """
    path = request.path or ""
    if not path.endswith(".json"):
        choices = [*PATHS, "views"]
        near = difflib.get_close_matches(path, choices, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"there is no path {path!r}; did you mean {near!r}? A run knows "
            f"{', '.join(choices)}; any scene can be filmed along a file that ends in .json."
        )
    found = read_camera_path(path, camera, origin)
    return _some(found.cameras, request.frames), found.frames_per_second


def _some(cameras: list[AbstractCamera], frames: int | None) -> list[AbstractCamera]:
    """Picks evenly spread cameras; all by default."""
    if frames is None:
        return cameras
    if not 1 <= frames <= len(cameras):
        raise ValueError(f"there are {len(cameras)} cameras; --frames asks for {frames}.")
    return [cameras[number * len(cameras) // frames] for number in range(frames)]


def path_context(run: Run) -> PathContext:
    """Reads what a run remembers of its cameras."""
    path = run.folder / CAMERAS_FILE
    memory = load(path)
    if not isinstance(memory, dict):
        raise FileError(f"{path} does not hold what a run remembers of its cameras.")
    for name, holds in _MEMORY.items():
        if name in memory and not holds(memory[name]):
            raise FileError(f"{path}: `{name}` is not what a run remembers of its cameras.")
        if name not in memory and name in ("camera", "target", "up"):
            raise FileError(f"{path}: `{name}` is missing.")
    return PathContext(run, memory)


def summarise_cameras(views: Views) -> dict[str, Any]:
    """Finds a typical camera, the point that all look at, what is upwards, and all poses."""
    # Smaller pictures may be the same ones, seen from the same places.
    frames = _largest(views)[:50]
    ndc, stacked = isinstance(views.cameras, NDCCamera), known_cameras(views)
    stacked = stacked.camera if isinstance(stacked, NDCCamera) else stacked
    middle = np.asarray([int(views.widths[frames[0]]), int(views.heights[frames[0]])]) / 2
    lines = pixel_lines(stacked, np.asarray(frames), np.tile(middle, (len(frames), 1)))
    positions, directions = lines[0], lines[1] / np.linalg.norm(lines[1], axis=1, keepdims=True)
    target, poses = focus_point(positions, directions), _poses(views)
    # Pictures without opacity may show a room that was photographed the wrong way up.
    is_capture, up = views.pixels.shape[1] < 4 and not ndc, np.eye(3)[1 if ndc else 2]
    if is_capture:
        up = common_up(poses, None if views.points is None else np.asarray(views.points))
    # The camera of middle height above that point is the typical one.
    order = np.argsort((positions - target) @ up)
    camera = _known_camera(views, frames[order[len(order) // 2]])
    place = {"target": target, "up": up}
    place = {name: jnp.asarray(x.astype(np.float32)) for name, x in place.items()}
    return {"camera": camera, **place, "poses": poses, "is_capture": jnp.asarray(is_capture)}


def _known_camera(views: Views, frame: int) -> AbstractCamera:
    """Returns the camera of one picture, of its size."""
    camera = take_camera(on_host(known_cameras(views)), frame)
    size = int(views.widths[frame]), int(views.heights[frame])
    camera = camera if size == (camera.width, camera.height) else camera.resized(*size)
    return jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_array(x) else x, camera)


def _largest(views: Views) -> list[int]:
    sizes = np.asarray(views.widths * views.heights)
    return np.flatnonzero(sizes == sizes.max()).tolist()


def _poses(views: Views) -> np.ndarray:
    """Returns world from camera, `cameras 4 4`, of the largest pictures."""
    return poses_of(known_cameras(views)).astype(np.float32)[_largest(views)]
