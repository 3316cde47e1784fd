import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator
from typing import Annotated, Any

import jax
import numpy as np
import tyro

from ..data import Views
from ..diagnostics import make_dataset
from ..fitting import (
    AbstractCallback,
    check_address_space,
    Console,
    Deadline,
    empty_extra,
    fit,
    FitResult,
    FitState,
    JsonLines,
    Progress,
    start_state,
    StopOnSignal,
)
from ..io import import_extra, MappedArray
from ..parallel import first_then_others, from_first, is_first, largest, own_folder
from ..runs import (
    Checkpoints,
    config_record,
    evaluate,
    FitConfig,
    FitParts,
    held_out_split,
    MethodName,
    open_run,
    prepare,
    preset,
    Profile,
    Run,
    TensorBoard,
)
from ..scene import save
from ._cluster import Cluster
from ._console import say
from ._ending import fit_to_the_end
from ._finale import Finale, plan_finale
from ._own_path import own_path
from ._paths import CAMERAS_FILE, turntable
from ._time import process_age, seconds_of


@dataclasses.dataclass(frozen=True)
class Fit:
    """Fit a radiance field to a folder of pictures, or to a data set made on the spot."""

    data: Annotated[pathlib.Path | None, tyro.conf.Positional] = None
    """Folder with pictures and transforms_train.json (Blender), metadata.json (multiscale) or
    poses_bounds.npy (LLFF); without it, a small data set is made."""

    out: pathlib.Path | None = None
    """The run folder; by default the next free runs/NNN."""

    preset: str = "fast"
    """Named settings to start from: fast (a grid, a minute on a CPU), fast-gpu (a larger one), tiny
    (a small network), mipnerf (the paper's) or others; `scenegraph presets` lists all."""

    field: MethodName = "grid"
    """The method: mlp, a network over sines (MipNerf), or grid, features on a grid (Grid). Another
    than the preset's has its own defaults."""

    max_time: str | None = None
    """Stop after 90s, 5m or 2h, counted from process start, final pictures included."""

    target_psnr: float | None = None
    """Stop when the held-out pictures that are looked at on the way are as good as this, in dB."""

    tensorboard: bool = False
    """Write curves and held-out pictures for TensorBoard, into RUN/tensorboard (with the extra
    `tensorboard`)."""

    resume: bool = False
    """Go on with the fit in --out from its newest whole checkpoint, to the same numbers as if it
    had never stopped. If the pictures are in another place by now, name their folder."""

    profile: bool = False
    """Record a few steps for a profiler, after compilation, in the folder `profile` of the run."""

    cluster: Annotated[Cluster, tyro.conf.arg(name="")] = Cluster()

    rounds: int | None = None
    """Without effect; accepted so that commands for earlier versions still run."""

    config: tyro.conf.OmitArgPrefixes[Annotated[FitConfig, tyro.conf.arg(name="")]] = (
        dataclasses.field(default_factory=lambda: preset("fast"))
    )

    def main(self) -> None:
        """Loads, fits, evaluates, and leaves a run folder."""
        check_address_space()
        if self.rounds is not None:
            say("--rounds has no effect: rays are marched in one round")
        limit = None if self.max_time is None else seconds_of(self.max_time)
        if self.cluster.distributed and self.out is None:
            raise ValueError("--distributed needs --out, a folder that all processes see.")
        if self.tensorboard:
            import_extra("tensorboardX", "tensorboard", "--tensorboard")
        with self.cluster.joined():
            shared = open_run(self.out or _next_free())
            folder = first_then_others(lambda: self._begin_in(shared))
            with own_folder(shared.folder, "*.sg") as own:
                self._main(open_run(own), folder, limit)

    def _begin_in(self, run: Run) -> pathlib.Path:
        """Makes sure that the run folder will do, and returns the data folder."""
        if is_first():
            run.check(resume=self.resume)
        return self._data_folder(run)

    def _main(self, run: Run, folder: pathlib.Path, limit: float | None) -> None:
        views = self.config.data.load(folder)
        held_out = self.config.data.load(folder, held_out_split(folder))
        say(f"data {folder}, run {run.folder}")
        if jax.device_count() > 1:
            say(f"{jax.device_count()} devices of {jax.process_count()} processes share the rays")
        if isinstance(views.pixels, MappedArray):
            say(f"the pixels are read from {views.pixels.path}")
        if views.pixels.shape[1] == 3:
            say("the pictures have no opacity: they are taken as they are, on no backdrop")
        state, finale = self._fit(run, folder, views, held_out, limit)
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
        config, task = self.config, self._prepare(views)
        about = {**self._about(run, folder), "fit": config_record(config)}
        checkpoints = run.checkpoints(
            config.output.save_every, keep=config.output.keep, about=about, writes=is_first()
        )
        state = _restored(checkpoints, task) if self.resume else None
        self._begin(run, folder, views, 0 if state is None else int(state.step))
        finale = plan_finale(task.scene, held_out, limit)
        finale = Finale(**from_first(dataclasses.asdict(finale)))
        callbacks = _callbacks(run, config, held_out, self.target_psnr, checkpoints)

        def go(stop: StopOnSignal) -> FitResult:
            with self._records(run, held_out) as records:
                return fit(
                    task.scene,
                    task.batches,
                    optimizer=task.optimizer,
                    loss=task.loss,
                    steps=config.steps,
                    key=task.key,
                    callbacks=[*records, *callbacks, stop],
                    state=state,
                    deadline=None if limit is None else _deadline(limit - finale.seconds),
                )

        return fit_to_the_end(go, run, checkpoints, largest), finale

    def _prepare(self, views: Views) -> FitParts:
        parts = prepare(self.config, views)
        if parts.box is not None:
            say(f"the scene lies between {_corner(parts.box[0])} and {_corner(parts.box[1])}")
        return parts

    @contextlib.contextmanager
    def _records(self, run: Run, held_out: Views) -> Iterator[list[AbstractCallback]]:
        """Callbacks that write files until the fit ends: for TensorBoard, and for a profiler."""
        with contextlib.ExitStack() as stack:
            records = stack.enter_context(_board(self.tensorboard, run, self.config, held_out))
            if self.profile:
                records.append(stack.enter_context(Profile(run.folder / "profile")))
            yield records

    def _about(self, run: Run, folder: pathlib.Path) -> dict[str, Any]:
        """What a run remembers beside its settings; data inside the run move with it."""
        inside = folder.is_relative_to(run.folder.resolve())
        data = folder.relative_to(run.folder.resolve()) if inside else folder
        return {"data": str(data), "preset": self.preset}

    def _begin(self, run: Run, folder: pathlib.Path, views: Views, step: int) -> None:
        """Writes what a run begins with: not before everything is known to fit together."""
        run.save_config(self.config, **self._about(run, folder))
        run.cut_log(step)
        save(turntable(views) | own_path(folder, self.config), run.folder / CAMERAS_FILE)


