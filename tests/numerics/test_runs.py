"""Sums over runs of rows of different costs, against the sum over all rows at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import sum_over_runs
from support.helpers import assert_close


COUNT = 23
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(COUNT, 3)), jnp.float32)
KEYS = jax.random.split(jax.random.key(0), COUNT)
SHARED = jnp.array([0.3, -0.5, 0.8])
COSTS = jnp.asarray(RNG.integers(0, 7, COUNT), jnp.int32)


def wave(shared, rows, taken):
    """Something curved in both arguments; what does not count is not finite."""
    x, keys = rows
    noise = jax.vmap(jax.random.uniform)(keys)
    each = jnp.sin(jnp.where(taken[:, None], x, 0) @ shared + noise) * jnp.sum(x**2, axis=1)
    counted = jnp.where(taken, each, 0)
    return jnp.sum(counted), {"count": jnp.sum(taken), "runs": jnp.ones(())}


@jax.jit
def expected(shared, x):
    return wave(shared, (x, KEYS), jnp.ones(COUNT, bool))[0]


@pytest.mark.parametrize("most, size", [(1, 1), (6, 4), (6, 100), (13, 5), (1000, 8), (1000, 100)])
def test_sums_and_gradients_of_any_runs(most, size):
    def summed(shared, x):
        return sum_over_runs(wave, shared, (x, KEYS), COSTS, most=most, size=size)

    both = jax.jit(jax.value_and_grad(summed, (0, 1), has_aux=True))
    (value, others), gradients = both(SHARED, X)
    assert_close(value, expected(SHARED, X), 1e-5)
    assert_close(jax.jit(summed)(SHARED, X)[0], value, 1e-6)
    assert others["count"] == COUNT
    for ours, theirs in zip(gradients, jax.grad(expected, (0, 1))(SHARED, X), strict=True):
        assert_close(ours, theirs, 1e-5, 1e-6)


@pytest.mark.parametrize("most, size", [(6, 4), (6, 100), (13, 5), (1000, 100)])
def test_runs_are_as_long_as_costs_allow(most, size):
    run = lambda x: sum_over_runs(wave, SHARED, (x, KEYS), COSTS, most=most, size=size)[1]["runs"]
    runs, row = 0, 0
    while row < COUNT:
        end, cost = row + 1, int(COSTS[row])
        while end < COUNT and end - row < size and cost + int(COSTS[end]) <= most:
            cost += int(COSTS[end])
            end += 1
        runs, row = runs + 1, end
    assert jax.jit(run)(X) == runs


def test_a_row_that_costs_more_than_a_run_may_is_a_run():
    costs = COSTS.at[5].set(99)
    run = lambda x: sum_over_runs(wave, SHARED, (x, KEYS), costs, most=10, size=8)
    value, others = jax.jit(run)(X)
    assert others["count"] == COUNT
    assert_close(value, expected(SHARED, X), 1e-5)
