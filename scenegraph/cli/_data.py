import contextlib
import dataclasses
import pathlib
import time
from typing import Annotated, Literal

import tyro

from ..io import FileError
from ..settings import check_ranges, ranged
from ._console import say
from ._progress import show_phase


# Seconds between two lines about the views that are done.
_OFTEN = 2.0


@dataclasses.dataclass(frozen=True)
class Data:
    """Make a data set to fit: a table-top of balls, blocks, rods and rings, from all sides.

    It is in Blender's format: RGBA pictures with the true coverage of every pixel, straight
    colours, sRGB-encoded.
    """

    # Renders the data set.
    action: Annotated[Literal["make"], tyro.conf.Positional]

    # The folder for transforms_train.json, ... and pictures; it must be new or empty.
    out: Annotated[pathlib.Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")]

    # Height and width of the pictures, in pixels.
    size: int = ranged(128, 1, 2**14)

    # The number of views to fit.
    views: int = ranged(100, 1, 10**6)

    # The number of held-out views for scores on the way.
    val: int = ranged(10, 0, 10**6)

    # The number of held-out views for the scores at the end.
    test: int = ranged(20, 1, 10**6)

    # The number of things on the table; with 300, most of them are small and many thin.
    count: int = ranged(30, 0, 10**6)

    # The seed of things and cameras.
    seed: int = ranged(0, 0, 2**32 - 1)

    # Write the true depths, along the camera's axis, as r_0_depth.npy and so on.
    depth: bool = False

    # Write the true normals, in the world, as r_0_normal.npy and so on.
    normals: bool = False

    def check(self) -> None:
        """Refuses wrong settings before anything is loaded."""
        check_ranges(self)
        if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
            raise FileError(f"{self.out} is there and not an empty folder; choose another OUT.")

    def main(self) -> None:
        """Makes the data set, and shows the progress."""
        from ..diagnostics import make_dataset, table_top

        began = time.monotonic()
        # The usual scene is not named: of it, the library brings pictures along.
        usual = (self.count, self.seed) == (30, 0)
        scene = None if usual else table_top(self.count, seed=self.seed)
        requested = {"depth": self.depth, "normal": self.normals}
        with contextlib.ExitStack() as stack:
            make_dataset(
                self.out,
                scene=scene,
                size=self.size,
                train=self.views,
                val=self.val,
                test=self.test,
                seed=self.seed,
                outputs=[name for name, wanted in requested.items() if wanted],
                progress=_Progress(stack).show,
            )
        seconds = time.monotonic() - began
        say(f"wrote {self.out} in {seconds:.0f} s; fit it with `scenegraph fit {self.out}`")


class _Progress:
    """Shows the progress: one phase until the first view is there, and one for the others."""

    def __init__(self, stack: contextlib.ExitStack):
        self._stack, self._told, self._began = stack, 0.0, 0.0

    def show(self, done: int, total: int) -> None:
        if done == 0:
            self._stack.enter_context(show_phase("compiling the renderer, and the first view"))
        if done == 1:
            self._stack.close()
            self._began = self._told = time.monotonic()
        now = time.monotonic()
        if done > 1 and (now > self._told + _OFTEN or done == total):
            left = (now - self._began) / (done - 1) * (total - done)
            say(f"rendered {done} of {total} views, {left:.0f} s left")
            self._told = now
