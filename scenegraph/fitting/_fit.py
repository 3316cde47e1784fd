import contextlib
import dataclasses
import inspect
import operator
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax

from .._typing import Array, Device, IntLike, PyTree, RandomKey
from .._words import describe
from ..data import Annealing, Batch, RayBatches, Views
from ..flat import color_space
from ..integrators import AbstractIntegrator
from ..losses import AbstractLoss, LossTerms, MultiLevelLoss
from ..numerics import AbstractModule
from ..parallel import Agreement, as_layout, check_alike, Layout
from ..pixels import in_stated_space
from ..rendering import check_scene, report_overflow, say_violations
from ..scene import check_leaves, named_leaves, Scene
from ._budget import (
    is_worth_compiling,
    loss_budget,
    needs_refresh,
    OccupancyRefresh,
    shares_budget,
    with_first_budget,
    with_next_budget,
)
from ._callbacks import AbstractCallback, Progress
from ._feed import Feed
from ._flat import Flat, flatten
from ._history import History, Records
from ._last_step import Deadline, LastStep
from ._loss import empty_extra, RenderLoss
from ._memory import fit_into_memory, Needs, needs_of
from ._polish import Polisher, PosePolish
from ._state import FitState, start_state, StepInfo
from ._step import check_optimizer, Loss, step
from ._trainable import choose_trainable


# So many steps in a row may fail before a fit gives up.
_PATIENCE = 10
# Seconds over which the rate is measured.
_WINDOW = 20.0


class FitResult(AbstractModule):
    """The result of `fit`.

    **Arguments:**

    - `scene`: the fitted scene.
    - `state`: the whole state, to go on from.
    - `history`: up to a thousand steps: their numbers (`steps`), the loss before each (`loss`), and
      the second result of the loss with a leading axis (`extra`): for scenes, `LossTerms`.
    """

    scene: PyTree
    state: FitState
    history: History


class FitError(RuntimeError):
    """A fit that cannot go on, with a message about the cause, and a state."""

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def state(self) -> FitState:
        """The last state that was finite."""
        return self.args[1]


