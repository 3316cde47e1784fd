"""The report that a fit ends with: a plot of its course, scores, and a film."""

import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

from ..cameras import AbstractCamera, scale_resolution
from ..data import save_transforms, Views
from ..io import atomic_write, FileError
from ..rendering import Film, Track, write_film
from ..scene import load_whole, Scene
from ..settings import alignment_rays, held_out_split
from ._evaluate import score_views
from ._held_out import HeldOut, place_held_out
from ._paths import describe_path, FILM_SPEED, find_cameras, PathRequest
from ._report import report
from ._residuals import EMPTY_SCENE, find_outliers, residual_rays
from ._run import read_log, Run, silent
from ._time_plan import TimePlan


_FRAMES, _WIDTH = 30, 160
# A film of fewer frames is none.
_FEWEST = 8


@dataclasses.dataclass(frozen=True)
class FinalReport:
    """A plot of the fit's course, scores on held-out pictures, and a film."""

    frames: list[int] | None = None  # the held-out pictures to score; `None` for all
    film: Literal["turntable", "none"] = "turntable"
    # What there is no time for is left out: frames of the film first, then pictures to score.
    plan: TimePlan = dataclasses.field(default_factory=TimePlan)
    training: Views | None = None  # those of them that the fit shows badly are named
    refines: bool = False  # the cameras of the pictures to score have to be found, too

    def write(
        self,
        run: Run,
        scene: Scene | None = None,
        *,
        data: str | os.PathLike | None = None,
        held_out: HeldOut | None = None,
        say: Callable[[str], Any] = silent,
        track: Track = iter,
    ) -> None:
        """Writes `metrics.json`, `pictures/`, `turntable.gif` and `curve.png`."""
        scene = load_whole(run.folder) if scene is None else scene
        held_out = _read(run, data) if held_out is None else held_out
        held_out = place_held_out(scene, held_out, say, self.plan)
        self._save_cameras(run, held_out, say)
        metrics = score_views(run, scene, held_out, self.frames, say=say, plan=self.plan)
        if self.training is not None and held_out.is_held_out:
            self._compare_training(run, scene, metrics, say)
        if self.film != "none":
            self._write_film(run, scene, say, track)
        if run.log.exists():
            plot_log(read_log(run.log), run.folder / "curve.png")
        # There is no SSIM of very small pictures.
        ssim = "" if metrics["ssim"] is None else f", ssim {metrics['ssim']:.3f}"
        split, pictures = held_out.split, len(metrics["per_image"])
        name, others = (split, "") if held_out.is_held_out else ("training", " (none are held out)")
        say(
            f"{name} psnr {metrics['psnr']:.2f} dB{ssim} on {pictures} "
            f"picture{'s'[: pictures != 1]}{others}; see {run.folder}"
        )

    def rays(self, held_out: HeldOut) -> int:
        """Counts the rays of all pictures and frames."""
        width, height = int(held_out.views.widths[0]), int(held_out.views.heights[0])
        scale = min(1.0, _WIDTH / width)
        frames = 0 if self.film == "none" else _FRAMES
        film = frames * round(scale * width) * round(scale * height)
        training = 0 if self.training is None else residual_rays(self.training)
        alignment = alignment_rays(held_out.views.frames) if self.refines else 0
        return held_out.rays() + film + training + alignment

    def _save_cameras(self, run: Run, held_out: HeldOut, say: Callable[[str], Any]) -> None:
        """Writes corrected cameras, those of held-out pictures too, as a listing to fit again."""
        if held_out.cameras is None or self.training is None:
            return
        splits = {"train": self.training, held_out.split: held_out.views}
        try:
            path = save_transforms(run.folder, splits, held_out.folder)
        except (FileError, TypeError) as error:
            say(f"the corrected cameras are not written: {error}")
            return
        say(f"wrote {path}, the corrected cameras: `scenegraph fit {path}` takes them as given")

    def _compare_training(
        self, run: Run, scene: Scene, metrics: dict[str, Any], say: Callable[[str], Any]
    ) -> None:
        """Adds the training pictures that the fit shows badly to the report, if there is time."""
        if self.training is None or not isinstance(self.training.cameras, AbstractCamera):
            return
        found = find_outliers(scene, self.training, self.plan)
        if found is None:
            say("there is no time to look for training pictures that the fit shows badly")
            return
        metrics["training"] = found
        run.save_metrics(metrics, report(metrics))
        if found["empty"]:
            say(EMPTY_SCENE)
        if number := len(found["outliers"]) + found["more"]:
            say(f"{number} training pictures are shown badly; {run.report} names them")

    def _write_film(self, run: Run, scene: Scene, say: Callable[[str], Any], track: Track) -> None:
        """Films the turntable, with as many frames as there is time for."""
        cameras = self._film_cameras(run, _FRAMES)
        rays = cameras[0].width * cameras[0].height
        frames = min(_FRAMES, self.plan.affordable(rays))
        later = f"`scenegraph render {run.folder}` makes one"
        if line := describe_path(run, PathRequest(frames=_FRAMES)):
            say(line)
        if frames < _FEWEST:
            say(f"there is no time for a film; {later}")
            return
        if frames < _FRAMES:
            say(f"there is time for {frames} of the film's {_FRAMES} frames; {later} of any length")
            cameras = self._film_cameras(run, frames)

        def in_time(numbers: list[int]) -> Iterator[int]:
            for number in track(numbers):
                if number and not self.plan.allows(rays):
                    say(f"the film ends after {number} frames, for want of time; {later}")
                    return
                yield number

        out = run.folder / "turntable.gif"
        write_film(Film(scene, cameras), out, frames_per_second=FILM_SPEED, track=in_time)

    def _film_cameras(self, run: Run, frames: int) -> list[AbstractCamera]:
        cameras, _ = find_cameras(run, PathRequest(frames=frames))
        scale = min(1.0, _WIDTH / cameras[0].width)
        return cameras if scale == 1 else [scale_resolution(x, scale) for x in cameras]


def _read(run: Run, data: str | os.PathLike | None) -> HeldOut:
    """Reads the held-out pictures of a run."""
    (config, _), folder = run.load_config(), run.find_data(data)
    split = held_out_split(folder)
    return HeldOut(folder, split, config.data.load(folder, split), config.data)


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
    with atomic_write(path) as beside:
        figure.savefig(beside, dpi=120, format="png")
