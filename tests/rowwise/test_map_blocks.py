"""`map_blocks` equals a map over the blocks that count, with all derivatives."""

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
