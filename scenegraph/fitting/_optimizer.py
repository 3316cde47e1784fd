"""Optimisers that cannot work in a step: found before it is compiled."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._typing import Array, PyTree, Scalar


# The function that made an update, in Python's words about its arguments.
_MAKER = re.compile(r"(\w+)\.<locals>\.\w+\(\)|passed to `?(\w+)")


def check_optimizer(optimizer: optax.GradientTransformation, moments: PyTree, free: PyTree) -> None:
    """Refuses an optimiser that needs what a step does not have, by its name."""

    def value_fn(others: PyTree, step: Any = None, horizon: Any = None) -> Scalar:
        del step, horizon
        if jax.tree.structure(others) != jax.tree.structure(free):
            raise ValueError("it evaluates the loss of a part of the leaves alone")
        leaves = [jnp.sum(x) for x in jax.tree.leaves(eqx.filter(others, eqx.is_array))]
        return jnp.asarray(sum(leaves), jnp.result_type(float))

    def update(free: PyTree, moments: PyTree) -> Any:
        one: Array = jnp.ones((), jnp.result_type(float))
        return optax.with_extra_args_support(optimizer).update(
            free,
            moments,
            free,
            step=jnp.ones((), jnp.int32),
            horizon=one,
            value=one,
            grad=free,
            value_fn=value_fn,
        )

    try:
        eqx.filter_eval_shape(update, free, moments)
    except (TypeError, ValueError) as error:
        maker = _MAKER.search(str(error))
        name = f"`{maker[1] or maker[2]}`" if maker else "it"
        raise TypeError(
            f"`optimizer` of `fit`: {name} cannot be used here: {str(error).splitlines()[0]}. A "
            "step has the gradient, `value`, `grad` and `value_fn` of all leaves, and nothing "
            "else; choose another optimiser."
        ) from error
