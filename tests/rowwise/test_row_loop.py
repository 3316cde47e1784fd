"""Loops over rows: any function of scalars, against the same function of whole arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rowwise import _emit_loops, _lower, map_rows
from scenegraph.rowwise._row_loop import (
    COLUMN,
    computes_windows,
    loop_over_rows,
    NUMBER,
    OperandCount,
    RESULT,
)


FLOAT, INT, BOOL = (np.dtype(x) for x in ("float32", "int32", "bool"))
X = np.linspace(-2, 2, 5, dtype=np.float32)
N = np.arange(5, dtype=np.int32)


def looped(function, numbers, columns, dtypes):
    call = lambda numbers, columns: loop_over_rows(function, numbers, columns, 5, dtypes)
    return jax.jit(call)(numbers, columns)


def test_this_compiler_computes_windows_of_one_number():
    assert computes_windows()


def test_results_of_several_types():
    def one(numbers, row):
        (a, k), (x, n) = numbers, row
        return x * a + n.astype(FLOAT), n > k, n * k, x < a

    a, k = np.float32(1.5), np.int32(3)
    found = looped(one, [a, k], [X, N], [FLOAT, BOOL, INT, BOOL])
    for mine, theirs in zip(found, (X * a + N.astype(FLOAT), k < N, N * k, a > X), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.parametrize("columns", [[], [X], [X, X + 1, X + 2]])
@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("results", [1, 4])
def test_any_number_of_columns_numbers_and_results(columns, count, results):
    numbers = [np.float32(i + 1) for i in range(count)]
    one = lambda numbers, row: [i + sum(numbers) * (1 + sum(row)) for i in range(results)]
    found = looped(
        lambda *x: [jnp.float32(y) for y in one(*x)], numbers, columns, [FLOAT] * results
    )
    for mine, theirs in zip(found, one(numbers, columns), strict=True):
        np.testing.assert_allclose(mine, np.broadcast_to(theirs, 5), rtol=1e-6)


def test_the_number_of_operands():
    # Two columns become results; the third result and the whole number have places of their own.
    count = OperandCount()
    count.change([(FLOAT, COLUMN, 2), (FLOAT, NUMBER, 1), (INT, NUMBER, 1)])
    assert count.change([(FLOAT, RESULT, 3)]) == 4
    assert count.change([(FLOAT, RESULT, -1)]) == 3


def test_a_loop_has_two_operands_at_least():
    assert OperandCount().change([]) == 2


def steps(shared, x):
    """A chain of so many operations, with a look-up in its middle."""
    for i in range(40):
        x = jnp.sin(x) * shared[0] + x / (2 + i + shared[1] ** 2)
    x = x * shared[2][jnp.clip(jnp.int32(10 * jnp.abs(x)), 0, 7)]
    for i in range(40):
        x = jnp.where(x > 0, x, -x) / (1.5 + i) + jnp.sqrt(1 + x**2)
    return x, jnp.stack([x, 2 * x])


@pytest.mark.parametrize(("nodes", "operands"), [(3000, 96), (50, 96), (3000, 3), (1, 2)])
def test_loops_of_any_size(monkeypatch, nodes, operands):
    """However large stages are cut, the numbers are those of whole arrays."""
    monkeypatch.setattr(_emit_loops, "_MOST_NODES", nodes)
    monkeypatch.setattr(_emit_loops, "_MOST_OPERANDS", operands)
    shared = jnp.float32(0.5), jnp.float32(1.5), jnp.linspace(1, 2, 8)
    rows = jax.random.normal(jax.random.key(0), (33,))
    found = jax.jit(lambda *x: map_rows(steps, *x))(shared, rows)
    expected = jax.vmap(steps, (None, 0))(shared, rows)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5)


@pytest.mark.parametrize("nodes", [3000, 50])
def test_loops_that_are_cut_are_kernels_of_many_rows(monkeypatch, nodes):
    monkeypatch.setattr(_emit_loops, "_MOST_NODES", nodes)
    monkeypatch.setattr(_lower, "_MANY_IF_CUT", 33)
    shared = jnp.float32(0.5), jnp.float32(1.5), jnp.linspace(1, 2, 8)
    rows = jax.random.normal(jax.random.key(0), (33,))
    text = jax.jit(lambda *x: map_rows(steps, *x)).lower(shared, rows).as_text()
    assert ("reduce_window" in text) == (nodes == 3000)


@pytest.mark.usefixtures("without_kernels")
def test_loops_are_as_long_as_their_operands_allow(monkeypatch):
    """A running product of many columns, of which each loop adds as many as it has places."""
    monkeypatch.setattr(_emit_loops, "_MOST_OPERANDS", 5)
    rows = jnp.ones((3, 17))
    text = jax.jit(lambda x: map_rows(lambda _, x: jnp.prod(x), (), x)).lower(rows).as_text()
    # Five columns in the first loop, in others the product so far and four.
    assert text.count("stablehlo.reduce_window") == 4


def test_where_windows_are_not_computed_kernels_are(monkeypatch):
    monkeypatch.setattr(_lower, "has_row_loops", lambda: False)
    text = jax.jit(lambda x: map_rows(lambda _, x: jnp.sin(x) * x / (1 + x**2), (), x)).lower(X)
    assert "reduce_window" not in text.as_text()


def test_without_a_cpu_nothing_is_known_of_its_compiler(monkeypatch):
    def refuse(*, backend):
        raise RuntimeError(f"Unknown backend {backend}")

    monkeypatch.setattr(jax, "local_devices", refuse)
    assert not computes_windows()


@pytest.mark.usefixtures("without_kernels")
def test_a_block_of_rows_is_one_loop():
    """What compile time depends on: not on how often values are used."""

    def one(_, x):
        for _ in range(30):
            x = x / jnp.sqrt(1 + x**2) + jnp.sin(x) * x
        return x

    text = jax.jit(lambda x: map_rows(one, (), x)).lower(X).as_text()
    assert text.count("stablehlo.reduce_window") == 1
    assert text.count("stablehlo.sine") == 30
