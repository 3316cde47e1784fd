import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._typing import Array, Device, Float, Int, PyTree, RandomKey
from ..data import Annealing, RayBatches, Views
from ..integrators import AbstractIntegrator
from ..losses import AbstractLoss, LossTerms, MultiLevelLoss
from ..numerics import AbstractModule
from ..render import check_scene, report_overflow
from ..scene import color_space, named_leaves, Scene, select, trainable_leaves
from ._agree import Agreement, check_alike
from ._callbacks import AbstractCallback, Deadline, Progress
from ._feed import Feed
from ._layout import as_layout, Layout
from ._loss import empty_extra, RenderLoss
from ._room import first_room, look_again, next_room, shares_room
from ._state import FitState, start_state, StepInfo
from ._step import Loss, step


# So many steps in a row may fail before a fit gives up.
_PATIENCE = 10


class History(AbstractModule):
    """How a fit went, at up to a thousand of its steps.

    **Arguments:**

    - `steps`: their numbers.
    - `loss`: before each of them.
    - `extra`: what the loss returned beside its value: for scenes, `LossTerms` with a leading
      axis.
    """

    steps: Int[Array, " records"]
    loss: Float[Array, " records"]
    extra: PyTree


class FitResult(AbstractModule):
    """What `fit` returns.

    **Arguments:**

    - `scene`: fitted.
    - `state`: everything, to go on from.
    - `history`: how it went.
    """

    scene: PyTree
    state: FitState
    history: History


class FitError(RuntimeError):
    """A fit that cannot go on: raised with a message that says where it broke, and a state."""

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def state(self) -> FitState:
        """The last one that was finite."""
        return self.args[1]


def fit(
    scene: PyTree,
    views_or_batches: Any,
    *,
    trainable: Sequence[str] | PyTree | None = None,
    optimizer: optax.GradientTransformation,
    loss: AbstractLoss | Loss = MultiLevelLoss(),
    integrator: AbstractIntegrator | None = None,
    steps: int,
    key: RandomKey,
    callbacks: Sequence[AbstractCallback] = (),
    state: FitState | None = None,
    deadline: Deadline | None = None,
    annealing: Annealing | None = None,
    devices: Sequence[Device] | Layout | None = None,
) -> FitResult:
    """Fits any leaves of a scene to pictures, or of any Module to anything.

    **Arguments:**

    - `scene`: to start from; or any Module, with a `loss` of your own.
    - `views_or_batches`: `Views`, or anything with a method `batch(seed, step)`.
    - `trainable`: paths (see `select`) or a tree of booleans; by default every floating leaf that
      is not frozen. Keyword only, as is all that follows.
    - `optimizer`: any optax transformation.
    - `loss`: compares radiance with pixels; or a function `(model, state, batch, key)` that
      returns `(value, state)`.
    - `integrator`: how rays are rendered; by default as the scene says.
    - `steps`: how many.
    - `key`: of all randomness.
    - `callbacks`: called every so many steps.
    - `state`: to go on from, instead of starting at `scene`.
    - `deadline`: ends the fit early; schedules then reckon with the steps that will fit in.
    - `annealing`: begins with wide cones; for `Views`.
    - `devices`: that share the rays of a batch; by default all of this process, or of all
      processes where several fit together (see `docs/devices.md`); or a `Layout`. The result
      does not depend on them, but for rounding.

    **Returns:**

    The fitted scene, the whole state, and the history.

    **Errors:**

    `FitError` if ten steps in a row are not finite; it holds the last state that was, because such
    steps change nothing. `ValueError` for a path that matches nothing.
    """
    batches, layout = _batches(scene, views_or_batches, annealing), as_layout(devices)
    chosen = _trainable(scene, trainable)
    objective = RenderLoss(loss, integrator) if isinstance(loss, AbstractLoss) else loss
    if isinstance(objective, RenderLoss):
        objective = dataclasses.replace(objective, mesh=layout.mesh)
    if state is None:
        extra = empty_extra(objective, scene, batches, key)
        state = start_state(scene, optimizer, trainable=chosen, extra=extra, steps=steps, key=key)
    if isinstance(scene, Scene):
        check_scene(scene)
    check_alike(layout, state, batches)
    begin, batches = layout.place(state), layout.copy(batches)
    room = first_room(objective, begin, batches)
    with contextlib.closing(Feed(batches, layout, state.key)) as feed:
        advance = _Advance(room, optimizer, chosen, layout)
        result = _run(begin, feed, advance, steps, callbacks, deadline)
    if isinstance(result.state.extra, LossTerms) and not shares_room(objective, scene):
        report_overflow(result.state.extra.left_out)
    return result


def _batches(scene: PyTree, given: Any, annealing: Annealing | None) -> Any:
    if not isinstance(given, Views):
        if annealing is not None:
            raise TypeError("`annealing` needs `Views`; give it to `RayBatches` yourself.")
        return given
    space = color_space(scene) if isinstance(scene, Scene) else None
    return RayBatches(given, annealing=annealing, space=space)


