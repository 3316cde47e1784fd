import dataclasses
import pathlib
from typing import Annotated, Literal

import tyro

from ..io import check_color_map, FileError, USUAL_MAP
from ..settings import check_direction, check_ranges, ranged
from ._console import say
from ._flags import optional, OptionalFloat, OptionalInt, OptionalPath, OptionalStr


# Those of `images`, which needs JAX.
Quantity = Literal[
    "rgb",
    "depth",
    "median-depth",
    "opacity",
    "normals",
    "albedo",
    "uv",
    "positions",
    "surfaces",
    "candidates",
]
_ENDINGS = (".gif", ".mp4", ".png", ".exr")


@dataclasses.dataclass(frozen=True)
class Render:
    """Film a fitted scene along a camera path, or render a saved scene or a file of meshes."""

    # The run folder; or a saved scene with a camera in it; or a .glb, .gltf, .obj, .ply or .stl
    # file, which gets a camera and lights where it has none; or an .xml or .urdf file that MuJoCo
    # reads (extra mujoco), whose camera is that of the viewer, `free`, unless --camera names one.
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
    color_map: str = USUAL_MAP

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

    # The integrator: auto, which is that of the scene, or path, which follows random paths of light
    # through surfaces: soft shadows, reflections and light that bounces, with noise.
    integrator: Literal["auto", "path"] = "auto"

    # The number of random paths of every pixel, with --integrator path, rounded up to whole passes.
    # Ctrl-C ends a picture early, and writes the mean of the passes that are done.
    samples: int = ranged(64, 1, 2**24)

    # The number of times that light is scattered before it reaches what is seen, with --integrator
    # path.
    bounces: int = ranged(4, 0, 2**10)

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)
        check_direction("--up", self.up)
        check_color_map(self.color_map)
        if self.integrator == "path" and self.samples_per_pixel != 1:
            raise ValueError("--integrator path has --samples; leave --samples-per-pixel out.")
        self._check_out()

    def main(self) -> None:
        """Renders and writes."""
        from ._film import write_pictures

        for path in write_pictures(self):
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
