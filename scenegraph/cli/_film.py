"""The pictures and films that `render` writes."""

import dataclasses
import pathlib

from ..assets import add_lights, camera_path, load_scene, scene_camera
from ..cameras import AbstractCamera
from ..integrators import Path
from ..interop import mujoco
from ..models import MODEL_ENDINGS
from ..rendering import (
    Exr,
    Film,
    resized,
    Rows,
    SeparateFiles,
    Suite,
    write_film,
    write_frames,
    write_still,
)
from ..runs import (
    describe_path,
    find_cameras,
    open_run,
    path_context,
    PathRequest,
    read_cameras,
)
from ..scene import camera_paths, find_camera, load_whole, Scene
from ._console import say
from ._progress import track_frames, track_passes
from ._render import Render


_SPEED = 20.0
# Files that MuJoCo reads, and the size of their pictures.
_SIMULATED = (".xml", ".urdf", ".mjcf")
_WIDE, _HIGH = 640, 480


def write_pictures(command: Render) -> list[pathlib.Path]:
    """Renders what the flags ask for, and returns the files that were written."""
    scene, cameras, speed = _gather(command)
    cameras = resized(cameras, command.width, command.height, command.scale)
    chunk = "auto" if command.chunk is None else command.chunk
    show = ("rgb", "depth", "opacity") if command.suite else command.show
    film = Film(
        scene,
        cameras,
        tuple(dict.fromkeys(show)),
        command.color_map,
        chunk,
        command.samples_per_pixel,
    )
    if command.integrator == "path":
        paths = Path(samples=command.samples, bounces=command.bounces)
        # Of films, the bar counts frames.
        track = track_passes if len(cameras) == 1 else iter
        film = dataclasses.replace(film, paths=paths, track=track)
    out = command.out or _default_out(command)
    return _write(command, film, out, command.fps or speed or _SPEED)


def _gather(command: Render) -> tuple[Scene, list[AbstractCamera], float | None]:
    """Returns the scene, the cameras, and the frames a second that a file asks for."""
    request = PathRequest(
        command.path,
        command.frames,
        command.order,
        command.keyframes,
        command.split,
        command.data,
        command.up,
    )
    if command.run.suffix.lower() in MODEL_ENDINGS:
        return _gather_model(command, request)
    if command.run.suffix.lower() in _SIMULATED:
        return _gather_simulation(command, request)
    if command.run.is_file():
        scene = load_whole(command.run)
    else:
        run = open_run(command.run)
        run.load_config()  # A folder that is no run is refused first.
        scene = load_whole(run.folder)
        if command.camera is None:
            request = dataclasses.replace(request, path="views" if command.suite else command.path)
            if line := describe_path(run, request):
                say(line)
            return scene, *find_cameras(run, request)
    camera = find_camera(scene, command.camera or _only_camera(scene))
    if command.path is None:
        return scene, [camera], None
    return scene, *read_cameras(request, camera)


def _gather_model(
    command: Render, request: PathRequest
) -> tuple[Scene, list[AbstractCamera], float | None]:
    """Returns the same for a file of meshes, with a camera and lights where it has none."""
    scene = add_lights(load_scene(command.run))
    camera = scene_camera(scene, command.camera)
    if command.path is None:
        return scene, [camera], None
    if command.path.endswith(".json"):
        return scene, *read_cameras(request, camera)
    return scene, camera_path(scene, camera, command.path, request.length), None


def _gather_simulation(
    command: Render, request: PathRequest
) -> tuple[Scene, list[AbstractCamera], float | None]:
    """Returns the same for a model that MuJoCo reads; its cameras are named without `cameras`."""
    scene = mujoco.load_model(command.run, width=_WIDE, height=_HIGH)
    known = [path.removeprefix("cameras.") for path in camera_paths(scene)]
    name = command.camera or "free"
    name = name.removeprefix("cameras.")
    if name not in known:
        raise ValueError(f"there is no camera {name!r} in {command.run}; pass one of: {known}.")
    camera = find_camera(scene, f"cameras.{name}")
    if command.path is None:
        return scene, [camera], None
    if command.path.endswith(".json"):
        return scene, *read_cameras(request, camera)
    return scene, camera_path(scene, camera, command.path, request.length), None


def _default_out(command: Render) -> pathlib.Path:
    if command.run.is_file():
        return command.run.with_suffix(".png" if command.path is None else ".gif")
    if command.suite:
        return open_run(command.run).subfolder("test_preds")
    if command.camera is not None and command.path is None:
        return command.run / f"{command.camera}.png"
    path = command.path or path_context(open_run(command.run)).usual_path
    return command.run / f"{pathlib.Path(path).stem}.gif"


def _write(command: Render, film: Film, out: pathlib.Path, speed: float) -> list[pathlib.Path]:
    track = track_frames(len(film.cameras))
    if command.suite or out.is_dir() or out.suffix == "":
        write_frames(film, out, _frame_files(command), overwrite=command.overwrite, track=track)
        return [out]
    if out.suffix in (".png", ".exr"):
        return write_still(film, out, separate=command.separate)
    return write_film(film, out, frames_per_second=speed, separate=command.separate, track=track)


def _frame_files(command: Render) -> Exr | SeparateFiles | Rows | Suite:
    if command.suite:
        return Suite()
    if command.format == "exr":
        return Exr()
    return SeparateFiles() if command.separate else Rows()


def _only_camera(scene: Scene) -> str:
    known = camera_paths(scene)
    if len(known) != 1:
        raise ValueError(f"pass --camera, one of: {', '.join(known) or '(there is none)'}.")
    return known[0]
