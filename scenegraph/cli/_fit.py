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
    AbstractCallback,
    Console,
    Deadline,
    empty_extra,
    evaluate,
    Every,
    find_box,
    find_hull,
    fit,
    FitConfig,
    FitError,
    FitState,
    gather_whole,
    JsonLines,
    load_views,
    make_batches,
    make_loss,
    make_optimizer,
    make_scene,
    open_run,
    preset,
    Progress,
    Run,
    start_state,
)
from ..io import MappedArray
from ..scene import save
from ._cluster import Cluster, is_first
from ._console import say
from ._eval import held_out_split
from ._finale import Finale, plan_finale
from ._paths import CAMERAS_FILE, turntable
from ._time import process_age, seconds_of


@dataclasses.dataclass(frozen=True)
class Fit:
    """Fit a radiance field to a folder of Blender data, or to a data set made on the spot."""

    data: Annotated[pathlib.Path | None, tyro.conf.Positional] = None
    """Folder with transforms_train.json and pictures; without it, a small data set is made."""

    out: pathlib.Path | None = None
    """The run folder; by default the next free runs/NNN."""

    preset: str = "fast"
    """Named settings to start from: fast (a grid, a minute on a CPU), fast-gpu (a larger one), tiny
    (a small network) or mipnerf (the paper's)."""

    max_time: str | None = None
    """Stop after 90s, 5m or 2h, counted from process start, final pictures included."""

    target_psnr: float | None = None
    """Stop when the held-out pictures that are looked at on the way are as good as this, in dB."""

    resume: bool = False
    """Go on with the fit in --out from its last checkpoint."""

    cluster: Annotated[Cluster, tyro.conf.arg(name="")] = Cluster()

    config: Annotated[FitConfig, tyro.conf.arg(name="")] = dataclasses.field(
        default_factory=lambda: preset("fast")
    )

    def main(self) -> None:
        """Loads, fits, evaluates, and leaves a run folder."""
        limit = None if self.max_time is None else seconds_of(self.max_time)
        if self.cluster.distributed and self.out is None:
            raise ValueError("--distributed needs --out, a folder that all processes see.")
        with self.cluster.joined():
            shared = open_run(self.out or _next_free())
            folder = self.cluster.first_then_others(lambda: self._begin_in(shared))
            with self.cluster.own_run(shared) as run:
                self._main(run, folder, limit)

    def _begin_in(self, run: Run) -> pathlib.Path:
        """Makes sure that the run folder will do, and returns the data folder."""
        if is_first():
            run.check(resume=self.resume)
        return self._data_folder(run)

    def _main(self, run: Run, folder: pathlib.Path, limit: float | None) -> None:
        views = load_views(self.config, folder, "train")
        held_out = load_views(self.config, folder, held_out_split(folder))
        say(f"data {folder}, run {run.folder}")
        if jax.device_count() > 1:
            say(f"{jax.device_count()} devices of {jax.process_count()} processes share the rays")
        if isinstance(views.pixels, MappedArray):
            say(f"the pixels are read from {views.pixels.path}")
        if views.pixels.shape[1] == 3:
            say("the pictures have no opacity: they are taken as they are, on no backdrop")
        state, finale = self._fit(run, folder, views, held_out, limit)
        run.save(gather_whole(state))
        finale.play(run, state.model, folder)

    def _data_folder(self, run: Run) -> pathlib.Path:
        if self.data is not None:
            return self.data.resolve()
        folder = run.folder.resolve() / "data"
        if not (folder / "transforms_test.json").exists():
            say("no data folder given: rendering a small data set of analytic clouds")
            make_dataset(folder)
        return folder

    def _fit(
        self, run: Run, folder: pathlib.Path, views: Views, held_out: Views, limit: float | None
    ) -> tuple[FitState, Finale]:
        config, key = self.config, jax.random.key(self.config.seed)
        box = find_box(config, views)
        if box is not None:
            say(f"the scene lies between {_corner(box[0])} and {_corner(box[1])}")
        empty = find_hull(config, views, box)
        scene = make_scene(config, box, empty, key=jax.random.fold_in(key, 1))
        batches, loss = make_batches(config, views, box), make_loss(config)
        optimizer = make_optimizer(config)
        state = None
        if self.resume:
            extra = empty_extra(loss, scene, batches, key)
            state = run.restore(start_state(scene, optimizer, extra=extra, key=key))
            say(f"resuming at step {int(state.step):,}")
        self._begin(run, folder, views, 0 if state is None else int(state.step))
        finale = plan_finale(scene, held_out, limit)
        finale = Finale(**self.cluster.from_first(dataclasses.asdict(finale)))
        try:
            result = fit(
                scene,
                batches,
                optimizer=optimizer,
                loss=loss,
                steps=config.steps,
                key=key,
                callbacks=_callbacks(run, config, held_out, self.target_psnr),
                state=state,
                deadline=None if limit is None else _deadline(limit - finale.seconds),
            )
        except FitError as error:
            run.save(gather_whole(error.state))
            where = f"The last finite scene is saved in {run.folder}."
            raise FitError(f"{error} {where}", error.state) from error
        return result.state, finale

    def _begin(self, run: Run, folder: pathlib.Path, views: Views, step: int) -> None:
        """Writes what a run begins with: not before everything is known to fit together."""
        run.save_config(self.config, data=str(folder), preset=self.preset)
        run.cut_log(step)
        save(turntable(views), run.folder / CAMERAS_FILE)


def _deadline(limit: float) -> Deadline:
    """The moment at which the process will be `limit` seconds old."""
    return Deadline(time.monotonic() + limit - process_age())


def _next_free() -> pathlib.Path:
    runs = pathlib.Path("runs")
    taken = {path.name for path in runs.iterdir()} if runs.is_dir() else set()
    return runs / next(f"{n:03d}" for n in range(1, 10**6) if f"{n:03d}" not in taken)


def _corner(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.3g}" for x in point) + ")"


def _callbacks(run: Run, config: FitConfig, held_out: Views, target: float | None) -> list:
    callbacks = [
        Console(config.log_every, config.batch_size),
        JsonLines(run.log, config.log_every, config.batch_size),
    ]
    if config.eval_every > 0:
        callbacks.append(_Sample(config.eval_every, run, held_out, target))
    if config.save_every > 0:
        callbacks.append(Every(config.save_every, lambda progress: _save(run, progress)))
    return callbacks


def _save(run: Run, progress: Progress) -> None:
    run.save(gather_whole(progress.state))


@dataclasses.dataclass(frozen=True)
class _Sample(AbstractCallback):
    """Logs the PSNR of a few held-out pictures, evenly spread; ends the fit when it is enough."""

    every: int
    run: Run
    views: Views
    target: float | None

    def __call__(self, progress: Progress) -> bool:
        frames = np.unique(np.linspace(0, self.views.frames - 1, 4).astype(int))
        scores = evaluate(progress.state.model, self.views, frames=[int(x) for x in frames])
        mean = float(np.mean([score.psnr for score in scores]))
        say(f"held-out psnr {mean:.2f} dB on {len(scores)} pictures")
        self.run.append({"step": progress.step, "test_psnr": mean})
        return self.target is not None and mean >= self.target
