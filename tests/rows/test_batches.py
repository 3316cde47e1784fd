"""`jax.vmap` of maps over rows: groups of rows, tables of any length, threads."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rows import _target, map_rows


# --- Functions of rows, and operands with axes in front


BATCH, ROWS, LENGTH = 3, 37, 400
draw = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return jnp.asarray(draw.normal(size=shape), jnp.float32)


TABLES, SCALES = normal(BATCH, LENGTH, 4), normal(BATCH)
X = normal(BATCH, ROWS, 3)
INDEX = jnp.asarray(draw.integers(-500, 600, (BATCH, ROWS)))


def looked_up(shared, row):
    (table, scale), (x, i) = shared, row
    return table[i] * scale * x[0] + jnp.sin(x[1]), scale * x


def looped(shared, row):
    """A loop of rows with look-ups, and a branch; both have derivatives."""
    (table, scale), (x, i) = shared, row
    y = lax.fori_loop(0, 4, lambda k, c: 0.5 * c + jnp.sin(table[(i + k) % 97, :3] * scale), x)
    heavy = lambda: jnp.exp(jnp.tanh(y)) * jnp.cos(y * scale) + jnp.sqrt(1 + y * y)
    return lax.cond(x[0] > 0, heavy, lambda: table[i, 1:] * y), y


def by_vmap(function: Callable, shared: Any, rows: Any) -> Any:
    return jax.vmap(function, (None, 0))(shared, rows)


def total(results: Any) -> Any:
    return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(results))


def slopes(function: Callable) -> Callable:
    """Derivatives for all numbers but indices."""

    def apply(shared: Any, rows: Any) -> Any:
        loss = lambda shared, x: total(function(shared, (x, rows[1])))
        return jax.grad(loss, (0, 1))(shared, rows[0])

    return apply


def batched(mapper: Callable, function: Callable, axes: Any) -> Callable:
    """Values, derivatives of a batch, and a batch of derivatives."""
    call = lambda shared, rows: mapper(function, shared, rows)
    many = jax.vmap(call, axes)
    return lambda *x: (many(*x), slopes(many)(*x), jax.vmap(slopes(call), axes)(*x))


def assert_close(found: Any, expected: Any) -> None:
    def close(x: Any, y: Any) -> None:
        size = float(jnp.max(jnp.abs(y), initial=1.0))
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5 * size)

    jax.tree.map(close, found, expected)


# --- Batches


AXES = {
    "all": ((0, 0), (0, 0)),
    "shared table": ((None, 0), (0, 0)),
    "shared scale": ((0, None), (0, 0)),
    "shared rows": ((0, 0), (None, None)),
    "some shared rows": ((0, None), (None, 0)),
    "only rows": ((None, None), (0, 0)),
}


def operands(axes: Any) -> tuple[Any, Any]:
    """The first of every batch where nothing is mapped over."""
    whole = (TABLES, SCALES), (X, INDEX)
    take = lambda axis, x: x[0] if axis is None else x
    return jax.tree.map(take, axes, whole, is_leaf=lambda x: x is None)


@pytest.mark.parametrize("name", AXES)
def test_batches(name, caplog):
    axes = AXES[name]
    with caplog.at_level(logging.INFO, "scenegraph.compile"):
        found = jax.jit(batched(map_rows, looked_up, axes))(*operands(axes))
    assert "native" in caplog.text and "not native" not in caplog.text
    assert_close(found, jax.jit(batched(by_vmap, looked_up, axes))(*operands(axes)))


def test_batches_of_loops_and_branches(caplog):
    axes = AXES["all"]
    with caplog.at_level(logging.INFO, "scenegraph.compile"):
        found = jax.jit(batched(map_rows, looped, axes))(*operands(axes))
    assert "native" in caplog.text and "not native" not in caplog.text
    assert_close(found, jax.jit(batched(by_vmap, looped, axes))(*operands(axes)))


def test_batches_of_the_last_axis():
    axes = (0, 1), (2, 1)
    swapped = (TABLES, SCALES[None]), (jnp.moveaxis(X, 0, 2), INDEX.T)
    function = lambda shared, row: looked_up((shared[0], shared[1][0]), row)
    results = [jax.jit(batched(m, function, axes))(*swapped) for m in (map_rows, by_vmap)]
    assert_close(*results)


def test_nested_batches():
    """Two batches, of which each has something that the other shares."""

    def both(mapper: Callable) -> Callable:
        call = lambda shared, rows: mapper(looked_up, shared, rows)
        inner = jax.vmap(call, ((None, 0), (0, None)))
        outer = jax.vmap(inner, ((0, None), (None, 0)))
        return lambda *x: (
            outer(*x),
            slopes(outer)(*x),
            jax.vmap(slopes(inner), ((0, None), (None, 0)))(*x),
        )

    x = (TABLES, SCALES), (X, INDEX)
    assert_close(jax.jit(both(map_rows))(*x), jax.jit(both(by_vmap))(*x))


def test_second_derivatives_of_batches():
    def second(mapper: Callable) -> Callable:
        function = lambda s, x: s**3 * jnp.sin(x * s)
        one = lambda s, x: total(mapper(function, s, x))
        return jax.vmap(jax.hessian(one), (0, None))

    assert_close(jax.jit(second(map_rows))(SCALES, X[0]), jax.jit(second(by_vmap))(SCALES, X[0]))


def test_a_map_in_a_loop_over_a_batch():
    """A `lax.map` of a batch of maps, and a map over rows within another."""
    call = lambda mapper: jax.jit(
        lambda s, x: lax.map(lambda s: jax.vmap(lambda x: mapper(lambda s, x: s * x, s, x))(x), s)
    )
    assert_close(call(map_rows)(SCALES, X), call(by_vmap)(SCALES, X))


# --- Kernels


def count_kernels(call: Callable, *operands: Any) -> int:
    call(*operands)
    return len(_target._engines)


def test_other_numbers_of_rows_batches_and_places_have_the_same_kernels():
    axes = AXES["all"]
    call = jax.jit(batched(map_rows, looked_up, axes))

    def make(batch: int, rows: int, length: int) -> Any:
        index = jnp.asarray(draw.integers(-length, 2 * length, (batch, rows)))
        return (normal(batch, length, 4), normal(batch)), (normal(batch, rows, 3), index)

    kernels = count_kernels(call, *make(2, 37, 400))
    for shape in ((2, 50, 400), (4, 37, 400), (2, 37, 333), (3, 1025, 5001)):
        x = make(*shape)
        assert count_kernels(call, *x) == kernels, shape
    assert_close(call(*x), jax.jit(batched(by_vmap, looked_up, axes))(*x))


def test_other_lengths_of_a_shared_table_have_the_same_kernels():
    def function(table, row):
        x, i = row
        filled = table.at[i].get(mode="fill", fill_value=2.0)
        window = lax.dynamic_slice(table, (i, 0), (2, 4))
        return table[i] * x[0], filled * x[1], window, jnp.clip(i, 0, len(table) - 1)

    call = jax.jit(
        lambda table, rows: (
            map_rows(function, table, rows),
            slopes(lambda table, rows: map_rows(function, table, rows)[:3])(table, rows),
        )
    )
    rows = X[0], INDEX[0]
    kernels = count_kernels(call, TABLES[0], rows)
    for length in (301, 399, 5000, 70_000):
        table = normal(length, 4)
        assert count_kernels(call, table, rows) == kernels, length
        assert_close(call(table, rows)[0], by_vmap(function, table, rows))


# --- Threads


SUMS = """
import jax, jax.numpy as jnp, numpy as np, hashlib
from scenegraph.rows import map_rows
draw = np.random.default_rng(0)
table = jnp.asarray(draw.normal(size=(5000, 2)), jnp.float32)
x = jnp.asarray(draw.normal(size=(30_011, 3)), jnp.float32)
i = jnp.asarray(draw.integers(0, 900, 30_011))
def function(shared, row):
    table, s = shared
    x, i = row
    return jnp.sin(x @ s) * table[i * i % 5000] + table[i, 0]
