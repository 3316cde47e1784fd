from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey
from ..numerics import AbstractModule, as_float_leaf
from ..scene import trainable_leaves
from ._keys import Keys, split_by_purpose


def _count(number: Any) -> Array:
    # `jnp.asarray` of a number compiles a program.
    number = jax.device_put(np.int32(number)) if isinstance(number, int) else number
    return jnp.asarray(number, jnp.int32)


class FitState(AbstractModule):
    """All that a fit carries from step to step, as a value.

    **Arguments:**

    - `model`: the scene, or any Module.
    - `moments`: the optimiser's state.
    - `extra`: the second result of the loss, which it receives in the next step.
    - `keys`: the random keys, one for each purpose.
    - `step`: the number of steps taken.
    - `horizon`: the number of the last step, for schedules.
    - `failures`: the number of steps in a row, up to now, that were not finite and changed nothing.
    - `budget`: samples a ray, on average, in the next step where rays share them; 0 before that is
      known, and where they share none.
    - `skipped`: the number of all steps that were not finite and changed nothing.
    """

    model: PyTree
    moments: PyTree
    extra: PyTree
    keys: Keys
    step: Int[Array, ""]
    horizon: Float[Array, ""] = eqx.field(converter=as_float_leaf)
    failures: Int[Array, ""]
    budget: Int[Array, ""] = eqx.field(converter=_count, default=0)
    skipped: Int[Array, ""] = eqx.field(converter=_count, default=0)


class StepInfo(AbstractModule):
    """Measures of one step.

    **Arguments:**

    - `loss`: the loss before the step.
    - `gradient_norm`, `gradient_max`: length and largest entry of the gradient, before clipping.
    - `finite`: one boolean for every optimised leaf: its gradient and its new value are finite.
    - `failures`: the `failures` of the state after the step.
    """

    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    gradient_max: Float[Array, ""]
    finite: Bool[Array, " leaves"]
    failures: Int[Array, ""]


def start_state(
    model: PyTree,
    optimizer: optax.GradientTransformation,
    *,
    trainable: PyTree | None = None,
    extra: Any = None,
    steps: int = 1,
    key: RandomKey,
) -> FitState:
    """Makes the state before the first step.

    **Arguments:**

    - `model`: the scene, or any Module.
    - `optimizer`: any optax transformation, the same as for `step`.
    - `trainable`: a tree of booleans; by default every floating leaf that is not frozen. Keyword
      only, as is all that follows.
    - `extra`: the loss's first state.
    - `steps`: the number of the last step, for schedules.
    - `key`: the key of all randomness of the fit (see `Keys`).

    **Returns:**

    The state.
    """
    trainable = trainable_leaves(model) if trainable is None else trainable
    model, extra = strong_types(model), strong_types(extra)
    moments = _first_moments(optimizer, eqx.filter(model, trainable))
    zero = _count(0)
    return FitState(model, moments, extra, split_by_purpose(key), zero, float(steps), zero)


def _first_moments(optimizer: optax.GradientTransformation, leaves: PyTree) -> PyTree:
    """Returns an optimiser's first state, compiled as one where it does not read the leaves."""
    # Otherwise moments of every shape are a program of their own.
    try:
        return eqx.filter_jit(optimizer.init)(leaves)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        return optimizer.init(leaves)


def strong_types(tree: PyTree) -> PyTree:
    """Makes weak types strong, as a step returns them: else it would be compiled a second time."""

    def strong(leaf: Any) -> Any:
        number = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.number)
        weak = number and leaf.weak_type  # Keys have no such type.
        return jax.lax.convert_element_type(leaf, leaf.dtype) if weak else leaf

    return jax.tree.map(strong, tree)
