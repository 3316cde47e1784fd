"""What users type becomes a differentiable leaf; frozen leaves have no gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import as_float_leaf, Frozen, unfreeze


@pytest.mark.parametrize("value", [1, 1.0, [1, 2], (1, 2.5), np.int32(3), jnp.arange(3)])
def test_numbers_become_float32(value):
    leaf = as_float_leaf(value)
    assert isinstance(leaf, jax.Array) and leaf.dtype == jnp.float32
    np.testing.assert_array_equal(leaf, value)


@pytest.mark.parametrize("value", [1, 0.1, np.float64(0.1), np.array([0.1])])
def test_numbers_become_float64_where_that_is_on(value, x64):
    assert as_float_leaf(value).dtype == jnp.float64
    np.testing.assert_array_equal(as_float_leaf(value), value)


def test_floating_arrays_keep_their_type():
    assert as_float_leaf(jnp.ones(3, jnp.bfloat16)).dtype == jnp.bfloat16


@pytest.mark.parametrize("value", ["red", True, None, 1j, np.array([True])])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="physical quantity"):
        as_float_leaf(value)


def test_frozen_leaves_have_no_gradient():
    def product(tree):
        a, b = unfreeze(tree)
        return a * b

    gradient = jax.grad(product)((Frozen(jnp.asarray(2.0)), jnp.asarray(3.0)))
    assert (float(gradient[0].value), float(gradient[1])) == (0, 2)


def test_nested_wrappers_all_open():
    assert unfreeze([Frozen((Frozen(1.0), 2.0))]) == [(1.0, 2.0)]