def _restored(checkpoints: Checkpoints, task: FitParts) -> FitState:
    extra = empty_extra(task.loss, task.scene, task.batches, task.key)
    like = start_state(task.scene, task.optimizer, extra=extra, key=task.key)
    state = checkpoints.restore(like, skipped=lambda error: say(f"passing over: {error}"))
    say(f"resuming at step {int(state.step):,}")
    return state


def _deadline(limit: float) -> Deadline:
    """The moment at which the process will be `limit` seconds old."""
    return Deadline(time.monotonic() + limit - process_age())


def _next_free() -> pathlib.Path:
    runs = pathlib.Path("runs")
    taken = {path.name for path in runs.iterdir()} if runs.is_dir() else set()
    return runs / next(f"{n:03d}" for n in range(1, 10**6) if f"{n:03d}" not in taken)


def _corner(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{x:.3g}" for x in point) + ")"


def _callbacks(
    run: Run, config: FitConfig, held_out: Views, target: float | None, checkpoints: Checkpoints
) -> list[AbstractCallback]:
    callbacks: list[AbstractCallback] = [
        Console(config.output.log_every, config.training.batch_size),
        JsonLines(run.log, config.output.log_every, config.training.batch_size),
    ]
    if config.output.eval_every > 0:
        callbacks.append(_Sample(config.output.eval_every, run, held_out, target, checkpoints))
    # The last, because a checkpoint stands for all that was logged before it.
    return [*callbacks, checkpoints]


@contextlib.contextmanager
def _board(
    wanted: bool, run: Run, config: FitConfig, held_out: Views
) -> Iterator[list[AbstractCallback]]:
    if not wanted:
        yield []
        return
    board = TensorBoard(
        run.tensorboard,
        config.output.log_every,
        config.training.batch_size,
        config.training.make_schedule(),
        held_out if config.output.eval_every > 0 else None,
        max(1, config.output.eval_every),
    )
    with contextlib.closing(board):
        yield [board]


@dataclasses.dataclass(frozen=True)
class _Sample(AbstractCallback):
    """Logs the PSNR of a few held-out pictures, evenly spread; ends the fit when it is enough."""

    every: int
    run: Run
    views: Views
    target: float | None
    checkpoints: Checkpoints

    def __call__(self, progress: Progress) -> bool:
        frames = np.unique(np.linspace(0, self.views.frames - 1, 4).astype(int))
        scores = evaluate(progress.state.model, self.views, frames=[int(x) for x in frames])
        mean = float(np.mean([score.psnr for score in scores]))
        say(f"held-out psnr {mean:.2f} dB on {len(scores)} pictures")
        self.run.append({"step": progress.step, "test_psnr": mean})
        self.checkpoints.save_if_best(progress.state, mean)
        return self.target is not None and mean >= self.target
