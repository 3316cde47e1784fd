from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import optax

from .._typing import PyTree, RandomKey, Scalar
from ..scene import trainable_leaves
from ._state import FitState, largest_entry, StepInfo, strong_types


# Called as `loss(model, state, batch, key)`; returns `(value, state)`.
Loss = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


def step(
    state: FitState,
    batch: PyTree,
    *,
    loss: Loss,
    optimizer: optax.GradientTransformation,
    trainable: PyTree | None = None,
) -> tuple[FitState, StepInfo]:
    """One step of gradient descent: a pure function, to be jitted by the caller.

    **Arguments:**

    - `state`: before.
    - `batch`: what the loss compares with.
    - `loss`: called as `loss(model, state.extra, batch, key)`, returns `(value, extra)`. Keyword
      only, as is all that follows.
    - `optimizer`: any optax transformation; it may take the extra arguments `step` (counted from
      one) and `horizon`.
    - `trainable`: a tree of booleans (see `select`); by default every floating leaf that is not
      frozen.

    **Returns:**

    The state after, and what the step tells.
    """
    trainable = trainable_leaves(state.model) if trainable is None else trainable
    free, held = eqx.partition(state.model, trainable)
    key = jax.random.fold_in(state.key, state.step)
    (value, extra), gradient = _value_and_gradient(free, held, loss, state.extra, batch, key)
    updates, moments = optax.with_extra_args_support(optimizer).update(
        gradient, state.moments, free, step=state.step + 1, horizon=state.horizon
    )
    model = eqx.combine(eqx.apply_updates(free, updates), held)
    info = StepInfo(value, optax.tree.norm(gradient), largest_entry(gradient))
    extra = strong_types(extra)
    return FitState(model, moments, extra, state.key, state.step + 1, state.horizon), info


def _value_and_gradient(
    free: PyTree, held: PyTree, loss: Loss, extra: PyTree, batch: PyTree, key: RandomKey
) -> Any:
    def objective(free: PyTree) -> tuple[Scalar, PyTree]:
        return loss(eqx.combine(free, held), extra, batch, key)

    return eqx.filter_value_and_grad(objective, has_aux=True)(free)
