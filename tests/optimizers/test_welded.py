"""Vertices at one place stay together."""

import jax.numpy as jnp
import numpy as np
import optax

from scenegraph.optimizers import welded
from support.helpers import assert_close


# Vertices 0, 2 and 4 lie at one place, 1 and 3 alone.
PLACES = jnp.asarray([[1.0, 2, 3], [0, 0, 0], [1, 2, 3], [4, 5, 6], [1, 2, 3]])
GRADIENTS = np.random.default_rng(0).normal(size=PLACES.shape).astype(np.float32)


def test_they_move_by_the_sum_of_their_gradients():
    steps = welded(optax.sgd(0.5), PLACES)
    moved, _ = steps.update(jnp.asarray(GRADIENTS), steps.init(PLACES))
    expected = -0.5 * GRADIENTS
    expected[[0, 2, 4]] = -0.5 * GRADIENTS[[0, 2, 4]].sum(axis=0)
    assert_close(moved, expected)


def test_they_stay_together_through_many_steps_of_adam():
    steps, vertices = welded(optax.adam(0.1), PLACES), PLACES
    state = steps.init(vertices)
    for number in range(5):
        updates, state = steps.update(jnp.roll(jnp.asarray(GRADIENTS), number), state)
        vertices = optax.apply_updates(vertices, updates)
    moved = np.asarray(vertices)
    assert np.array_equal(moved[0], moved[2]) and np.array_equal(moved[0], moved[4])
    assert np.all(np.abs(moved - PLACES).max(axis=1) > 0.05)
