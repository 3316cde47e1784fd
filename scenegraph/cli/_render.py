import dataclasses
import pathlib
from typing import Annotated, Literal

import tyro

from ..assets import add_lights, camera_path, load_scene, scene_camera
from ..cameras import AbstractCamera
from ..images import check_color_map, Quantity
from ..io import FileError
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
from ..scene import camera_paths, find_camera, load, Scene
from ..settings import check_ranges, ranged
from ._console import say
from ._flags import optional, OptionalFloat, OptionalInt, OptionalPath, OptionalStr
from ._progress import track_frames


_SPEED = 20.0
_ENDINGS = (".gif", ".mp4", ".png", ".exr")


@dataclasses.dataclass(frozen=True)
class Render:
    """Film a fitted scene along a camera path, or render a saved scene or a file of meshes."""

    # The run folder; or a saved scene with a camera in it; or a .glb, .gltf, .obj, .ply or .stl
    # file, which gets a camera and lights where it has none.
    run: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]

    # The path of the camera: orbit, spiral, ellipse, loop (a closed path that stays among the
    # cameras of the data), interpolate, data (the path of LLFF data), views (the cameras
    # of --split), or a JSON file of cameras. By default data, or loop for pictures without opacity,
    # or else orbit.
    path: OptionalStr = None

    # The quantities that each frame shows, side by side.
    show: tuple[Quantity, ...] = ("rgb",)

    # The output: a .gif or .mp4 file (.mp4 needs the extra video), a .png or .exr file for the
    # first frame alone, or a folder for a file a frame. By default RUN/PATH.gif.
    out: OptionalPath = None

    # The number of frames; by default 60, or as many as there are views or cameras in the file.
    frames: OptionalInt = ranged(None, 1, 10**6)

    # The speed of a film, in frames a second; by default 20, or that of the file of cameras.
    fps: OptionalFloat = ranged(None, 0, 1000, open=True)

    # The width of the picture in pixels; the height follows. By default that of the data.
    width: OptionalInt = ranged(None, 1, 2**16)

    # The height of the picture in pixels; the width follows.
    height: OptionalInt = ranged(None, 1, 2**16)

    # The size of the picture, as a multiple of that of the data.
    scale: OptionalFloat = ranged(None, 0, 1024, open=True)

    # The format of the frames in a folder; .exr files hold numbers and need the extra exr.
    format: Literal["png", "exr"] = "png"

    # Write a film, or a file a frame, for each quantity, instead of showing them side by side.
    separate: bool = False

    # Write color, depth, depth_mod, depth_normals, distance and acc of every view of --split into
    # RUN/test_preds, with the names and colours of the published mip-NeRF code.
    suite: bool = False

    # Render frames again that are in the folder already.
    overwrite: bool = False

    # The colour map of depths, one of matplotlib's. Near things have its last colour.
    color_map: str = "turbo"

    # The order of the cameras of interpolate: from neighbour to neighbour and back, or as the data
    # lists them.
    order: Literal["nearest", "index"] = "nearest"

    # The number of the data's cameras that interpolate passes; by default one for ten frames.
    keyframes: OptionalInt = ranged(None, 1, 10**6)

    # The split of views: test (the default, if there is one), val, or train.
    split: OptionalStr = None

    # The data folder of views; by default the one that was fitted.
    data: OptionalPath = None

    # The direction that is upwards in the film of a run, such as 0 0 1; by default that of the
    # data, or that which the cameras of pictures without opacity have in common.
    up: Annotated[tuple[float, float, float] | None, optional("X Y Z")] = None

    # The path in the scene of a camera, to be used instead of one of the data's.
    camera: OptionalStr = None

    # The number of rays that are rendered at a time; by default what suits the device.
    chunk: OptionalInt = ranged(None, 1, 2**31 - 1)

    # The number of cones of every pixel, a square such as 16: edges and patterns are then closer to
    # what many rays would show, and pictures take as many times as long.
    samples_per_pixel: int = ranged(1, 1, 2**14)

    def main(self) -> None:
        """Renders and writes."""
        check_ranges(self)
        check_color_map(self.color_map)
        self._check_out()
        scene, cameras, speed = self._gather()
        cameras = resized(cameras, self.width, self.height, self.scale)
        chunk = "auto" if self.chunk is None else self.chunk
        show = ("rgb", "depth", "opacity") if self.suite else self.show
        film = Film(
            scene,
            cameras,
            tuple(dict.fromkeys(show)),
            self.color_map,
            chunk,
            self.samples_per_pixel,
        )
        out = self.out or self._default_out()
        for path in self._write(film, out, self.fps or speed or _SPEED):
            say(f"wrote {path}")

    def _check_out(self) -> None:
        """Refuses a file in a folder that does not exist, or of another kind."""
        out = self.out
        if out is None or self.suite or out.is_dir() or out.suffix == "":
            return
        if out.suffix not in _ENDINGS:
            raise FileError(f"--out {out} must end in {', '.join(_ENDINGS)}, or be a folder.")
        if not out.absolute().parent.is_dir():
            raise FileError(f"--out {out}: there is no folder {out.parent} to write into.")

    def _gather(self) -> tuple[Scene, list[AbstractCamera], float | None]:
        """Returns the scene, the cameras, and the frames a second that a file asks for."""
        request = PathRequest(
            self.path, self.frames, self.order, self.keyframes, self.split, self.data, self.up
        )
        if self.run.suffix.lower() in MODEL_ENDINGS:
            return self._gather_model(request)
        if self.run.is_file():
            scene = load(self.run)
        else:
            run = open_run(self.run)
            run.load_config()  # A folder that is no run is refused first.
            scene = load(run.folder)
            if self.camera is None:
                request = dataclasses.replace(request, path="views" if self.suite else self.path)
                if line := describe_path(run, request):
                    say(line)
                return scene, *find_cameras(run, request)
        camera = find_camera(scene, self.camera or _only_camera(scene))
        if self.path is None:
            return scene, [camera], None
        return scene, *read_cameras(request, camera)

    def _gather_model(
        self, request: PathRequest
    ) -> tuple[Scene, list[AbstractCamera], float | None]:
        """Returns the same for a file of meshes, with a camera and lights where it has none."""
        scene = add_lights(load_scene(self.run))
        camera = scene_camera(scene, self.camera)
        if self.path is None:
            return scene, [camera], None
        if self.path.endswith(".json"):
            return scene, *read_cameras(request, camera)
        return scene, camera_path(scene, camera, self.path, request.length), None

    def _default_out(self) -> pathlib.Path:
        if self.run.is_file():
            return self.run.with_suffix(".png" if self.path is None else ".gif")
        if self.suite:
            return self.run / "test_preds"
        if self.camera is not None and self.path is None:
            return self.run / f"{self.camera}.png"
        path = self.path or path_context(open_run(self.run)).usual_path
        return self.run / f"{pathlib.Path(path).stem}.gif"

    def _write(self, film: Film, out: pathlib.Path, speed: float) -> list[pathlib.Path]:
        track = track_frames(len(film.cameras))
        if self.suite or out.is_dir() or out.suffix == "":
            write_frames(film, out, self._frame_files(), overwrite=self.overwrite, track=track)
            return [out]
        if out.suffix in (".png", ".exr"):
            return write_still(film, out, separate=self.separate)
        return write_film(film, out, frames_per_second=speed, separate=self.separate, track=track)

    def _frame_files(self) -> Exr | SeparateFiles | Rows | Suite:
        if self.suite:
            return Suite()
        if self.format == "exr":
            return Exr()
        return SeparateFiles() if self.separate else Rows()


def _only_camera(scene: Scene) -> str:
    known = camera_paths(scene)
    if len(known) != 1:
        raise ValueError(f"pass --camera, one of: {', '.join(known) or '(there is none)'}.")
    return known[0]
