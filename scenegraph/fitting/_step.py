import dataclasses
import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._typing import Array, PyTree, Scalar
from ..scene import trainable_leaves
from ._sizes import sizes_of
from ._state import FitState, StepInfo, strong_types


# Called as `loss(model, state, batch, key)`; returns `(value, state)`.
Loss = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
# The function that made an update, in Python's words about its arguments.
_MAKER = re.compile(r"(\w+)\.<locals>\.\w+\(\)|passed to `?(\w+)")


def step(
    state: FitState,
    batch: PyTree,
    *,
    loss: Loss,
    optimizer: optax.GradientTransformation,
    trainable: PyTree | None = None,
) -> tuple[FitState, StepInfo]:
    """Takes one step of gradient descent: a pure function, which the caller compiles.

    A step whose loss, gradient or result is not finite changes nothing but the counts.

    **Arguments:**

    - `state`: the state before the step.
    - `batch`: the data that the loss compares with.
    - `loss`: a function `loss(model, state.extra, batch, key)` that returns `(value, extra)`.
      Keyword only, as is all that follows.
    - `optimizer`: any optax transformation; it may take the extra arguments `step` (counted from
      one), `horizon`, `value` (the loss), `grad`, and `value_fn`, the loss of other values of the
      same leaves with the same batch, as line searches need.
    - `trainable`: a tree of booleans (see `select`); by default every floating leaf that is not
      frozen.

    **Returns:**

    The state after the step, and its measures.
    """
    trainable = trainable_leaves(state.model) if trainable is None else trainable
    free, fixed = eqx.partition(state.model, trainable)
    # A copy, because an `eqx.nn.State` may be used only once.
    before = jax.tree.map(lambda x: x, (free, state.moments, state.extra))
    key = jax.random.fold_in(state.keys.steps, state.step)

    def objective(free: PyTree) -> tuple[Scalar, PyTree]:
        return loss(eqx.combine(free, fixed), state.extra, batch, key)

    def loss_of(free: PyTree, step: Any = None, horizon: Any = None) -> Scalar:
        # Line searches refuse arguments that neither they nor this function takes.
        del step, horizon
        extra = jax.tree.map(lambda x: x, before[2])
        return loss(eqx.combine(free, fixed), extra, batch, key)[0]

    (value, extra), gradient = eqx.filter_value_and_grad(objective, has_aux=True)(free)
    updates, moments = _update(optimizer, gradient, state, free, value, loss_of)
    moved = eqx.apply_updates(free, updates)
    sizes = sizes_of(gradient)
    finite = jnp.isfinite(sizes.largest) & jnp.isfinite(sizes_of(moved).largest)
    healthy = jnp.isfinite(value) & finite.all()
    free, moments, extra = _choose(healthy, (moved, moments, strong_types(extra)), before)
    failures = jnp.where(healthy, 0, state.failures + 1)
    steepest = jnp.where(jnp.isnan(sizes.norm()), jnp.nan, jnp.max(sizes.largest, initial=0))
    info = StepInfo(value, sizes.norm(), steepest, finite, failures)
    after = dataclasses.replace(
        state,
        model=eqx.combine(free, fixed),
        moments=moments,
        extra=extra,
        step=state.step + 1,
        failures=failures,
        skipped=state.skipped + ~healthy,
    )
    return after, info


def _update(
    optimizer: optax.GradientTransformation,
    gradient: PyTree,
    state: FitState,
    free: PyTree,
    value: Scalar,
    value_fn: Callable[..., Scalar],
) -> tuple[PyTree, PyTree]:
    """Calls an optimiser with all that a step has."""
    return optax.with_extra_args_support(optimizer).update(
        gradient,
        state.moments,
        free,
        step=state.step + 1,
        horizon=state.horizon,
        value=value,
        grad=gradient,
        value_fn=value_fn,
    )


def check_optimizer(optimizer: optax.GradientTransformation, state: FitState, free: PyTree) -> None:
    """Refuses an optimiser that needs what a step does not have, by its name."""

    def value_fn(others: PyTree, step: Any = None, horizon: Any = None) -> Scalar:
        del step, horizon
        if jax.tree.structure(others) != jax.tree.structure(free):
            raise ValueError("it evaluates the loss of a part of the leaves alone")
        leaves = [jnp.sum(x) for x in jax.tree.leaves(eqx.filter(others, eqx.is_array))]
        return jnp.asarray(sum(leaves), jnp.result_type(float))

    def update(state: FitState, free: PyTree) -> Any:
        value = jnp.zeros((), jnp.result_type(float))
        return _update(optimizer, free, state, free, value, value_fn)

    try:
        eqx.filter_eval_shape(update, state, free)
    except (TypeError, ValueError) as error:
        maker = _MAKER.search(str(error))
        name = f"`{maker[1] or maker[2]}`" if maker else "it"
        raise TypeError(
            f"`optimizer` of `fit`: {name} cannot be used here: {str(error).splitlines()[0]}. A "
            "step has the gradient, `value`, `grad` and `value_fn` of all leaves, and nothing "
            "else; choose another optimiser."
        ) from error


def _choose(condition: Array, tree: PyTree, otherwise: PyTree) -> PyTree:
    """Returns the first tree if the condition holds, or if the other lacks the loss's state."""
    if jax.tree.structure(tree) != jax.tree.structure(otherwise):
        return tree

    (new, rest), (old, _) = (eqx.partition(x, eqx.is_array) for x in (tree, otherwise))
    return eqx.combine(jax.lax.cond(condition, lambda: new, lambda: old), rest)
