from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from .._typing import Array, PyTree


class _Moments(NamedTuple):
    """Running means of gradients, and of one square for each leaf; the number of steps."""

    first: PyTree
    second: PyTree
    steps: Array


def scale_by_uniform_adam(
    b1: float = 0.9, b2: float = 0.99, epsilon: float = 1e-15
) -> optax.GradientTransformation:
    """Scales gradients as Adam does, but all entries of a leaf alike.

    Entries that the pictures say little of then move little, where Adam would let noise move them
    as far as any other.

    **Arguments:**

    - `b1`, `b2`: decay rates of the running means of gradients and of their mean square.
    - `epsilon`: the number added to the root of the latter.

    **Returns:**

    An optax transformation.

    **Source:** Nicolet, Jacobson and Jakob 2021, "Large Steps in Inverse Rendering of Geometry",
    section 3.4, with the mean in place of the maximum.

    Example: preconditioned corrections of cameras, beside Adam for all else.

    ```python
    cameras = optax.chain(sg.optimizers.scale_by_uniform_adam(), optax.scale(-0.3))
    optimizer = sg.optimizers.by_path({"capture.*": cameras, "**": optax.adam(1e-2)})
    ```
    """
    return uniform_adam(b1, b2, epsilon, lambda gradient: jnp.mean(gradient**2))


def uniform_adam(
    b1: float, b2: float, epsilon: float, square: Callable[[Array], Array]
) -> optax.GradientTransformation:
    """Scales gradients as Adam does, with one second moment for all entries of a leaf."""

    def start(params: PyTree) -> _Moments:
        zero = lambda x: jnp.zeros((), x.dtype)
        return _Moments(
            jax.tree.map(jnp.zeros_like, params),
            jax.tree.map(zero, params),
            jnp.zeros((), jnp.int32),
        )

    def update(updates: PyTree, state: Any, params: Any = None) -> tuple[PyTree, _Moments]:
        del params
        steps = state.steps + 1
        # m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) square(g): one v for all entries of g
        mean = lambda old, new, rate: rate * old + (1 - rate) * new
        first = jax.tree.map(lambda m, g: mean(m, g, b1), state.first, updates)
        second = jax.tree.map(lambda v, g: mean(v, square(g), b2), state.second, updates)

        def scaled(m: Array, v: Array) -> Array:
            # m / (1 - b1^n) / (sqrt(v / (1 - b2^n)) + epsilon)
            return m / (1 - b1**steps) / (jnp.sqrt(v / (1 - b2**steps)) + epsilon)

        return jax.tree.map(scaled, first, second), _Moments(first, second, steps)

    return optax.GradientTransformation(start, update)
