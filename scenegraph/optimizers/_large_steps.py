"""An optimiser of vertices: steps that are smooth over a mesh."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer

from .._typing import Array, Float, PyTree, Scalar
from ..losses import MeshEdges
from ._uniform_adam import uniform_adam


# Of the residual of the linear system, relative to its right-hand side.
_TOLERANCE = 1e-5


def large_steps(
    edges: MeshEdges,
    learning_rate: float,
    *,
    smoothness: float = 19.0,
    b1: float = 0.9,
    b2: float = 0.999,
) -> optax.GradientTransformation:
    """Moves vertices by steps that are smooth over the mesh, however rough the gradient is.

    The gradient of a silhouette is there at the outline only: followed as it is, it pulls single
    vertices out of the mesh. Here every step carries the neighbours along.

    **Arguments:**

    - `edges`: the mesh's edges, from `sg.losses.mesh_edges`.
    - `learning_rate`: the largest step of any vertex before it is smoothed, about, in units of
      length. Smoothing makes steps many times shorter: begin with a tenth to a half of the size of
      the object, and let it fall to a tenth of that. Larger ones fold the mesh where it is hidden.
    - `smoothness`: the weight of the Laplacian; larger is smoother. Keyword only argument.
    - `b1`, `b2`: decay rates of the running means, as in Adam. Keyword only arguments.

    **Returns:**

    An optax transformation of `vertices 3`; for scenes with other leaves, use it in `by_path`.

    **Errors:**

    `ValueError` for leaves that are no vertices, or a mesh of fewer vertices than edges name.

    **Source:** Nicolet, Jacobson and Jakob 2021, "Large Steps in Inverse Rendering of Geometry":
    `(I + smoothness L)^-1` before and after Adam with one second moment for all vertices.

    Example: vertices of one mesh, and Adam for all else.

    ```python
    ball = sg.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    steps = sg.optimizers.large_steps(sg.losses.mesh_edges(ball.faces), 1e-2)
    optimizer = sg.optimizers.by_path({"ball.shape.vertices": steps, "**": optax.adam(1e-3)})
    ```
    """

    adam = uniform_adam(b1, b2, 1e-8, lambda gradient: jnp.max(gradient**2))
    smooth = lambda x: _smoothed(x, edges, smoothness)

    def start(params: PyTree) -> optax.OptState:
        jax.tree.map(lambda x: _check_vertices(x, edges), params)
        return adam.init(params)

    def update(updates: PyTree, state: Any, params: Any = None) -> tuple[PyTree, Any]:
        del params
        # With u = (I + s L) x: the gradient by u is (I + s L)^-1 g, and Adam's step of u moves x by
        # (I + s L)^-1 du.
        scaled, state = adam.update(jax.tree.map(smooth, updates), state)
        return jax.tree.map(lambda x: -learning_rate * smooth(x), scaled), state

    return optax.GradientTransformation(start, update)


def _smoothed(
    x: Float[Array, "vertices 3"], edges: MeshEdges, smoothness: float | Scalar
) -> Float[Array, "vertices 3"]:
    """Solves `(I + smoothness L) y = x` by conjugate gradients."""
    a, b = edges.edges.T

    def product(y: Float[Array, "vertices 3"]) -> Float[Array, "vertices 3"]:
        # (L y)_i = sum_j (y_i - y_j), over the neighbours j of i.
        apart = y[b] - y[a]
        return y + smoothness * jnp.zeros_like(y).at[a].add(-apart).at[b].add(apart)

    # I + s L is symmetric, and not smaller than I: conjugate gradients converge. From x on, because
    # XLA would compute the product of zeros while it compiles.
    return jax.scipy.sparse.linalg.cg(product, x, x0=x, tol=_TOLERANCE)[0]


def _check_vertices(x: Array, edges: MeshEdges) -> None:
    if x.ndim != 2 or x.shape[1] != 3:
        raise ValueError(
            f"`large_steps` moves vertices, of shape (vertices, 3); got a leaf of shape {x.shape}. "
            "Give it to the vertices alone, with `by_path`."
        )
    if not isinstance(edges.edges, Tracer) and edges.edges.size:
        most = int(np.max(edges.edges))
        if most >= x.shape[0]:
            raise ValueError(
                f"`large_steps` has edges of vertex {most}, but the mesh has {x.shape[0]} "
                "vertices. Make the edges from this mesh's faces."
            )
