"""Steps that are smooth over a mesh, against dense linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from scenegraph.losses import mesh_edges
from scenegraph.optimizers import large_steps
from support.hard_triangles import icosphere


VERTICES, FACES = icosphere(1)
EDGES = mesh_edges(jnp.asarray(FACES))
RATE, SMOOTHNESS = 0.01, 7.0


def dense_smoother():
    matrix = np.eye(len(VERTICES))
    for a, b in np.asarray(EDGES.edges):
        matrix[[a, b], [a, b]] += SMOOTHNESS
        matrix[[a, b], [b, a]] -= SMOOTHNESS
    return np.linalg.inv(matrix)


def test_steps_are_those_of_dense_matrices():
    smoother, draw = dense_smoother(), np.random.default_rng(0)
    steps = large_steps(EDGES, RATE, smoothness=SMOOTHNESS)
    state = steps.init(jnp.asarray(VERTICES, jnp.float32))
    update = jax.jit(steps.update)
    first, second = np.zeros_like(VERTICES, dtype=float), 0.0
    for count in (1, 2, 3):
        gradient = draw.normal(size=VERTICES.shape)
        found, state = update(jnp.asarray(gradient, jnp.float32), state)
        smooth = smoother @ gradient
        first = 0.9 * first + 0.1 * smooth
        second = 0.999 * second + 0.001 * np.max(smooth**2)
        mean, spread = first / (1 - 0.9**count), second / (1 - 0.999**count)
        expected = -RATE * smoother @ (mean / np.sqrt(spread))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.max(abs(expected)))


def test_a_pull_at_one_vertex_moves_its_neighbours():
    """One vertex is pulled by 0.3 of the radius; Adam alone leaves all others where they are."""
    start = np.asarray(VERTICES, np.float32)
    target = 1.3 * start
    near = [int(j) for edge in np.asarray(EDGES.edges) if 0 in edge for j in edge if j != 0]
    moved = {}
    for name, steps in {"large": large_steps(EDGES, 0.05), "adam": optax.adam(0.05)}.items():

        @jax.jit
        def step(vertices, state, steps=steps):
            gradient = jnp.zeros_like(start).at[0].set(vertices[0] - target[0])
            change, state = steps.update(gradient, state)
            return optax.apply_updates(vertices, change), state

        vertices, state = start, steps.init(jnp.asarray(start))
        for _ in range(60):
            vertices, state = step(vertices, state)
        vertices = np.asarray(vertices)
        assert np.max(np.abs(vertices[0] - target[0])) < 0.05
        moved[name] = np.mean(np.linalg.norm((vertices - start)[near], axis=1))
    assert moved["adam"] == 0 and moved["large"] > 0.1


@pytest.mark.parametrize(
    ("leaf", "message"),
    [(jnp.zeros(3), "by_path"), (jnp.zeros((5, 3)), "has 5 vertices")],
)
def test_leaves_that_are_no_vertices_are_refused(leaf, message):
    with pytest.raises(ValueError, match=message):
        large_steps(EDGES, RATE).init(leaf)
