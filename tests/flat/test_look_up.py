"""Look-ups of members: values and derivatives are those of indexing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.flat._look_up import look_up, look_up_by_product
from support.helpers import assert_close


DRAW = np.random.default_rng(0)
PLACES = jnp.asarray(DRAW.integers(0, 7, (50, 3)))


@pytest.mark.parametrize("shape", [(7,), (7, 2), (7, 2, 4)])
@pytest.mark.parametrize("function", [look_up, look_up_by_product])
def test_derivatives(function, shape, x64):
    table, change = jnp.asarray(DRAW.normal(size=(2, *shape)))
    weights = jnp.asarray(DRAW.normal(size=(50, 3, *shape[1:])))
    loss = lambda of: lambda x: jnp.sum(weights * jnp.sin(of(x, PLACES)))
    indexed = loss(lambda x, places: x[places])
    np.testing.assert_array_equal(function(table, PLACES), table[PLACES])
    assert_close(jax.grad(loss(function))(table), jax.grad(indexed)(table), 1e-12)
    forward = jax.jvp(loss(function), (table,), (change,))[1]
    assert_close(forward, jax.jvp(indexed, (table,), (change,))[1], 1e-12)
    second = jax.jvp(jax.grad(loss(function)), (table,), (change,))[1]
    assert_close(second, jax.jvp(jax.grad(indexed), (table,), (change,))[1], 1e-12)


def test_what_is_not_finite_stays_with_its_member():
    table = jnp.array([1.0, jnp.inf, jnp.nan, -jnp.inf])
    places = jnp.array([0, 0, 3, 1])
    np.testing.assert_array_equal(look_up_by_product(table, places), table[places])
    gradient = jax.grad(lambda x: jnp.sum(look_up_by_product(x, places)[:2]))(table)
    np.testing.assert_array_equal(gradient, [2, 0, 0, 0])


def test_numbers_are_looked_up():
    numbers = jnp.arange(5, dtype=jnp.int32)
    np.testing.assert_array_equal(look_up(numbers, PLACES % 5), PLACES % 5)


def test_on_a_gpu_rows_do_not_wait(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    table = jnp.ones((7, 2))
    text = str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(look_up(x, PLACES))))(table))
    assert "dot_general" in text
    assert "scatter" not in text
