from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._typing import Array, Bool, Float, Int, PyTree, RandomKey
from ..numerics import AbstractModule, as_float_leaf
from ..scene import trainable_leaves
from ._keys import Keys, split_by_purpose


def _count(number: Any) -> Array:
    return jnp.asarray(number, jnp.int32)


class FitState(AbstractModule):
    """Everything that a fit carries from step to step: a value, with no life of its own.

    **Arguments:**

    - `model`: the scene, or any Module.
    - `moments`: the optimiser's state.
    - `extra`: what the loss returned beside its value, and receives in the next step.
    - `keys`: the random keys, one for each purpose.
    - `step`: how many steps have been taken.
    - `horizon`: how many steps the schedules reckon with.
    - `failures`: how many steps in a row, up to now, were not finite and so changed nothing.
    - `budget`: how many samples a ray has on average in the next step, where rays share a budget;
      0 before that is known, and where they share none.
    - `skipped`: how many steps in all were not finite and so changed nothing.
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
    """What one step tells.

    **Arguments:**

    - `loss`: before the step.
    - `gradient_norm`, `gradient_max`: length and largest entry of the gradient, before clipping.
    - `finite`: of every optimised leaf, whether its gradient and its new value are finite.
    - `failures`: as in the state after the step.
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
    """The state before the first step.

    **Arguments:**

    - `model`: the scene, or any Module.
    - `optimizer`: as for `step`.
    - `trainable`: as for `step`. Keyword only, as is all that follows.
    - `extra`: the loss's first state.
    - `steps`: how many steps the schedules reckon with.
    - `key`: of all randomness of the fit.

    **Returns:**

    The state.
    """
    trainable = trainable_leaves(model) if trainable is None else trainable
    model, extra = strong_types(model), strong_types(extra)
    moments = optimizer.init(eqx.filter(model, trainable))
    zero = jnp.zeros((), jnp.int32)
    keys = split_by_purpose(key)
    return FitState(model, moments, extra, keys, zero, float(steps), zero)


def strong_types(tree: PyTree) -> PyTree:
    """A tree whose numbers have no weak types (see JAX): a step returns none, and so the second
    step would be compiled anew.

    **Arguments:**

    - `tree`: any pytree.

    **Returns:**

    The same tree.
    """

    def strong(leaf: Any) -> Any:
        number = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.number)
        return jax.lax.convert_element_type(leaf, leaf.dtype) if number else leaf

    return jax.tree.map(strong, tree)


def largest_entry(tree: PyTree) -> Float[Array, ""]:
    """The largest absolute number in a tree of arrays.

    **Arguments:**

    - `tree`: of floating arrays.

    **Returns:**

    Zero for an empty tree.
    """
    entries = [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree) if leaf.size]
    return jnp.max(jnp.stack(entries)) if entries else jnp.zeros(())


def finite_leaves(*trees: PyTree) -> Bool[Array, " leaves"]:
    """Which leaves are finite in all of several trees of one structure.

    **Arguments:**

    - `trees`: of floating arrays.

    **Returns:**

    One boolean a leaf.
    """
    leaves = zip(*map(jax.tree.leaves, trees), strict=True)
    finite = [jnp.all(jnp.stack([jnp.isfinite(x).all() for x in same])) for same in leaves]
    return jnp.stack(finite) if finite else jnp.ones(0, bool)
