"""Kernels in a process: compiled once, the same from many threads, and in children."""

import multiprocessing
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rows import _target, map_rows


TABLE = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)


def read(table, x):
    place = (100 * jnp.abs(x[0])).astype(int)
    return jax.lax.fori_loop(0, 3, lambda i, y: 0.5 * y + table[place + i], jnp.sin(x))


def slope(table, rows):
    return jax.grad(lambda table: jnp.sum(map_rows(read, table, rows) ** 2))(table)


def rows_of(count):
    return np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)


def kilobytes_used():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


@pytest.mark.skipif(sys.platform != "linux", reason="reads its memory from /proc")
def test_many_compilations_keep_one_kernel_and_no_memory():
    def compile_anew():
        jax.jit(lambda table, rows: slope(table, rows)).lower(TABLE, rows_of(50))

    compile_anew()
    kernels, before = len(_target._engines), kilobytes_used()
    for _ in range(20):
        compile_anew()
    assert len(_target._engines) == kernels
    assert kilobytes_used() - before < 64 * 1024


def test_calls_from_many_threads_are_the_same_bit_for_bit():
    call, rows = jax.jit(slope), rows_of(5000)
    expected = np.asarray(call(TABLE, rows))
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda _: np.array_equal(call(TABLE, rows), expected), range(1000))
        assert all(results)


def _in_child(rows):
    return np.asarray(jax.jit(slope)(TABLE, rows))


def test_children_have_kernels_of_their_own():
    rows = rows_of(100)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(_in_child, (rows,)), _in_child(rows))