loss = lambda shared: jnp.sum(jnp.cos(map_rows(function, shared, (x, i))))
scaled = lambda shared: lambda k: loss((shared[0] * k, shared[1] * k))
batch = lambda shared: jnp.sum(jax.vmap(scaled(shared))(jnp.arange(1.0, 4.0)))
for f in (loss, batch):
    for g in jax.jit(jax.grad(f))((table, jnp.array([1.0, 2.0, 3.0]))):
        print(hashlib.sha256(np.asarray(g).tobytes()).hexdigest(), float(jnp.sum(jnp.abs(g))))
"""


def test_sums_are_the_same_bit_for_bit_for_any_number_of_threads():
    results = []
    for threads in ("1", "2", "8"):
        done = subprocess.run(
            [sys.executable, "-c", SUMS],
            env=os.environ | {"SCENEGRAPH_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        results.append(done.stdout)
    assert len(results[0].splitlines()) == 4
    assert results[0] == results[1] == results[2]


# --- Without kernels


@pytest.mark.usefixtures("without_kernels")
def test_without_kernels_batches_are_the_same():
    axes = AXES["all"]
    found = jax.jit(batched(map_rows, looped, axes))(*operands(axes))
    assert_close(found, jax.jit(batched(by_vmap, looped, axes))(*operands(axes)))


LARGE = """
import pathlib
import jax, jax.numpy as jnp, numpy as np
from scenegraph.rows import _target, map_rows
_target.find_llvm = lambda: None
draw = np.random.default_rng(0)
table = jnp.asarray(draw.normal(size=2**18), jnp.float32)
x = jnp.asarray(draw.normal(size=4096), jnp.float32)
i = jnp.asarray(draw.integers(-(2**17), 2**19, 4096))
loss = lambda table, x: jnp.sum(map_rows(lambda t, r: t[r[1]] * r[0] + t[r[1] % 77], table, (x, i)))
call = jax.jit(jax.grad(loss, (0, 1)))
text = call.lower(table, x).as_text()
assert "scenegraph_rows" not in text and "4096x262144x" not in text
slope, _ = call(table, x)
place = np.clip(np.where(i < 0, i + 2**18, i), 0, 2**18 - 1)
truth = np.zeros(2**18)
np.add.at(truth, place, np.asarray(x, float))
np.add.at(truth, np.asarray(i) % 77, 1.0)
np.testing.assert_allclose(slope, truth, atol=1e-4)
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its peak memory from /proc")
def test_without_kernels_no_row_has_a_table_of_its_own():
    """A table for every row were 4 GiB; `getrusage` would count the memory of pytest too."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    assert int(done.stdout) < 2 * 2**20
