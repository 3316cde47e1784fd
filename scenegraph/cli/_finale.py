"""What is rendered when a fit has ended, and how long that will take."""

import dataclasses
import pathlib
import time

import numpy as np

from ..data import Views
from ..runs import evaluate, plot_log, read_log, Run
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
        render_path(run, scene, _TURNTABLE_FRAMES, film, most_pixels=_TURNTABLE_PIXELS)
        # There is no SSIM of very small pictures.
        ssim = "" if metrics["ssim"] is None else f", ssim {metrics['ssim']:.3f}"
        say(
            f"test psnr {metrics['psnr']:.2f} dB{ssim} on "
            f"{len(metrics['per_image'])} pictures; see {run.folder}"
        )


def plan_finale(scene: Scene, held_out: Views, max_time: float | None) -> Finale:
    """Chooses what to render at the end, so that it fits into a share of the time limit.

    A picture of each size is rendered now, twice, which also compiles what the end needs.

    **Arguments:**

    - `scene`: before the fit; it takes as long to render as after.
    - `held_out`: the pictures to score.
    - `max_time`: the limit in seconds; `None` for no limit.

    **Returns:**

    The plan: all pictures if there is time, else as many as there is time for.
    """
    if max_time is None:
        return Finale(list(range(held_out.frames)), 0.0)
    seconds = _seconds(scene, held_out)
    smaller = min(1.0, _TURNTABLE_PIXELS / int(held_out.widths[0]))
    film = _TURNTABLE_FRAMES * float(seconds[0]) * smaller**2
    left = _SHARE * max_time - _OVERHEAD - film
    choices = (_spread(held_out.frames, count) for count in range(held_out.frames, 0, -1))
    frames = next((x for x in choices if seconds[x].sum() <= left), [0])
    if len(frames) < held_out.frames:
        say(
            f"the fit will end with {len(frames)} of {held_out.frames} pictures; "
            "`eval` scores them all"
        )
    return Finale(frames, _OVERHEAD + film + float(seconds[frames].sum()))


def _seconds(scene: Scene, views: Views) -> np.ndarray:
    """How long each picture will take: as long as the first of its size does now."""
    sizes = np.stack([views.widths, views.heights], axis=-1)
    _, firsts, kinds = np.unique(sizes, axis=0, return_index=True, return_inverse=True)
    return np.asarray([_time(scene, views, int(first)) for first in firsts])[kinds.reshape(-1)]


def _time(scene: Scene, views: Views, frame: int) -> float:
    evaluate(scene, views, frames=[frame])
    begin = time.monotonic()
    evaluate(scene, views, frames=[frame])
    return 1.3 * (time.monotonic() - begin)


def _spread(frames: int, count: int) -> list[int]:
    return np.linspace(0, frames - 1, count).round().astype(int).tolist()
