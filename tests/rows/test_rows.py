"""`map_rows` beside `jax.vmap`: values, derivatives of every kind, and what it is nested in."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rows import map_rows


SHARED = {"a": jnp.array([1.0, 2.0, 3.0]), "m": jax.random.normal(jax.random.key(0), (3, 3))}
ROWS = jax.random.normal(jax.random.key(1), (57, 3))
NUMBERS = jnp.arange(57)


def small(shared, row):
    """Products, sorting, running sums, rules of their own, constants and whole numbers."""
    x, number = row
    unit = sg.numerics.safe_normalise(x)
    mixed = jnp.stack([unit, shared["a"]]) @ shared["m"]
    running = jax.vmap(lambda v: jnp.cumsum(v * shared["a"]))(mixed)
    covered = sg.numerics.half_plane_coverage(x[0], x[1:])
    chosen = jnp.where(x[0] > 0, jnp.array([1.0, 2.0, 3.0]), unit)
    nothing = jnp.cumprod(x[:0])
    return {
        "running": running.sum(0) + number,
        "sorted": jnp.sort(mixed.ravel())[::2],
        "number": number + 1,
        "chosen": jnp.concatenate([chosen * covered, nothing]),
        "shared": shared["a"] * 2,
    }


def by_vmap(shared, rows):
    return jax.vmap(small, (None, 0))(shared, rows)


def by_rows(shared, rows):
    return map_rows(small, shared, rows)


def total(function):
    """A number that depends on all that a function returns."""

    def summed(a, x):
        leaves = jax.tree.leaves(function({**SHARED, "a": a}, (x, NUMBERS)))
        return sum(jnp.sum(jnp.sin(leaf.astype(x.dtype))) for leaf in leaves)

    return summed


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-5)


@pytest.fixture(params=["native", "in blocks"], autouse=True)
def blocks(request, monkeypatch):
    """A native kernel, or three blocks of 19 rows by `jax.vmap`."""
    if request.param == "in blocks":
        request.getfixturevalue("without_kernels")
        monkeypatch.setattr("scenegraph.rows._lower._VMAP_NUMBERS", 1)
        monkeypatch.setattr("scenegraph.rows._lower._FEWEST_VMAP_ROWS", 20)


def test_values():
    rows = ROWS, NUMBERS
    compiled = jax.jit(lambda *x: by_rows(*x))  # anew, with or without blocks
    assert_same(compiled(SHARED, rows), jax.jit(by_vmap)(SHARED, rows))
    assert_same(by_rows(SHARED, rows), by_vmap(SHARED, rows))


@pytest.mark.parametrize(
    "derive",
    [
        lambda f: jax.grad(f, (0, 1)),
        lambda f: jax.hessian(f),
        lambda f: lambda a, x: jax.jvp(f, (a, x), (2 * a, x)),
        lambda f: lambda a, x: jax.vmap(f, (0, None))(jnp.stack([a, 2 * a]), x),
        lambda f: jax.grad(jax.checkpoint(f)),
    ],
    ids=["grad", "hessian", "jvp", "vmap", "checkpoint"],
)
def test_transformed(derive):
    arguments = SHARED["a"], ROWS
    assert_same(
        jax.jit(derive(total(by_rows)))(*arguments), jax.jit(derive(total(by_vmap)))(*arguments)
    )


def test_what_a_function_closes_over_has_a_gradient():
    def summed(scale):
        return jnp.sum(map_rows(lambda shared, x: x * scale * shared["a"], SHARED, ROWS))

    np.testing.assert_allclose(
        jax.jit(jax.grad(summed))(jnp.ones(3)), jnp.sum(ROWS, axis=0) * SHARED["a"], rtol=1e-4
    )


def test_rows_within_rows():
    def inner(shared, x):
        return shared["a"][0] * x + jnp.sin(x)

    nested = jax.jit(lambda x: map_rows(lambda s, row: map_rows(inner, s, row).sum(), SHARED, x))
    np.testing.assert_allclose(nested(ROWS), (ROWS + jnp.sin(ROWS)).sum(1), atol=1e-5)
