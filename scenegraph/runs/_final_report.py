"""The report that a fit ends with: a plot of its course, scores, and a film."""

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import Views
from ..rendering import Track
from ..scene import Scene
from ._evaluate import evaluate, evaluate_run
from ._paths import film_run, PathRequest
from ._run import read_log, Run, silent


_TURNTABLE_FRAMES = 30
_TURNTABLE_PIXELS = 160
# The largest share of a time limit that goes into the report.
_SHARE = 0.25
# Seconds for the plot, the files, and loading the held-out pictures once more.
_OVERHEAD = 8.0


@dataclasses.dataclass(frozen=True)
class FinalReport:
    """A plot of the fit's course, scores on held-out pictures, and a film.

    **Arguments:**

    - `frames`: the indices of the held-out pictures to score; `None` for all.
    - `seconds`: the expected duration, in seconds.
    """

    frames: list[int] | None = None
    seconds: float = 0.0

    def write(
        self,
        run: Run,
        scene: Scene | None = None,
        *,
        data: str | os.PathLike | None = None,
        say: Callable[[str], Any] = silent,
        track: Track = iter,
    ) -> None:
        """Writes `curve.png`, `metrics.json`, `pictures/` and `turntable.gif`.

        **Arguments:**

        - `run`: the run.
        - `scene`: the fitted scene; by default the saved one.
        - `data`: the data folder; by default that of the fit. Keyword only, as is what follows.
        - `say`: a function that is called with messages about progress and result.
        - `track`: an iterator over the film's frame numbers, which may show progress.
        """
        if run.log.exists():
            plot_log(read_log(run.log), run.folder / "curve.png")
        metrics = evaluate_run(run, data=data, scene=scene, frames=self.frames, say=say)
        request, out = PathRequest(frames=_TURNTABLE_FRAMES), run.folder / "turntable.gif"
        film_run(run, out, request, scene=scene, max_width=_TURNTABLE_PIXELS, track=track)
        # There is no SSIM of very small pictures.
        ssim = "" if metrics["ssim"] is None else f", ssim {metrics['ssim']:.3f}"
        split = metrics["protocol"]["split"]
        name, others = ("training", " (none are held out)") if split == "train" else (split, "")
        say(
            f"{name} psnr {metrics['psnr']:.2f} dB{ssim} on "
            f"{len(metrics['per_image'])} pictures{others}; see {run.folder}"
        )


def plan_final_report(
    scene: Scene, held_out: Views, limit: float | None, say: Callable[[str], Any] = silent
) -> FinalReport:
    """Chooses the pictures of the report, so that it fits into its share of a limit in seconds.

    A picture of each size is rendered twice, which also compiles what the report needs.
    """
    if limit is None:
        return FinalReport()
    seconds = _picture_seconds(scene, held_out)
    smaller = min(1.0, _TURNTABLE_PIXELS / int(held_out.widths[0]))
    film = _TURNTABLE_FRAMES * float(seconds[0]) * smaller**2
    left = _SHARE * limit - _OVERHEAD - film
    total = held_out.frames
    choices = (np.linspace(0, total - 1, n).round().astype(int) for n in range(total, 0, -1))
    frames = next((x.tolist() for x in choices if seconds[x].sum() <= left), [0])
    if len(frames) < total:
        say(
            f"the fit will end with {len(frames)} of {total} pictures; "
            "`scenegraph eval` scores them all"
        )
    return FinalReport(frames, _OVERHEAD + film + float(seconds[frames].sum()))


def _picture_seconds(scene: Scene, views: Views) -> np.ndarray:
    """Estimates the time of each picture from the first of its size."""
    sizes = np.stack([views.widths, views.heights], axis=-1)
    _, firsts, kinds = np.unique(sizes, axis=0, return_index=True, return_inverse=True)
    measured = []
    for first in firsts:
        evaluate(scene, views, frames=[int(first)])
        begin = time.monotonic()
        evaluate(scene, views, frames=[int(first)])
        measured.append(1.3 * (time.monotonic() - begin))
    return np.asarray(measured)[kinds.reshape(-1)]


def plot_log(log: list[dict[str, Any]], path: str | os.PathLike) -> None:
    """Draws loss and PSNR of a log against the step, into a PNG file."""
    # Here and not above: a plain import of the library does not load it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="tight")
    upper, lower = figure.subplots(2, 1, sharex=True)
    train = [line for line in log if "loss" in line]
    held_out = [line for line in log if "test_psnr" in line]
    upper.semilogy([line["step"] for line in train], [line["loss"] for line in train])
    upper.set(ylabel="loss", title="Fit")
    lower.plot([x["step"] for x in train], [x["psnr"] for x in train], label="training batch")
    if held_out:
        values = [line["test_psnr"] for line in held_out]
        lower.plot([x["step"] for x in held_out], values, "o-", label="held-out pictures")
    lower.set(xlabel="step", ylabel="PSNR (dB)")
    lower.legend()
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