def fit(
    scene: PyTree,
    views_or_batches: Any,
    *,
    trainable: Sequence[str] | PyTree | None = None,
    optimizer: optax.GradientTransformation,
    loss: AbstractLoss | Loss = MultiLevelLoss(),
    integrator: AbstractIntegrator | None = None,
    steps: IntLike,
    key: RandomKey,
    callbacks: Sequence[AbstractCallback] = (),
    state: FitState | None = None,
    deadline: Deadline | None = None,
    annealing: Annealing | None = None,
    polish: PosePolish | None = None,
    devices: Sequence[Device] | Layout | None = None,
) -> FitResult:
    """Fits any leaves of a scene to pictures, or of any Module to anything.

    **Arguments:**

    - `scene`: the scene to start from; or any Module, with a `loss` of your own.
    - `views_or_batches`: `Views`, or anything with a method `batch(seed, step)`.
    - `trainable`: paths (see `select`) or a tree of booleans; by default every floating leaf that
      is not frozen. Keyword only, as is all that follows.
    - `optimizer`: any optax transformation, also those that want the loss or search along a line
      (`optax.lbfgs`); those that evaluate gradients themselves are refused (`optax.contrib.sam`).
    - `loss`: an `AbstractLoss`, which compares radiance with pixels; or a function
      `(model, state, batch, key)` that returns `(value, state)`.
    - `integrator`: the integrator that renders the rays; by default the scene's.
    - `steps`: the number of steps.
    - `key`: the key of all randomness, split by purpose (see `Keys`).
    - `callbacks`: functions of the progress, each called every so many steps.
    - `state`: a state to go on from, instead of starting at `scene`.
    - `deadline`: the time at which the fit ends early; schedules then end there too.
    - `annealing`: a schedule that begins with wide cones; for `Views`.
    - `polish`: the solving for poses that a `Capture` corrects; `None` for gradient descent alone.
    - `devices`: the devices that share the rays of a batch; by default all of this process, or of
      all processes where several fit together (see `docs/devices.md`); or a `Layout`. The result
      does not depend on them, but for rounding.

    **Returns:**

    The fitted scene, the whole state, and the history.

    **Errors:**

    `FitError` if ten steps in a row are not finite; it holds the last state that was, because such
    steps change nothing. `ValueError` for a path that matches nothing, and for negative `steps`;
    `TypeError` for data without a method `batch`, a function of other arguments as `loss`, or an
    optimiser that needs more than a step has.
    `TooLarge`, a `MemoryError`, before the first step, if there is not the memory for one.
    """
    steps = _check_arguments(views_or_batches, loss, steps)
    check_leaves(scene)
    batches, layout = _batches(scene, views_or_batches, annealing), as_layout(devices)
    chosen = choose_trainable(scene, trainable)
    objective = RenderLoss(loss, integrator) if isinstance(loss, AbstractLoss) else loss
    if isinstance(objective, RenderLoss):
        objective = dataclasses.replace(objective, mesh=layout.mesh)
    if state is None:
        extra = empty_extra(objective, scene, batches, key)
        state = start_state(scene, optimizer, trainable=chosen, extra=extra, steps=steps, key=key)
    check_optimizer(optimizer, state, eqx.filter(state.model, chosen))
    if isinstance(scene, Scene):
        check_scene(scene)
    check_alike(layout, state, batches)
    batches, begin = layout.copy(batches), layout.place(state)
    polisher = None if polish is None else Polisher(polish, scene, batches, objective, layout)
    agree = Agreement(layout)
    with contextlib.closing(Feed(batches, layout, state.keys.seed())) as feed:
        objective = with_first_budget(objective, begin, feed.first(begin))
        begin = layout.place(dataclasses.replace(begin, budget=loss_budget(objective)))
        advance = _Advance(feed, objective, optimizer, chosen)
        if int(begin.step) < steps:
            advance = fit_into_memory(advance, flatten(begin), least=agree.least)
        result = _run(begin, advance, polisher, agree, steps, callbacks, deadline)
    _report(result, objective)
    return result


def _report(result: FitResult, loss: Any) -> None:
    """Warns of rays that were left out, and of values that were put out of range."""
    if isinstance(result.state.extra, LossTerms) and not shares_budget(loss, result.scene):
        report_overflow(result.state.extra.left_out)
    if isinstance(result.scene, Scene):
        say_violations(result.scene, list(filter(eqx.is_array, jax.tree.leaves(result.scene))))


def _check_arguments(data: Any, loss: Any, steps: Any) -> int:
    """Refuses arguments that would fail late; returns the number of steps."""
    if (steps := operator.index(steps)) < 0:
        raise ValueError(f"`steps` must not be negative; got {steps}.")
    if not isinstance(data, Views) and not callable(getattr(data, "batch", None)):
        raise TypeError(
            f"`fit` needs `Views`, such as `sg.views(camera, image)`, or an object with a method "
            f"`batch(seed, step)`; got {describe(data)}."
        )
    if not isinstance(loss, AbstractLoss) and not _takes(loss, 4):
        raise TypeError(
            f"`loss` of `fit` must be a loss, such as `sg.losses.MultiLevelLoss()`, or a function "
            f"`(model, state, batch, key)` that returns `(value, state)`; got {describe(loss)}."
        )
    return steps


