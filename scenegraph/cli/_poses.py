import dataclasses
import pathlib
import sys
import time
from typing import Annotated, Literal, TYPE_CHECKING

import tyro

from ..settings import check_ranges, ranged
from ._console import say
from ._flags import optional


if TYPE_CHECKING:
    from ..data import FoundPoses

# Seconds between two lines about the progress, where there is no terminal to draw on.
_OFTEN = 5.0


@dataclasses.dataclass(frozen=True)
class PhotographOptions:
    """The finding of poses, for photographs and videos that have none."""

    # The longest side, in pixels, of the small pictures in which features are found.
    size: int = ranged(1000, 100, 10_000)

    # The number of frames of a video that are used: of as many stretches the sharpest.
    frames: int = ranged(100, 3, 10_000)

    # The kind of the lenses: auto (a few coefficients of distortion), pinhole (none) or fisheye.
    lens: Literal["auto", "pinhole", "fisheye"] = "auto"

    # The direction upwards, such as 0 0 1, in the axes of the capture as cameras.png shows it
    # without this flag; by default it is found from the cameras and the points.
    up: Annotated[tuple[float, float, float] | None, optional("X Y Z")] = None

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)

    def find(self, photos: pathlib.Path, out: pathlib.Path) -> "FoundPoses":
        """Finds poses, shows the progress, and says what was found."""
        from ..data import find_poses

        show = _Progress()
        try:
            found = find_poses(
                photos,
                out,
                size=self.size,
                frames=self.frames,
                lens=self.lens,
                up=self.up,
                progress=show,
            )
        finally:
            show.end()
        for line in found.describe():
            say(line)
        return found


@dataclasses.dataclass(frozen=True)
class Poses:
    """Find the poses of photographs or of a video, and write a capture that `fit` reads.

    The capture holds the pictures, COLMAP's model, transforms.json, a picture of the cameras, and a
    report. Nothing is written beside the photographs.
    """

    # The folder of photographs, or a video.
    photos: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="PHOTOS")]

    # The folder of the capture: new, or that of an earlier call, which goes on.
    out: pathlib.Path

    options: Annotated[PhotographOptions, tyro.conf.arg(name="")] = PhotographOptions()

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        self.options.check()

    def main(self) -> None:
        """Finds poses."""
        found = self.options.find(self.photos, self.out)
        say(f"wrote {found.folder}; fit it with `scenegraph fit {found.folder}`")


class _Progress:
    """Shows how far each stage is: in place on a terminal, elsewhere now and then, in lines."""

    def __init__(self):
        self._stage, self._began, self._told = "", 0.0, 0.0
        self._terminal = sys.stderr.isatty()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self.end()
            self._stage, self._began, self._told = stage, now, now
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{stage}: {done} of {total}")
            sys.stderr.flush()
        elif now > self._told + _OFTEN and done < total:
            say(f"{stage}: {done} of {total}")
            self._told = now

    def end(self) -> None:
        """Ends a stage, and says how long it took."""
        if not self._stage:
            return
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
        say(f"{self._stage}: {time.monotonic() - self._began:.1f} s")
        self._stage = ""
