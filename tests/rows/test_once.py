"""What `map_rows` makes one operation of, or none: uniform computations and known numbers."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rows import _kernel, lower_by_vmap, map_rows


ROWS = jax.random.normal(jax.random.key(0), (7, 3))


@pytest.fixture
def sines(monkeypatch):
    """How many sines each kernel computes that is compiled."""
    counts, register = [], _kernel.register

    def counted(code):
        counts.append(len(re.findall(r"call [^@]*@rows.sin", code)))
        return register(code)

    monkeypatch.setattr(_kernel, "register", counted)
    return counts


def test_a_uniform_computation_is_made_once(sines):
    twice = lambda s, x: jnp.sin(s) * x + jnp.sin(s) / (1 + x**2)
    call = lambda s, rows: map_rows(twice, s, rows)
    shared = jnp.array([0.5, 1.0, 2.0])
    expected = jax.vmap(twice, (None, 0))(shared, ROWS)
    np.testing.assert_allclose(jax.jit(call)(shared, ROWS), expected, rtol=1e-6)
    assert sines == [3]


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


def test_small_shared_arrays_that_are_known_are_folded(sines):
    choose = lambda known, x: jnp.where(known == 3, jnp.sin(x), x)
    known = jnp.asarray(2)
    np.testing.assert_array_equal(jax.jit(lambda rows: map_rows(choose, known, rows))(ROWS), ROWS)
    traced = jax.jit(lambda known, rows: map_rows(choose, known, rows))
    np.testing.assert_array_equal(traced(known, ROWS), ROWS)
    assert sines == [0, 3]


def test_large_shared_arrays_that_are_known_stay_operands():
    table = jax.random.normal(jax.random.key(1), (100,))
    weighted = lambda table, x: jnp.sum(table) * x
    call = lambda rows: map_rows(weighted, table, rows)
    np.testing.assert_allclose(jax.jit(call)(ROWS), jnp.sum(table) * ROWS, rtol=1e-5)
    slope = jax.jit(jax.grad(lambda rows: jnp.sum(call(rows))))(ROWS)
    np.testing.assert_allclose(slope, jnp.full_like(ROWS, jnp.sum(table)), rtol=1e-5)


def test_maps_are_left_to_vmap_where_that_is_said(sines):
    """Programs that run seldom: one operation on all components, not one for each."""
    length = lambda s, x: s * jnp.sum(jnp.sin(x))
    # Functions apart, because JAX keeps what it has compiled of one.
    plain, native = (lambda s, rows: map_rows(length, s, rows) for _ in range(2))
    with lower_by_vmap():
        found = jax.jit(plain)(jnp.ones(()), ROWS)
    assert sines == []
    np.testing.assert_allclose(found, jnp.sum(jnp.sin(ROWS), axis=1), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(native)(jnp.ones(()), ROWS), found, rtol=1e-6)
    assert sines == [3]
