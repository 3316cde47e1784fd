"""`map_blocks` and `sum_blocks` equal a map over the blocks that count, with all derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=4))
BLOCKS = jnp.asarray(np.random.default_rng(1).normal(size=(5, 3, 4)))


def block_function(weights, block):
    inner = jax.lax.cond(block[0, 0] > 0, jnp.sin, lambda x: x**2, block * weights)
    return jnp.sum(inner, axis=1), jnp.exp(-block)


def by_blocks(count):
    return lambda w, x: sg.rowwise.map_blocks(block_function, w, x, jnp.asarray(count))


def by_map(count):
    def naive(weights, blocks):
        results = jax.lax.map(lambda block: block_function(weights, block), blocks)
        return jax.tree.map(lambda y: y.at[count:].set(0), results)

    return naive


def total(function):
    return lambda w, x: sum(jnp.sum(jnp.cos(y)) for y in function(w, x))


@pytest.mark.parametrize("count", [0, 2, 5])
def test_values_and_derivatives_are_those_of_a_map(count):
    ours, naive = by_blocks(count), by_map(count)
    pairs = [
        (ours, naive),
        (jax.grad(total(ours), (0, 1)), jax.grad(total(naive), (0, 1))),
        (jax.hessian(total(ours)), jax.hessian(total(naive))),
        (jax.vmap(ours, (0, None)), jax.vmap(naive, (0, None))),
    ]
    for number, (a, b) in enumerate(pairs):
        weights = WEIGHTS if number < 3 else jnp.stack([WEIGHTS, 2 * WEIGHTS])
        found, expected = jax.jit(a)(weights, BLOCKS), jax.jit(b)(weights, BLOCKS)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)


def test_the_count_may_be_traced():
    run = jax.jit(lambda n: sg.rowwise.map_blocks(lambda _, x: x + 1, None, jnp.zeros(4), n))
    np.testing.assert_array_equal(run(jnp.asarray(3)), [1, 1, 1, 0])


COUNTS = jnp.array([0, 2, 5])


def masked(weights, blocks, count, *, summed):
    """All blocks, and then zeros from `count` on."""
    results = jax.vmap(lambda block: block_function(weights, block))(blocks)
    there = jnp.arange(5) < count
    keep = lambda y: jnp.where(there.reshape(-1, *(1,) * (y.ndim - 1)), y, 0)
    results = jax.tree.map(keep, results)
    return jax.tree.map(lambda y: jnp.sum(y, axis=0), results) if summed else results


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("axes", [(0, None, None), (0, None, 0), (None, 0, 0), (None, None, 0)])
def test_a_batch_has_the_gradients_of_its_members(summed, axes):
    ours = sg.rowwise.sum_blocks if summed else sg.rowwise.map_blocks
    three = lambda x: jnp.stack([x, 2 * x, -x])
    weights = WEIGHTS if axes[0] is None else three(WEIGHTS)
    blocks = BLOCKS if axes[1] is None else three(BLOCKS)
    count = jnp.array(3) if axes[2] is None else COUNTS

    def loss(function):
        def total(weights, blocks):
            results = jax.vmap(function, axes)(weights, blocks, count)
            return sum(jnp.sum(jnp.cos(y)) for y in results)

        return jax.jit(jax.grad(total, (0, 1)))

    found = loss(lambda w, x, n: ours(block_function, w, x, n))(weights, blocks)
    expected = loss(lambda w, x, n: masked(w, x, n, summed=summed))(weights, blocks)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=2e-5)
