"""Maths that has finite derivatives at its singular points, and right ones elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import (
    max_or_nan,
    min_or_nan,
    safe_divide,
    safe_norm,
    safe_normalise,
    safe_sqrt,
)
from support.helpers import assert_close, assert_finite_gradients, assert_gradients


ZERO, VECTOR = jnp.zeros(3), jnp.array([3.0, 0.0, -4.0])


def test_values():
    assert_close(safe_sqrt(jnp.array([-1.0, 0.0, 4.0])), [0, 0, 2])
    assert_close(safe_divide(jnp.array([1.0, 1.0]), jnp.array([0.0, 4.0]), 7.0), [7, 0.25])
    assert_close(safe_norm(jnp.stack([ZERO, VECTOR])), [0, 5])
    assert_close(safe_normalise(jnp.stack([ZERO, VECTOR])), [[0, 0, 0], [0.6, 0, -0.8]], 1e-6)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (safe_sqrt, [jnp.array([0.0, -1.0, -0.0])]),
        (safe_divide, [jnp.array([1.0, 0.0, 2.0]), jnp.array([0.0, 0.0, -0.0])]),
        (safe_norm, [ZERO]),
        (safe_normalise, [ZERO]),
    ],
)
def test_gradients_at_singular_points_are_zero(function, arguments):
    assert_finite_gradients(function, *arguments)
    gradient = jax.jit(jax.grad(lambda *args: jnp.sum(function(*args))))(*arguments)
    assert not np.any(gradient)


def test_division_by_what_underflows_when_squared():
    numerator, denominator = jnp.asarray(3e-25), jnp.asarray(2e-25)
    assert_close(safe_divide(numerator, denominator), 1.5, 1e-6)
    by_numerator, by_denominator = jax.jit(jax.grad(safe_divide, (0, 1)))(numerator, denominator)
    assert_close(by_numerator, 1 / 2e-25, 1e-6)
    assert_close(by_denominator, -1.5 / 2e-25, 1e-6)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (safe_sqrt, [[0.3, 4.0]]),
        (safe_divide, [[1.0, -2.0], [0.5, 3.0]]),
        (safe_norm, [[0.1, 0.0, -2.0]]),
        (safe_normalise, [[0.1, 0.0, -2.0]]),
    ],
)
def test_gradients_elsewhere(function, arguments, x64):
    assert_gradients(function, *map(jnp.array, arguments))


@pytest.mark.parametrize("keep", [max_or_nan, min_or_nan])
def test_greatest_and_least_keep_nan(keep):
    for place in (0, 2000, 4095):
        numbers = jnp.ones((4096, 3)).at[place, 1].set(jnp.nan)
        for compiled in (keep, jax.jit(keep, static_argnums=1)):
            np.testing.assert_array_equal(compiled(numbers, 0), [1, np.nan, 1])
            assert np.sum(np.isnan(compiled(numbers, 1))) == 1
