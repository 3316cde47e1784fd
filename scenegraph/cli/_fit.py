import dataclasses
import pathlib
import time
from typing import Annotated

import jax
import numpy as np
import tyro

from ..data import Views
from ..diagnostics import make_dataset
from ..fit import (
    Console,
    Deadline,
    empty_extra,
    evaluate,
    Every,
    find_box,
    fit,
    FitConfig,
    FitResult,
    JsonLines,
    load_views,
    make_batches,
    make_loss,
    make_optimizer,
    make_scene,
    open_run,
    plot_log,
    preset,
    Progress,
    read_log,
    Run,
    start_state,
)
from ..scene import save, Scene
from ._console import say
from ._eval import evaluate_run, held_out_split
from ._paths import CAMERAS_FILE, turntable
from ._render import render_path
from ._time import process_age, seconds_of


_TURNTABLE_FRAMES = 30
# Seconds for the plot, the files, and loading the held-out pictures once more.
_FINALE_OVERHEAD = 5.0


@dataclasses.dataclass(frozen=True)
class Fit:
    """Fit a radiance field to a folder of Blender data, or to a data set made on the spot."""

    data: Annotated[pathlib.Path | None, tyro.conf.Positional] = None
    """Folder with transforms_train.json and pictures; without it, a small data set is made."""

    out: pathlib.Path | None = None
    """The run folder; by default the next free runs/NNN."""

    preset: str = "tiny"
    """Named settings to start from: tiny (minutes on a CPU) or mipnerf (the paper's)."""

    max_time: str | None = None
    """Stop after 90s, 5m or 2h, counted from process start, final pictures included."""

    resume: bool = False
    """Go on with the fit in --out from its last checkpoint."""

    config: Annotated[FitConfig, tyro.conf.arg(name="")] = dataclasses.field(
        default_factory=lambda: preset("tiny")
    )

    def main(self) -> None:
        """Loads, fits, evaluates, and leaves a run folder."""
        run = open_run(self.out or _next_free())
        run.prepare(resume=self.resume)
        folder = self._data_folder(run)
        run.save_config(self.config, data=str(folder), preset=self.preset)
        say(f"data {folder}, run {run.folder}")
        views = load_views(self.config, folder, "train")
        held_out = load_views(self.config, folder, held_out_split(folder))
        result = self._fit(run, views, held_out)
        run.save(result.state)
        _finish(run, result, folder)

    def _data_folder(self, run: Run) -> pathlib.Path:
        if self.data is not None:
            return self.data.resolve()
        folder = run.folder.resolve() / "data"
        if not (folder / "transforms_test.json").exists():
            say("no data folder given: rendering a small data set of analytic clouds")
            make_dataset(folder)
        return folder

    def _fit(self, run: Run, views: Views, held_out: Views) -> FitResult:
        config = self.config
        box = find_box(config, views)
        if box is not None:
            say(f"the scene lies between {_corner(box[0])} and {_corner(box[1])}")
        key = jax.random.key(config.seed)
        scene = make_scene(config, box, key=jax.random.fold_in(key, 1))
        save(turntable(views), run.folder / CAMERAS_FILE)
        batches, loss, optimizer = (
            make_batches(config, views, box),
            make_loss(config),
            make_optimizer(config),
        )
        state = None
        if self.resume:
            extra = empty_extra(loss, scene, batches, key)
            state = run.restore(start_state(scene, optimizer, extra=extra, key=key))
            run.cut_log(int(state.step))
            say(f"resuming at step {int(state.step):,}")
        return fit(
            scene,
            batches,
            optimizer=optimizer,
            loss=loss,
            steps=config.steps,
            key=key,
            callbacks=_callbacks(run, config, held_out),
            state=state,
            deadline=self._deadline(scene, held_out),
        )

    def _deadline(self, scene: Scene, held_out: Views) -> Deadline | None:
        if self.max_time is None:
            return None
        finale = _finale_seconds(scene, held_out)
        return Deadline(time.monotonic() + seconds_of(self.max_time) - process_age() - finale)


def _finale_seconds(scene: Scene, held_out: Views) -> float:
    """How long the last pictures will take, from one that is rendered now (and compiled for)."""
    evaluate(scene, held_out, frames=[0])
    begin = time.monotonic()
    evaluate(scene, held_out, frames=[0])
    one = time.monotonic() - begin
    return _FINALE_OVERHEAD + 1.2 * one * (held_out.frames + _TURNTABLE_FRAMES)


def _next_free() -> pathlib.Path:
    runs = pathlib.Path("runs")
    taken = {path.name for path in runs.iterdir()} if runs.is_dir() else set()
    return runs / next(f"{n:03d}" for n in range(1, 10**6) if f"{n:03d}" not in taken)


def _corner(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.3g}" for x in point) + ")"


def _callbacks(run: Run, config: FitConfig, held_out: Views) -> list:
    callbacks = [
        Console(config.log_every, config.batch_size),
        JsonLines(run.log, config.log_every, config.batch_size),
    ]
    if config.eval_every > 0:
        callbacks.append(Every(config.eval_every, _Sample(run, held_out)))
    if config.save_every > 0:
        callbacks.append(Every(config.save_every, lambda progress: run.save(progress.state)))
    return callbacks


@dataclasses.dataclass(frozen=True)
class _Sample:
    """Logs the PSNR of a few held-out pictures, evenly spread."""

    run: Run
    views: Views

    def __call__(self, progress: Progress) -> None:
        frames = np.unique(np.linspace(0, self.views.frames - 1, 4).astype(int))
        scores = evaluate(progress.state.model, self.views, frames=[int(x) for x in frames])
        mean = float(np.mean([score.psnr for score in scores]))
        say(f"held-out psnr {mean:.2f} dB on {len(scores)} pictures")
        self.run.append({"step": progress.step, "test_psnr": mean})


def _finish(run: Run, result: FitResult, folder: pathlib.Path) -> None:
    """Everything one wants to look at after a fit."""
    plot_log(read_log(run.log), run.folder / "curve.png")
    metrics = evaluate_run(run, result.scene, folder, None)
    render_path(run, "orbit", _TURNTABLE_FRAMES, run.folder / "turntable.gif")
    say(
        f"test psnr {metrics['psnr']:.2f} dB, ssim {metrics['ssim']:.3f} on "
        f"{len(metrics['per_image'])} pictures; see {run.folder}"
    )
