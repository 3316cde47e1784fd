import dataclasses
import difflib
import pathlib
from typing import Annotated, Literal

import tyro

from ..cameras import AbstractCamera, read_camera_path, scale_resolution
from ..images import Quantity
from ..io import FileError
from ..rendering import (
    Apart,
    Exr,
    Film,
    resized,
    Rows,
    Suite,
    write_film,
    write_frames,
    write_still,
)
from ..runs import held_out_split, open_run, Run
from ..scene import camera_paths, find_camera, load, Scene
from ._console import say
from ._eval import remembered_data
from ._paths import Known, known_cameras, PATHS, Wanted
from ._progress import track_frames


_FRAMES, _SPEED = 60, 20.0
_ENDINGS = (".gif", ".mp4", ".png", ".exr")


@dataclasses.dataclass(frozen=True)
class Render:
    """Film a fitted scene along a camera path, or picture a saved one.

    Everything is in the documentation, on the page about rendering.
    """

    run: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run folder, or a saved scene with a camera in it."""

    path: str | None = None
    """How the camera moves: orbit, spiral, ellipse, interpolate, data (what LLFF data bring along),
    views (the cameras of --split), or a JSON file of cameras. By default data, or else orbit."""

    show: tuple[Quantity, ...] = ("rgb",)
    """What each frame shows, side by side."""

    out: pathlib.Path | None = None
    """A .gif or .mp4 file (.mp4 with the extra `video`); a .png or .exr file for the first frame
    alone; or a folder for a file a frame. By default RUN/PATH.gif."""

    frames: int | None = None
    """How many frames; by default 60, or as many as there are views, or cameras in the file."""

    fps: float | None = None
    """Frames a second of a .gif or .mp4; by default 20, or what a file of cameras says."""

    width: int | None = None
    """Of the picture, in pixels; the height follows. By default that of the data."""

    height: int | None = None
    """Of the picture, in pixels; the width follows."""

    scale: float | None = None
    """Times the size of the data's pictures."""

    format: Literal["png", "exr"] = "png"
    """Of the frames in a folder; .exr files (with the extra `exr`) hold numbers, not colours."""

    separate: bool = False
    """A film, or a file a frame, for each thing that is shown, instead of side by side."""

    suite: bool = False
    """Write color, depth, depth_mod, depth_normals, distance and acc of every view of --split, as
    the published mip-NeRF code names and colours them, into RUN/test_preds."""

    overwrite: bool = False
    """Render frames again that are in the folder already."""

    color_map: str = "turbo"
    """Of depths: one of matplotlib's. Near things have its last colour."""

    order: Literal["nearest", "index"] = "nearest"
    """Of interpolate: from neighbour to neighbour and round, or as the data lists its cameras."""

    keyframes: int | None = None
    """Of interpolate: through how many of the data's cameras; by default one for ten frames."""

    split: str | None = None
    """Of views: which; test (the default, if there is one), val, or train."""

    data: pathlib.Path | None = None
    """Of views: the data folder; by default the one that was fitted."""

    camera: str | None = None
    """The path of a camera in the scene, to be used instead of one of the data's."""

    chunk: int | None = None
    """How many rays are worked on at a time; by default what suits the device."""

    def main(self) -> None:
        """Renders and writes."""
        scene, cameras, speed = self._gather()
        cameras = resized(cameras, self.width, self.height, self.scale)
        if self.fps is not None and not self.fps > 0:
            raise ValueError(f"--fps must be positive; got {self.fps}.")
        chunk = "auto" if self.chunk is None else self.chunk
        show = ("rgb", "depth", "opacity") if self.suite else self.show
        film = Film(scene, cameras, tuple(dict.fromkeys(show)), self.color_map, chunk)
        out = self.out or self._default_out()
        for path in self._write(film, out, self.fps or speed or _SPEED):
            say(f"wrote {path}")

    def _gather(self) -> tuple[Scene, list[AbstractCamera], float | None]:
        """The scene, the cameras, and how fast they want to be shown."""
        if self.run.is_file():
            scene = load(self.run)
            return scene, *self._in_scene(scene)
        run = open_run(self.run)
        run.load_config()
        scene = load(run.folder)
        if self.camera is not None:
            return scene, *self._in_scene(scene)
        return scene, *self._of_run(run)

    def _in_scene(self, scene: Scene) -> tuple[list[AbstractCamera], float | None]:
        name = self.camera
        if name is None:
            known = camera_paths(scene)
            if len(known) != 1:
                raise ValueError(f"pass --camera, one of: {', '.join(known) or '(there is none)'}.")
            name = known[0]
        camera = find_camera(scene, name)
        if self.path is None:
            return [camera], None
        return self._from_file(camera)

    def _of_run(self, run: Run) -> tuple[list[AbstractCamera], float | None]:
        if self.suite or self.path == "views":
            return _spread(self._views(run), self.frames), None
        known = known_cameras(run)
        if self.path is not None and self.path not in PATHS:
            return self._from_file(known.camera)
        return self._along(known), None

    def _along(self, known: Known) -> list[AbstractCamera]:
        frames = _FRAMES if self.frames is None else self.frames
        wanted = Wanted(frames, self.order, self.keyframes)
        return PATHS[self.path or known.usual_path()](known, wanted)

    def _from_file(self, camera: AbstractCamera) -> tuple[list[AbstractCamera], float | None]:
        path = self.path or ""
        if not path.endswith(".json"):
            choices = [*PATHS, "views"]
            near = difflib.get_close_matches(path, choices, n=1, cutoff=0.0)[0]
            raise ValueError(
                f"there is no path {path!r}; did you mean {near!r}? A run knows "
                f"{', '.join(choices)}; any scene can be filmed along a file that ends in .json."
            )
        found = read_camera_path(path, camera)
        return _spread(found.cameras, self.frames), found.frames_per_second

    def _views(self, run: Run) -> list[AbstractCamera]:
        config, others = run.load_config()
        folder = self.data or remembered_data(run, others)
        views = config.data.load(folder, self.split or held_out_split(folder))
        return [views.camera(frame) for frame in range(views.frames)]

    def _default_out(self) -> pathlib.Path:
        if self.run.is_file():
            return self.run.with_suffix(".png" if self.path is None else ".gif")
        if self.suite:
            return self.run / "test_preds"
        if self.camera is not None and self.path is None:
            return self.run / f"{self.camera}.png"
        path = self.path or known_cameras(open_run(self.run)).usual_path()
        return self.run / f"{pathlib.Path(path).stem}.gif"

    def _write(self, film: Film, out: pathlib.Path, speed: float) -> list[pathlib.Path]:
        track = track_frames(len(film.cameras))
        if self.suite or out.is_dir() or out.suffix == "":
            files = Suite() if self.suite else self._frame_files()
            write_frames(film, out, files, overwrite=self.overwrite, track=track)
            return [out]
        if out.suffix not in _ENDINGS:
            raise FileError(f"--out {out} must end in {', '.join(_ENDINGS)}, or be a folder.")
        if out.suffix in (".png", ".exr"):
            return write_still(film, out, separate=self.separate)
        return write_film(film, out, frames_per_second=speed, separate=self.separate, track=track)

    def _frame_files(self) -> Exr | Apart | Rows:
        if self.format == "exr":
            return Exr()
        return Apart() if self.separate else Rows()


def _spread(cameras: list[AbstractCamera], frames: int | None) -> list[AbstractCamera]:
    """So many of the cameras, evenly spread; all by default."""
    if frames is None:
        return cameras
    if not 1 <= frames <= len(cameras):
        raise ValueError(f"there are {len(cameras)} cameras; --frames asks for {frames}.")
    return [cameras[number * len(cameras) // frames] for number in range(frames)]


def render_path(
    run: Run, scene: Scene, frames: int, out: pathlib.Path, *, most_pixels: int | None = None
) -> None:
    """Renders a run's scene along its usual path into a film.

    **Arguments:**

    - `run`: with remembered cameras.
    - `scene`: of the run.
    - `frames`: how many.
    - `out`: the file, `.gif` or `.mp4`.
    - `most_pixels`: frames are made smaller if they are wider than this. Keyword only argument.
    """
    known = known_cameras(run)
    cameras = PATHS[known.usual_path()](known, Wanted(frames))
    if most_pixels is not None and cameras[0].width > most_pixels:
        cameras = [scale_resolution(x, most_pixels / x.width) for x in cameras]
    write_film(
        Film(scene, cameras), out, frames_per_second=_SPEED, track=track_frames(len(cameras))
    )
