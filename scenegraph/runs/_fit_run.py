"""A fit into a run folder: settings, checkpoints, log, and the report at the end."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from ..data import Ball, find_folder, Views
from ..fitting import (
    AbstractCallback,
    Deadline,
    empty_extra,
    Every,
    fit,
    FitError,
    FitState,
    JsonLines,
    start_state,
    StopOnSignal,
)
from ..io import FileError, MappedArray
from ..scene import save
from ..settings import (
    choose_space,
    config_record,
    describe_cut,
    FitConfig,
    FitParts,
    held_out_split,
    prepare,
    training_cameras,
    warm_up,
)
from ._callbacks import HeldOutScore, Profile, TensorBoard
from ._checkpoints import Checkpoints
from ._final_report import FinalReport
from ._fingerprint import find_difference, take_fingerprint
from ._fit_options import FitOptions, Stopped, TooFewSteps
from ._held_out import after_first_step, HeldOut, read_held_out
from ._latest_picture import LatestPicture
from ._paths import OWN_PATH, summarise_cameras
from ._run import CAMERAS_FILE, Run
from ._time_plan import TimePlan


# A fit that the clock ends after fewer steps has not begun to learn.
_FEW_STEPS = 20


def fit_run(
    run: Run, config: FitConfig, folder: str | os.PathLike, options: FitOptions = FitOptions()
) -> FitState:
    """Fits a radiance field to a data folder, and leaves a run folder.

    **Arguments:**

    - `run`: the run.
    - `config`: the settings.
    - `folder`: the data folder.
    - `options`: the circumstances.

    **Returns:**

    The last state; the scene is `state.model`.

    **Errors:**

    `FitError` for a fit that cannot go on, after its last finite state was saved; `FileError` and
    `ValueError` for a run folder in use, bad data or bad settings, before anything is written;
    `FileError` for bad held-out pictures during the first steps; `TooFewSteps`, after the report,
    for a fit that its limit ends before step 20.
    """
    begin = time.monotonic() - options.elapsed
    run.check(resume=options.resume)
    # The others of several processes write into folders of their own.
    with run.locked() if options.processes.is_first else contextlib.nullcontext():
        return _fit_and_report(run, config, find_folder(folder).resolve(), options, begin)


def _fit_and_report(
    run: Run, config: FitConfig, folder: pathlib.Path, options: FitOptions, begin: float
) -> FitState:
    split = held_out_split(folder)
    _check_target(config, options, folder, split)
    with after_first_step() as (pool, stepped):
        with options.phase("reading pictures"), ThreadPoolExecutor(1) as beside:
            beside.submit(warm_up, config)
            views = config.data.load(folder)
        config, views, why = choose_space(config, views)
        space = config.data.bounds == "contracted"
        config = config.replace(batch_size=config.training.rays(options.limit, space=space))
        method = config.method.choose_by_time(None if space else options.limit)
        corrections = config.corrections.choose(views)
        config = dataclasses.replace(config, method=method, corrections=corrections)
        held_out = pool.submit(read_held_out, config.data, folder, split, views)
        _describe(run, folder, views, options.say)
        if options.resume:
            _check_data(run, config, folder, views)
        with options.phase("finding the box of the scene"):
            parts = prepare(config, views)
        if why is not None:
            options.say(why)
        _describe_box(parts, views, config, options.say)
        if (corrected := config.corrections.describe(config.method.appearance_size)) is not None:
            options.say(corrected)
        job = _begin(run, config, options, parts, held_out, folder, views, begin, stepped)
        cameras = pool.submit(_remember_cameras, run, config, folder, views)
        last = job.fit()
        cameras.result()
    job.report(last)
    return last


def _begin(
    run: Run,
    config: FitConfig,
    options: FitOptions,
    parts: FitParts,
    held_out: Future[HeldOut],
    folder: pathlib.Path,
    views: Views,
    begin: float,
    stepped: threading.Event,
) -> "_Job":
    """Writes what a run remembers of its fit, and finds where the fit goes on."""
    here = run.folder.resolve()
    # Data inside the run move with it.
    data = folder.relative_to(here) if folder.is_relative_to(here) else folder
    about: dict[str, Any] = {"data": str(data), "preset": options.preset}
    checkpoints = run.checkpoints(
        config.output.save_every,
        keep=config.output.keep,
        about={**about, "fit": config_record(config)},
        writes=options.processes.is_first,
    )
    state = _restore(run, checkpoints, parts, options) if options.resume else None
    if any(views.origin):
        about["origin"] = list(views.origin)
    about["fingerprint"] = {"train": take_fingerprint(views)}
    run.save_config(config, **about)
    run.cut_log(0 if state is None else int(state.step))
    plan = _plan(options, begin)
    refines = config.corrections.refines
    film = FinalReport(film=config.output.film, training=views, refines=refines)
    held_out.add_done_callback(lambda pictures: _count_rays(plan, film, pictures))
    return _Job(
        run, config, options, parts, held_out, checkpoints, plan, begin, stepped, about, state
    )


def _remember_cameras(run: Run, config: FitConfig, folder: pathlib.Path, views: Views) -> None:
    """Writes what films need to know of the cameras."""
    own_path = config.data.own_path(folder)
    own = {} if own_path is None else {OWN_PATH: own_path}
    save(summarise_cameras(views) | own, run.folder / CAMERAS_FILE)


def _plan(options: FitOptions, begin: float) -> TimePlan:
    """Plans the time; how much the report takes is known once there are pictures."""
    agree = options.processes.from_first
    if options.limit is None:
        return TimePlan(agree=agree)
    return TimePlan(begin + options.limit, options.limit, agree=agree)


def _count_rays(plan: TimePlan, report: FinalReport, held_out: Future[HeldOut]) -> None:
    """Sets how many rays the report of a plan will have, if its pictures could be read."""
    if held_out.exception() is None:
        plan.rays = report.rays(held_out.result())


def _describe_box(
    parts: FitParts, views: Views, config: FitConfig, say: Callable[[str], Any]
) -> None:
    """Says where the scene is, and what the pictures show beside it."""
    if parts.box is None:
        return
    if isinstance(parts.box, Ball):
        place = ", ".join(f"{x:.3g}" for x in parts.box.centre)
        say(f"space is contracted beyond {parts.box.radius:.3g} about ({place})")
        if parts.batches.sighted and parts.views.sightings is not None:
            count = parts.views.sightings.pixel.shape[0]
            say(
                f"{count:,} pixels show points of the reconstruction, which rays are led to "
                f"(--point-weight 0 ignores them)"
            )
        return
    low, high = ("(" + ", ".join(f"{x:.3g}" for x in corner) + ")" for corner in parts.box)
    say(f"the scene lies between {low} and {high}")
    cut = describe_cut(views, parts.box, config.data.box_scale)
    if cut is not None:
        say(cut)


@dataclasses.dataclass(frozen=True)
class _Job:
    """A fit that is ready to begin."""

    run: Run
    config: FitConfig
    options: FitOptions
    parts: FitParts
    held_out: Future[HeldOut]
    checkpoints: Checkpoints
    plan: TimePlan
    begin: float
    stepped: threading.Event  # what else there is to do begins then
    about: dict[str, Any]  # what the run remembers beside its settings
    state: FitState | None  # where an earlier fit has ended

    def report(self, last: FitState) -> None:
        """Writes scores, film and plot; raises `TooFewSteps` if there were too few."""
        pictures, options = self.held_out.result(), self.options
        if pictures.is_held_out:
            self.about["fingerprint"][pictures.split] = take_fingerprint(pictures.views)
            self.run.save_config(self.config, **self.about)
        for note in pictures.views.notes if pictures.is_held_out else ():
            self.options.say(f"{pictures.split}: {note}")
        training = training_cameras(last.model, self.parts.views)
        if self.config.corrections.refines:
            _remember_cameras(self.run, self.config, pictures.folder, training)
        report = FinalReport(film=self.config.output.film, plan=self.plan, training=training)
        report.write(self.run, last.model, held_out=pictures, say=options.say, track=options.track)
        if self._has_few_steps(last):
            raise TooFewSteps(
                f"{self._steps_taken(last)} steps are too few to learn anything: the limit of "
                f"{self.plan.limit:g} s passed while pictures were read and programs compiled, "
                "which are remembered. Fit again, with a longer --max-time."
            )

    def _has_few_steps(self, last: FitState) -> bool:
        """Returns true if the clock ended the fit before it could learn anything."""
        ended = self.plan.limited and int(last.step) < self.steps
        return ended and self._steps_taken(last) < _FEW_STEPS

    @property
    def steps(self) -> int:
        """The number of steps at the end, unless the clock ends the fit before."""
        return self.config.count_steps(self.options.limit)

    def _steps_taken(self, last: FitState) -> int:
        return int(last.step) - (0 if self.state is None else int(self.state.step))

    def fit(self) -> FitState:
        """Fits, and saves the state with which the fit ends, however it ends."""
        with self.checkpoints as checkpoints, StopOnSignal() as stop:
            try:
                last = self._steps(stop)
                self.stepped.set()  # also if there was no step left to take
            except FitError as error:
                checkpoints.save(error.state)
                where = f"The last finite scene is saved in {self.run.folder}."
                raise FitError(f"{error} {where}", error.state) from error
            checkpoints.save(last)
        self.options.milestones.code = 3 if self._has_few_steps(last) else 0
        self.options.milestones.saved.set()
        # A signal for one process stops all.
        received = self.options.processes.largest(stop.received or 0)
        if received:
            raise Stopped(
                received,
                f"stopped by {signal.Signals(received).name} at step {int(last.step):,}, which is "
                f"saved in {self.run.folder}; go on with `scenegraph fit --out {self.run.folder} "
                "--resume`",
            )
        return last

    def _steps(self, stop: StopOnSignal) -> FitState:
        with contextlib.ExitStack() as stack:
            compiling = contextlib.ExitStack()
            stack.enter_context(compiling)
            compiling.enter_context(self.options.phase("compiling a step"))
            first = Every(1, lambda progress: self._note_step(compiling))
            result = fit(
                self.parts.scene,
                self.parts.batches,
                optimizer=self.parts.optimizer,
                loss=self.parts.loss,
                steps=self.steps,
                key=self.parts.key,
                callbacks=[first, *self._callbacks(stack), stop],
                state=self.state,
                polish=self.parts.polish,
                deadline=Deadline(self.plan.steps_end) if self.plan.limited else None,
            )
        return result.state

    def _note_step(self, compiling: contextlib.ExitStack) -> None:
        """Ends the phase of compiling, at the first step."""
        compiling.close()
        self.options.milestones.stepped.set()
        self.stepped.set()

    def _callbacks(self, stack: contextlib.ExitStack) -> list[AbstractCallback]:
        """Makes the callbacks; the stack closes their files."""
        output, rays = self.config.output, self.config.training.rays()
        evaluates = output.eval_every > 0
        callbacks: list[AbstractCallback] = []
        if self.options.tensorboard:
            board = TensorBoard(
                self.run.tensorboard,
                output.log_every,
                rays,
                self.config.training.make_schedule(),
                self._shown_views() if evaluates else None,
                max(1, output.eval_every),
            )
            callbacks.append(stack.enter_context(contextlib.closing(board)))
        if self.options.profile:
            callbacks.append(stack.enter_context(Profile(self.run.subfolder("profile"))))
        callbacks += stack.enter_context(self.options.steps(output.log_every, rays))
        callbacks.append(JsonLines(self.run.log, output.log_every, rays))
        if evaluates:
            score = HeldOutScore(
                output.eval_every,
                self.run,
                self.held_out,
                self.options.target_psnr,
                self.checkpoints,
                self.options.say,
                self.plan,
            )
            callbacks.append(score)
        if jax.process_count() == 1:  # Its times differ from process to process.
            latest = LatestPicture(self.run, self.held_out, self.plan, self.begin, self.options.say)
            callbacks.append(stack.enter_context(latest))
        # The last, because a checkpoint stands for all that was logged before it.
        return [*callbacks, self.checkpoints]

    def _shown_views(self) -> Views | None:
        """Returns the pictures to show on the way; `None` if none are held out."""
        self.stepped.set()
        pictures = self.held_out.result()
        return pictures.views if pictures.is_held_out else None


def _check_target(config: FitConfig, options: FitOptions, folder: pathlib.Path, split: str) -> None:
    """Refuses a target that nothing would be compared with."""
    if options.target_psnr is None:
        return
    if split == "train":
        raise ValueError(
            f"{folder} has no held-out pictures (a test or val split), by whose PSNR --target-psnr "
            "ends a fit; leave it out, or hold pictures out."
        )
    if not config.output.eval_every:
        raise ValueError("--target-psnr needs held-out pictures on the way: --eval-every above 0.")


def _check_data(run: Run, config: FitConfig, folder: pathlib.Path, views: Views) -> None:
    """Refuses to go on with a fit with other pictures; with other settings they may differ."""
    if not run.checkpoints().paths() or not run.begun:
        return
    before, others = run.load_config()
    known = others.get("fingerprint")
    if not isinstance(known, dict) or "train" not in known or before.data != config.data:
        return
    odd = find_difference(known["train"], views)
    if odd is not None:
        raise FileError(
            f"{folder} does not hold the data that {run.folder} was fitted to (it has {odd}); pass "
            "their folder, or another --out."
        )


def _describe(run: Run, folder: pathlib.Path, views: Views, say: Callable[[str], Any]) -> None:
    """Says what is fitted, on which devices, and what is odd about the data."""
    say(f"data {folder}, run {run.folder}")
    if jax.device_count() > 1:
        say(f"{jax.device_count()} devices of {jax.process_count()} processes share the rays")
    if isinstance(views.pixels, MappedArray):
        say(f"the pixels are read from {views.pixels.path}")
    if views.pixels.shape[1] == 3:
        say("the pictures have no opacity: they are taken as they are, on no backdrop")
    for note in views.notes:
        say(note)


def _restore(
    run: Run, checkpoints: Checkpoints, parts: FitParts, options: FitOptions
) -> FitState | None:
    """Returns the state of the newest whole checkpoint; `None` where none was ever saved."""
    say = options.say
    if not options.processes.from_first(bool(checkpoints.paths())):
        say(f"nothing is saved in {run.folder} yet: the fit begins")
        return None
    extra = empty_extra(parts.loss, parts.scene, parts.batches, parts.key)
    like = start_state(parts.scene, parts.optimizer, extra=extra, key=parts.key)
    state = checkpoints.restore(like, skipped=lambda error: say(f"passing over: {error}"))
    say(f"resuming at step {int(state.step):,}")
    return state
