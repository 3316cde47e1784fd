import dataclasses
import pathlib
from typing import Annotated, Literal

import tyro

from ..cameras import scale_resolution
from ..fit import open_run, Run
from ..images import as_bytes
from ..io import write_animation, write_picture
from ..render import render
from ..scene import load
from ._console import say
from ._paths import CAMERAS_FILE, path_cameras


@dataclasses.dataclass(frozen=True)
class Render:
    """Film a fitted scene along a camera path."""

    run: Annotated[pathlib.Path, tyro.conf.Positional]
    """A run folder."""

    path: Literal["orbit", "spiral", "data"] = "orbit"
    """How the camera moves; data is the path that LLFF data bring along."""

    frames: int = 60
    """How many pictures; one that ends in .png holds the first."""

    out: pathlib.Path | None = None
    """A .gif, .mp4 (with the extra `video`) or .png file; by default RUN/PATH.gif."""

    def main(self) -> None:
        """Renders and writes the film."""
        run = open_run(self.run)
        run.load_config()
        out = self.out or run.folder / f"{self.path}.gif"
        render_path(run, self.path, self.frames, out)
        say(f"wrote {out}")


def render_path(
    run: Run, path: str, frames: int, out: pathlib.Path, *, most_pixels: int | None = None
) -> None:
    """Renders a run's scene along a path.

    **Arguments:**

    - `run`: with a scene and remembered cameras.
    - `path`: `orbit`, `spiral` or `data`.
    - `frames`: how many.
    - `out`: the file; a `.png` gets the first frame alone.
    - `most_pixels`: frames are made smaller if they are wider than this. Keyword only argument.
    """
    scene, memory = load(run.folder), load(run.folder / CAMERAS_FILE)
    cameras = path_cameras(path, memory, frames)
    width = cameras[0].width
    if most_pixels is not None and width > most_pixels:
        cameras = [scale_resolution(camera, most_pixels / width) for camera in cameras]
    if out.suffix == ".png":
        write_picture(out, as_bytes(render(scene, cameras[0])))
        return
    pictures = []
    for number, camera in enumerate(cameras, 1):
        pictures.append(as_bytes(render(scene, camera)))
        if number % 10 == 0 or number == frames:
            say(f"frame {number}/{frames}")
    write_animation(out, pictures)
