"""What `map_rows` makes one operation of, or none: uniform computations and known numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rowwise import lower_by_vmap, map_rows


ROWS = jax.random.normal(jax.random.key(0), (7, 3))


def lowered(function, *operands):
    """Returns the program that XLA is given of a function."""
    return jax.jit(function).lower(*operands).as_text()


@pytest.mark.usefixtures("without_kernels")
def test_a_uniform_computation_is_made_once():
    twice = lambda s, x: jnp.sin(s) * x + jnp.sin(s) / (1 + x**2)
    call = lambda s, rows: map_rows(twice, s, rows)
    shared = jnp.array([0.5, 1.0, 2.0])
    assert lowered(call, shared, ROWS).count("stablehlo.sine") == 1
    expected = jax.vmap(twice, (None, 0))(shared, ROWS)
    np.testing.assert_allclose(jax.jit(call)(shared, ROWS), expected, rtol=1e-6)


def test_uniform_computations_of_different_parameters_stay_apart():
    both = lambda s, x: (x * jnp.cumsum(s), x * lax.cumsum(s, reverse=True), x * jnp.sum(s))
    call = lambda s, rows: map_rows(both, s, rows)
    shared = jnp.array([0.5, 1.0, 2.0])
    expected = jax.vmap(both, (None, 0))(shared, ROWS)
    for mine, theirs in zip(jax.jit(call)(shared, ROWS), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_equal_numbers_of_different_types_stay_apart():
    both = lambda s, x: (x * (s + 1), x * (s.astype(int) + 1), x * (s + 1.0))
    call = lambda s, rows: map_rows(both, s, rows)
    expected = jax.vmap(both, (None, 0))(jnp.float32(2.5), ROWS)
    for mine, theirs in zip(jax.jit(call)(jnp.float32(2.5), ROWS), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.usefixtures("without_kernels")
def test_small_shared_arrays_that_are_known_are_folded():
    choose = lambda known, x: jnp.where(known == 3, jnp.sin(x), x)
    known = jnp.asarray(2)
    call = lambda rows: map_rows(choose, known, rows)
    assert "stablehlo.sine" not in lowered(call, ROWS)
    np.testing.assert_array_equal(jax.jit(call)(ROWS), ROWS)
    traced = lambda known, rows: map_rows(choose, known, rows)
    assert "stablehlo.sine" in lowered(traced, known, ROWS)


def test_large_shared_arrays_that_are_known_stay_operands():
    table = jax.random.normal(jax.random.key(1), (100,))
    weighted = lambda table, x: jnp.sum(table) * x
    call = lambda rows: map_rows(weighted, table, rows)
    np.testing.assert_allclose(jax.jit(call)(ROWS), jnp.sum(table) * ROWS, rtol=1e-5)
    slope = jax.jit(jax.grad(lambda rows: jnp.sum(call(rows))))(ROWS)
    np.testing.assert_allclose(slope, jnp.full_like(ROWS, jnp.sum(table)), rtol=1e-5)


@pytest.mark.usefixtures("without_kernels")
def test_maps_are_left_to_vmap_where_that_is_said():
    """Programs that run seldom: one operation on all components, not one for each."""
    length = lambda s, x: s * jnp.sum(jnp.sin(x))
    # Functions apart, because JAX keeps what it has compiled of one.
    plain, scalars = (lambda s, rows: map_rows(length, s, rows) for _ in range(2))
    with lower_by_vmap():
        assert lowered(plain, jnp.ones(()), ROWS).count("stablehlo.sine") == 1
        found = jax.jit(plain)(jnp.ones(()), ROWS)
    assert lowered(scalars, jnp.ones(()), ROWS).count("stablehlo.sine") == 3
    np.testing.assert_allclose(found, jnp.sum(jnp.sin(ROWS), axis=1), rtol=1e-6)
