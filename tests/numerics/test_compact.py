"""Compaction against numpy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from scenegraph.numerics import compact


listed = jax.jit(lambda mask, size: jnp.nonzero(mask, size=size, fill_value=0), static_argnums=1)
masks = st.sampled_from([0, 1, 7, 20]).flatmap(
    lambda n: st.lists(st.booleans(), min_size=n, max_size=n)
)


@functools.partial(jax.jit, static_argnums=1)
def jitted(mask, budget):
    return compact(mask, budget)


@given(masks, st.sampled_from([1, 4, 20, 30]))
def test_against_numpy(mask, budget):
    indices, valid, overflow = map(np.asarray, jitted(np.array(mask, bool), budget))
    (expected,) = np.nonzero(mask)
    used = min(len(expected), budget)
    np.testing.assert_array_equal(indices[:used], expected[:budget])
    np.testing.assert_array_equal(indices[used:], 0)
    np.testing.assert_array_equal(valid, np.arange(budget) < used)
    assert int(overflow) == len(expected) - used


@pytest.mark.parametrize("density", [0.001, 0.1, 1.0])
def test_long_masks_as_jax_lists_them(density):
    mask = jnp.asarray(np.random.default_rng(0).uniform(size=70_001) < density)
    for budget in (100, 10_000, 80_000):
        (expected,) = listed(mask, budget)
        np.testing.assert_array_equal(jitted(mask, budget).indices, expected)


def test_without_jit_and_under_vmap():
    mask = jnp.array([[True, False, True], [False, False, False]])
    indices, valid, overflow = jax.vmap(lambda m: compact(m, 1))(mask)
    assert (indices.tolist(), valid.tolist()) == ([[0], [0]], [[True], [False]])
    assert overflow.tolist() == [1, 0]


def test_refuses_an_empty_budget():
    with pytest.raises(ValueError, match="got 0"):
        compact(jnp.ones(3, bool), 0)
