"""What is rendered when a fit has ended, and how long that will take."""

import dataclasses
import pathlib
import time

import numpy as np

from ..data import Views
from ..fit import evaluate, plot_log, read_log, Run
from ..scene import Scene
from ._console import say
from ._eval import evaluate_run
from ._render import render_path


_TURNTABLE_FRAMES = 30
_TURNTABLE_PIXELS = 160
# Of --max-time, at most this share goes into the last pictures.
_SHARE = 0.25
# Seconds for the plot, the files, and loading the held-out pictures once more.
_OVERHEAD = 8.0


@dataclasses.dataclass(frozen=True)
class Finale:
    """The pictures that a fit ends with.

    **Arguments:**

    - `frames`: numbers of the held-out pictures that are scored.
    - `seconds`: how long it all will take.
    """

    frames: list[int]
    seconds: float

    def play(self, run: Run, scene: Scene, folder: pathlib.Path) -> None:
        """Plots, scores, films, and says how good it is.

        **Arguments:**

        - `run`: where to write.
        - `scene`: the fitted scene.
        - `folder`: the data folder.
        """
        if run.log.exists():
            plot_log(read_log(run.log), run.folder / "curve.png")
        metrics = evaluate_run(run, scene, folder, None, self.frames)
        film = run.folder / "turntable.gif"
        render_path(run, "orbit", _TURNTABLE_FRAMES, film, most_pixels=_TURNTABLE_PIXELS)
        say(
            f"test psnr {metrics['psnr']:.2f} dB, ssim {metrics['ssim']:.3f} on "
            f"{len(metrics['per_image'])} pictures; see {run.folder}"
        )


def plan_finale(scene: Scene, held_out: Views, max_time: float | None) -> Finale:
    """Chooses what to render at the end, so that it fits into a share of the time limit.

    One picture is rendered now, twice, which also compiles what the end needs.

    **Arguments:**

    - `scene`: before the fit; it takes as long to render as after.
    - `held_out`: the pictures to score.
    - `max_time`: the limit in seconds; `None` for no limit.

    **Returns:**

    The plan: all pictures if there is time, else as many as there is time for.
    """
    if max_time is None:
        return Finale(list(range(held_out.frames)), 0.0)
    evaluate(scene, held_out, frames=[0])
    begin = time.monotonic()
    evaluate(scene, held_out, frames=[0])
    one = 1.3 * (time.monotonic() - begin)
    film = _TURNTABLE_FRAMES * one * min(1.0, _TURNTABLE_PIXELS / int(held_out.widths[0])) ** 2
    count = int((_SHARE * max_time - _OVERHEAD - film) / one)
    count = max(1, min(held_out.frames, count))
    frames = np.linspace(0, held_out.frames - 1, count).round().astype(int).tolist()
    if count < held_out.frames:
        say(f"the fit will end with {count} of {held_out.frames} pictures; `eval` scores them all")
    return Finale(frames, _OVERHEAD + film + count * one)