def _trainable(scene: PyTree, trainable: Any) -> PyTree:
    if trainable is None:
        return trainable_leaves(scene)
    if isinstance(trainable, str):
        trainable = [trainable]
    named = isinstance(trainable, list | tuple) and all(isinstance(x, str) for x in trainable)
    return select(scene, *trainable) if named else trainable


class _Advance(NamedTuple):
    """One compiled step."""

    loss: Any
    optimizer: optax.GradientTransformation
    trainable: PyTree
    layout: Layout

    def __call__(self, state: FitState, batch: PyTree) -> tuple[FitState, StepInfo]:
        return _step(self, state, batch)

    def with_room_for(self, before: FitState) -> "_Advance":
        """The same, or with another budget for the samples, which is compiled once."""
        return self._replace(loss=next_room(self.loss, before))


@eqx.filter_jit
def _step(parts: _Advance, state: FitState, batch: Any) -> tuple[FitState, StepInfo]:
    new = step(state, batch, loss=parts.loss, optimizer=parts.optimizer, trainable=parts.trainable)
    return parts.layout.keep(new)


def _run(
    state: FitState,
    feed: Feed,
    advance: "_Advance",
    steps: int,
    callbacks: Sequence[AbstractCallback],
    deadline: Deadline | None,
) -> FitResult:
    clock, records, number = _Clock(), [], int(state.step)
    agree, first = Agreement(advance.layout), advance.layout.is_first()
    horizon, begin = float(steps), number
    stop = number >= steps
    while not stop:
        state = eqx.tree_at(lambda s: s.horizon, state, jnp.asarray(horizon, jnp.float32))
        before = state
        state, info = advance(state, feed(state, number))
        number += 1
        state = look_again(state, number)
        done = clock.tick(info)
        roomier = advance.with_room_for(before)
        if roomier.loss is not advance.loss:
            clock.forget()
        advance = roomier
        if deadline is not None:
            horizon = deadline.horizon(number, steps, clock.rate)
            horizon = agree.horizon(horizon, number, clock.rate)
        stop = number >= round(horizon)
        _check(info if stop else done, state, advance.trainable, most=number - begin)
        if stop or number % max(1, steps // 1000) == 0:
            records.append((number, info.loss, state.extra))
        progress = Progress(number, state, info, clock.seconds, clock.rate, first)
        stop = _call_back(callbacks, progress, stop, agree)
    return FitResult(state.model, state, _history(records))


def _call_back(
    callbacks: Sequence[AbstractCallback], progress: Progress, stop: bool, agree: Agreement
) -> bool:
    due = [callback for callback in callbacks if stop or progress.step % callback.every == 0]
    wishes = [callback(progress) for callback in due]
    seldom = any(callback.every > 1 for callback in due)
    return stop or agree.stop(any(wishes), progress.step, progress.rate, now=seldom)


def _check(info: StepInfo | None, state: FitState, trainable: PyTree, *, most: int) -> None:
    """Gives up after too many steps in a row, or all there were, that were not finite."""
    if info is None or int(info.failures) < min(_PATIENCE, most):
        return
    paths = [path for path, _, _ in named_leaves(eqx.filter(state.model, trainable))]
    bad = [path for path, finite in zip(paths, info.finite, strict=True) if not finite]
    where = f"the gradient of {bad[0]} is not finite" if bad else "all gradients are finite"
    raise FitError(
        f"the loss is {float(info.loss)} after {int(state.step)} steps, {int(info.failures)} in a "
        f"row have failed, and {where}. Lower the learning rate, or clip the gradient.",
        state,
    )


class _Clock:
    """Measures steps a second over the last few seconds, without letting the queue grow long."""

    def __init__(self):
        self.begin = time.monotonic()
        self.seconds = 0.0
        self.rate = 0.0
        self._waiting: list[StepInfo] = []
        self._marks: list[float] = []

    def forget(self) -> None:
        """Leaves out of the rate what went before, and the next step, which is compiled anew."""
        self._marks = []

    def tick(self, info: StepInfo) -> StepInfo | None:
        """Waits for the step before this one, so that at most one is under way; returns it."""
        self._waiting.append(info)
        done = self._waiting.pop(0) if len(self._waiting) > 1 else None
        jax.block_until_ready(done)
        now = time.monotonic()
        self.seconds = now - self.begin
        self._marks = [mark for mark in self._marks if now - mark < 20][-200:] + [now]
        span = self._marks[-1] - self._marks[0]
        self.rate = (len(self._marks) - 1) / span if span > 0 else 0.0
        return done


def _history(records: list[tuple[int, Array, PyTree]]) -> History:
    if not records:
        return History(jnp.zeros(0, jnp.int32), jnp.zeros(0), None)
    numbers, losses, extras = zip(*records, strict=True)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *extras)
    return History(jnp.asarray(numbers), jnp.stack(losses), stacked)