def _takes(function: Any, count: int) -> bool:
    """Returns false for a function that cannot be called with so many arguments, and a class."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # of some functions not written in Python
        return True
    return not isinstance(function, type)


def _batches(scene: PyTree, given: Any, annealing: Annealing | None) -> Any:
    if not isinstance(given, Views):
        if annealing is not None:
            raise TypeError("`annealing` needs `Views`; give it to `RayBatches` yourself.")
        return given
    space = color_space(scene) if isinstance(scene, Scene) else None
    given = in_stated_space(given, space)
    return RayBatches(given, annealing=annealing, space=space)


class _Advance:
    """One compiled step, which all devices take together."""

    def __init__(self, feed: Feed, loss: Any, optimizer: Any, trainable: PyTree):
        self.parts = feed, loss, optimizer, trainable
        self.layout, self.budget = feed.layout, loss_budget(loss)
        others = self.layout.copy((loss, optimizer, trainable))
        self._feed, self._others = feed, flatten((*others, self.layout))
        self._compiled: Any = _step
        self.compile_seconds, self._rays = 0.0, 0

    def __call__(self, state: Flat, number: int, horizon: float) -> tuple[Flat, PyTree, StepInfo]:
        return self._compiled(self._others, state, self._feed(state, number), np.float32(horizon))

    def needs(self, state: Flat) -> Needs | None:
        """Compiles the step, and beside it all else that the first ones call."""
        number, begin = int(state.tree.step), time.monotonic()
        batch = self._feed.shapes(state, number)
        rays = batch.tree.lossmult if isinstance(batch.tree, Batch) else np.empty(0)
        self._rays = rays.shape[0]
        lowered = _step.lower(self._others, state, batch, np.float32(0))
        with ThreadPoolExecutor(1, "scenegraph-compiler") as pool:
            compiling = pool.submit(lowered.compile)
            self._feed(state, number)
        compiled = compiling.result()
        self.compile_seconds = time.monotonic() - begin
        # Of several devices, each refresh of an occupancy may lay out arrays otherwise.
        self._compiled = compiled if self.layout.mesh is None else _step
        return needs_of(compiled, batch, self.layout.sharers())

    def in_smaller_blocks(self, times: int) -> "_Advance | None":
        feed, loss, *others = self.parts
        smaller = loss.in_smaller_blocks(times) if isinstance(loss, RenderLoss) else None
        return None if smaller is None else _Advance(feed, smaller, *others)

    def with_next_budget(self, extra: PyTree, number: int) -> "_Advance":
        loss = self.parts[1]
        other = with_next_budget(loss, extra, number, self._rays)
        return self if other is loss else self.with_loss(other)

    def with_loss(self, loss: Any) -> "_Advance":
        """Returns the step with another loss, compiled when it is first taken."""
        feed, _, *others = self.parts
        advance = _Advance(feed, loss, *others)
        advance.compile_seconds, advance._rays = self.compile_seconds, self._rays
        return advance

    def pays(self, before: "_Advance", deadline: Deadline | None) -> bool:
        """Returns true if this step's other budget is worth its compilation in the time left.

        Without a deadline it always is: what a fit does must not depend on how fast it goes. So it
        is in several processes, whose clocks differ.
        """
        if deadline is None or jax.process_count() > 1:
            return True
        left = deadline.seconds_left()
        return is_worth_compiling(before.budget, self.budget, before.compile_seconds, left)

    def remember_budget(self, state: Flat) -> Flat:
        """Returns the state with the budget, for a fit that goes on from it."""
        return flatten(self.layout.place(dataclasses.replace(state.tree, budget=self.budget)))


@jax.jit
def _step(parts: Flat, state: Flat, batch: Flat, horizon: Array) -> tuple[Flat, PyTree, StepInfo]:
    loss, optimizer, trainable, layout = parts.tree
    before: FitState = state.tree
    before = dataclasses.replace(before, horizon=horizon.astype(before.horizon.dtype))
    new = step(before, batch.tree, loss=loss, optimizer=optimizer, trainable=trainable)
    after, info = layout.keep(new)
    return flatten(after), eqx.filter(after.extra, eqx.is_array), info


def _run(
    begin: FitState,
    advance: _Advance,
    polisher: Polisher | None,
    agree: Agreement,
    steps: int,
    callbacks: Sequence[AbstractCallback],
    deadline: Deadline | None,
) -> FitResult:
    clock, records, number = _Clock(), Records(), int(begin.step)
    state, extra = flatten(begin), begin.extra
    one_device = advance.layout.mesh is None
    refresh = OccupancyRefresh(one_device=one_device) if needs_refresh(begin.model) else None
    last, start, stop = LastStep(begin, steps, deadline, agree), number, number >= steps
    if polisher is not None:
        polisher.skip(number, last.horizon)
    while not stop:
        # Those of the step before: the host would have to wait for this one's.
        terms = extra
        advance = _without_poses(advance, polisher, number, last.horizon, clock)
        state, extra, info = advance(state, number, last.horizon)
        number += 1
        state = state if refresh is None else refresh(state, number)
        done = clock.tick(info)
        other = advance.with_next_budget(terms, number - 1)
        if other is not advance and other.pays(advance, deadline):
            state, advance = other.remember_budget(state), other
            clock.forget()
        horizon = last.estimate(number, clock.rate)
        stop = number >= round(horizon)
        if polisher is not None and polisher.is_due(number, horizon, stop and deadline is None):
            with clock.paused():
                state = polisher(state, number, horizon, advance.parts[1])
        _check(info if stop else done, state, advance.parts[-1], most=number - start)
        if stop or number % max(1, steps // 1000) == 0:
            records.add(number, info.loss, extra)
        progress = Progress(number, state, info, clock.seconds, clock.rate, agree.first)
        stop = _call_back(callbacks, progress, stop, agree)
    return FitResult(state.tree.model, state.tree, records.history())


def _without_poses(
    advance: _Advance, polisher: Polisher | None, number: int, horizon: float, clock: "_Clock"
) -> _Advance:
    """Returns the step without a gradient of poses, once these are solved for."""
    loss = None if polisher is None else polisher.stills(advance.parts[1], number, horizon)
    if loss is None:
        return advance
    clock.forget()
    return advance.with_loss(loss)


def _call_back(
    callbacks: Sequence[AbstractCallback], progress: Progress, stop: bool, agree: Agreement
) -> bool:
    due = [callback for callback in callbacks if stop or progress.step % callback.every == 0]
    answers = [callback(progress) for callback in due]
    seldom = any(callback.every > 1 for callback in due)
    return stop or agree.stop(any(answers), progress.step, progress.rate, now=seldom)


def _check(info: StepInfo | None, state: Flat, trainable: PyTree, *, most: int) -> None:
    """Raises an error after too many steps in a row, or all there were, that were not finite."""
    if info is None or int(info.failures) < min(_PATIENCE, most):
        return
    paths = [path for path, _, _ in named_leaves(eqx.filter(state.tree.model, trainable))]
    bad = [path for path, finite in zip(paths, info.finite, strict=True) if not finite]
    where = f"the gradient of {bad[0]} is not finite" if bad else "all gradients are finite"
    number, failures = int(state.tree.step), int(info.failures)
    raise FitError(
        f"the loss is {float(info.loss)} after {number} steps, {failures} in a row have failed, "
        f"and {where}, since step {number - failures + 1}. Lower the learning rate, or clip the "
        "gradient.",
        state.tree,
    )


class _Clock:
    """A clock that measures steps a second, and lets at most one step be under way."""

    def __init__(self):
        self.begin = time.monotonic()
        self.seconds = 0.0
        self.rate = 0.0
        self._waiting: StepInfo | None = None
        self._marks: deque[float] = deque(maxlen=200)

    def forget(self) -> None:
        """Begins to measure the rate anew, after the next step, which has to be compiled."""
        self._marks.clear()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves what is done meanwhile, which is no step, out of the rate."""
        begin = time.monotonic()
        yield
        spent = time.monotonic() - begin
        self._marks = deque((mark + spent for mark in self._marks), self._marks.maxlen)

    def tick(self, info: StepInfo) -> StepInfo | None:
        """Waits for the step before this one, and returns its measures."""
        done, self._waiting = self._waiting, info
        if done is not None:
            done.loss.block_until_ready()
        now = time.monotonic()
        self.seconds = now - self.begin
        self._marks.append(now)
        while now - self._marks[0] > _WINDOW:
            self._marks.popleft()
        # Each of the n - 1 spans between n marks is a step.
        span = now - self._marks[0]
        self.rate = (len(self._marks) - 1) / span if span > 0 else 0.0
        return done
