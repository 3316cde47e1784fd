"""Vertices that lie at one place, and move as one."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._typing import Array, Float, Int, PyTree


class _State(NamedTuple):
    """The state of the optimiser, and of every vertex the first one at its place.

    That is a part of the state because constants of this size take long to compile.
    """

    inner: Any
    first: Int[Array, " vertices"]


def welded(
    optimizer: optax.GradientTransformation, vertices: Float[Array, "vertices 3"]
) -> optax.GradientTransformation:
    """Moves vertices that lie at one place as one.

    A mesh with a texture has several vertices where charts meet, with coordinates of their own.
    Each moved by itself, they would tear it.

    **Arguments:**

    - `optimizer`: the optimiser of the vertices. It sees the sum of the gradients at the first
      vertex of each place, and none at the others.
    - `vertices`: the vertices, before they move.

    **Returns:**

    An optax transformation of `vertices 3`; for scenes with other leaves, use it in `by_path`.

    Example: the vertices of a loaded mesh.

    ```python
    square = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    optimizer = sg.optimizers.welded(optax.adam(1e-3), square.vertices)
    ```
    """
    places = first_at_place(np.asarray(vertices))

    def start(params: PyTree) -> _State:
        return _State(optimizer.init(params), jnp.asarray(places))

    def update(updates: PyTree, state: Any, params: Any = None) -> tuple[PyTree, _State]:
        inner, first = state
        # Vertices x_i = y_f(i) have the gradient dL/dy_f = sum of dL/dx_i over those with f(i) = f.
        total = jax.tree.map(lambda x: jnp.zeros_like(x).at[first].add(x), updates)
        steps, inner = optimizer.update(total, inner, params)
        return jax.tree.map(lambda x: x[first], steps), _State(inner, first)

    return optax.GradientTransformation(start, update)


def first_at_place(vertices: np.ndarray) -> np.ndarray:
    """Returns the number of the first vertex at each vertex's place."""
    found = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    return found[1][found[2].reshape(-1)].astype(np.int32)
