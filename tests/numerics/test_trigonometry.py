"""Sines of large and of uncertain angles."""

import jax
import jax.numpy as jnp
import numpy as np

from scenegraph.numerics import expected_sin, safe_cos, safe_sin
from support.helpers import assert_close, assert_finite_gradients, assert_gradients, golden


def test_published_sines():
    data = golden("mip_math")
    x = jnp.asarray(data["expected_sin.in_x"])
    assert_close(safe_sin(x), data["safe_sin.out"], 1e-6)
    assert_close(safe_cos(x), data["safe_cos.out"], 1e-6)


def test_published_expectation():
    data = golden("mip_math")
    mean, variance = expected_sin(
        *(jnp.asarray(data[f"expected_sin.in_{n}"]) for n in ("x", "var"))
    )
    assert_close(mean, data["expected_sin.mean"], 1e-6)
    assert_close(variance, data["expected_sin.var"], 2e-6)


def test_expectation_against_samples():
    draws = 0.7 + np.sqrt(0.4) * np.random.default_rng(0).normal(size=1_000_000)
    mean, variance = expected_sin(jnp.asarray(0.7), jnp.asarray(0.4))
    assert_close(mean, np.sin(draws).mean(), 0, 3e-3)
    assert_close(variance, np.sin(draws).var(), 0, 3e-3)


def test_small_angles_are_exact():
    x = jnp.linspace(-314, 314, 101)
    assert_close(safe_sin(x), np.sin(np.asarray(x, np.float64)), 1e-6)


def test_gradients_are_finite_where_the_angle_wraps():
    x = jnp.array([-1e5, -100 * jnp.pi, 0.0, 100 * jnp.pi, 1e5])
    assert_finite_gradients(safe_sin, x)
    assert_finite_gradients(expected_sin, x, jnp.zeros(5))
    assert_close(jax.vmap(jax.grad(safe_sin))(x), safe_cos(x), 1e-6)


def test_gradients(x64):
    assert_gradients(safe_sin, jnp.array([0.3, 400.0]))
    assert_gradients(expected_sin, jnp.array([0.3, -2.0]), jnp.array([0.1, 2.0]))
