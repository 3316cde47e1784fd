"""`map_rows` beside `jax.vmap` for operands and operations of all kinds, compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rows import map_rows


KEY = jax.random.key(0)
VECTOR = jnp.array([1.0, 2.0, 3.0])
ROWS = jax.random.normal(jax.random.key(1), (7, 3))
NUMBERS = jnp.arange(5)
TABLE = jax.random.normal(jax.random.key(2), (500, 4))


def place(x):
    return (100 * jnp.abs(x[0])).astype(jnp.int32) % 500


def half(x):
    return x.astype(jnp.bfloat16)


CASES = {
    "result that no row changes": (lambda s, x: 2 * s, VECTOR, ROWS),
    "constant result": (lambda s, x: jnp.ones(2), VECTOR, ROWS),
    "results of several types": (lambda s, x: (x > 0, x.astype(int), 3, None), VECTOR, ROWS),
    "no rows": (lambda s, x: s * jnp.sum(x), VECTOR, ROWS[:0]),
    "whole numbers": (lambda s, i: s * i + jnp.sin(1.0 * i), VECTOR, NUMBERS),
    "truth values": (lambda s, b: 2 * jnp.where(b, s, 0.0), VECTOR, NUMBERS > 2),
    "division of whole numbers": (lambda s, i: (i // 0, i % 0, 0 * i, i - i), VECTOR, NUMBERS),
    "overflow of whole numbers": (lambda s, i: i.astype(jnp.uint8) * jnp.uint8(99), (), NUMBERS),
    "shared key": (lambda k, i: jax.random.normal(jax.random.fold_in(k, i)), KEY, NUMBERS),
    "captured key": (lambda s, i: jax.random.normal(jax.random.fold_in(KEY, i)), (), NUMBERS),
    "a key per row": (lambda s, k: jax.random.normal(k, 2), (), jax.random.split(KEY, 4)),
    "shared table": (lambda t, x: t[place(x)], TABLE, ROWS),
    "captured table": (lambda s, x: TABLE[place(x)], (), ROWS),
    "half precision": (lambda s, x: jnp.sum(half(x) * half(s)), VECTOR, ROWS),
    "product of higher precision": (
        lambda s, x: jnp.dot(half(x), half(s), preferred_element_type=jnp.float32),
        VECTOR,
        ROWS,
    ),
    "complex numbers": (lambda s, x: (x + 1j * s) * (0 + 1j), VECTOR, ROWS),
    "column-major reshape": (lambda s, x: jnp.outer(x, s).reshape(9, order="F"), VECTOR, ROWS),
    "sum of products": (lambda s, x: jnp.einsum("i,j,ji->i", x, s, jnp.eye(3)), VECTOR, ROWS),
    "inverse": (lambda s, x: jnp.linalg.inv(jnp.outer(x, s) + jnp.eye(3)), VECTOR, ROWS),
    "order": (lambda s, x: (jnp.argsort(x), jnp.argmax(x)), VECTOR, ROWS),
    "while": (
        lambda s, x: lax.while_loop(lambda y: jnp.sum(y) < 10, lambda y: y + s, jnp.abs(x)),
        VECTOR,
        ROWS,
    ),
    "switch": (
        lambda s, x: lax.switch((x[0] > 0).astype(int), [lambda y: 2 * y, jnp.sin], x),
        VECTOR,
        ROWS,
    ),
    "rows that no row changes": (
        lambda s, x: map_rows(lambda a, b: a * b, 2.0 * s, jnp.stack([s, s])),
        VECTOR,
        ROWS,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_vmap(case):
    function, shared, rows = CASES[case]
    found = jax.jit(lambda s, x: map_rows(function, s, x))(shared, rows)
    expected = jax.jit(lambda s, x: jax.vmap(function, (None, 0))(s, x))(shared, rows)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def function(shared, x):
    return jnp.sum(jnp.sin(x) * jnp.cos(x) / shared) * x


def test_a_row_of_nan_changes_no_other():
    compiled = jax.jit(lambda rows: map_rows(function, VECTOR, rows))
    np.testing.assert_array_equal(compiled(ROWS.at[0].set(jnp.nan))[1:], compiled(ROWS)[1:])


def test_double_precision(x64):
    shared, rows = np.array([1.0, 2.0, 3.0]), np.array([[np.nan, 1.0, 2.0], [0.1, 0.2, 0.3]])
    found = jax.jit(lambda rows: map_rows(function, shared, rows))(rows)
    np.testing.assert_allclose(found, jax.vmap(lambda x: function(shared, x))(rows), rtol=1e-14)


def test_large_divisors():
    """Quotients are divisions: the reciprocals of these numbers would be zero."""
    rows = jnp.array([[jnp.inf, 2.0**127], [2.0**127, 2.0**127], [2.0**-126, 2.0**-126]])
    found = jax.jit(lambda rows: map_rows(lambda _, x: x[0] / x[1], (), rows))(rows)
    np.testing.assert_array_equal(found, [jnp.inf, 1, 1])
    nested = jax.jit(lambda rows: map_rows(lambda _, x: x[0] / x[1] / x[1], (), rows))(rows)
    np.testing.assert_array_equal(nested, [jnp.inf, 0, 2.0**126])
