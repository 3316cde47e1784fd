"""What rows of a packet do together leaves the results of each as they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rows import any_in_packet, map_rows


COUNT = 203
TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(40, 3)), jnp.float32)


def count_below(table, x):
    """Walks all rows of a table together, and adds those that are wanted."""

    def turn(carry):
        i, total = carry
        wanted = table[i, 0] < x[0]
        add = lambda total: jnp.where(wanted, total + table[i, 1:] * x[1], total)
        total = jax.lax.cond(any_in_packet(wanted), add, lambda total: total, total)
        return i + 1, total

    start = jnp.zeros((), jnp.int32), jnp.zeros(2, x.dtype)
    return jax.lax.while_loop(lambda carry: carry[0] < len(TABLE), turn, start)[1]


def rows():
    return np.random.default_rng(1).normal(size=(COUNT, 2)).astype(np.float32)


def expected(x):
    return (TABLE[None, :, 0] < x[:, :1]).astype(np.float32) @ TABLE[:, 1:] * x[:, 1:]


@pytest.mark.parametrize("count", [1, 7, 8, COUNT])
def test_a_walk_of_a_packet_is_that_of_each_row(count):
    found = jax.jit(lambda table, x: map_rows(count_below, table, x))(TABLE, rows()[:count])
    np.testing.assert_allclose(found, expected(rows()[:count]), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("without_kernels")
def test_without_kernels_every_row_walks_alone():
    found = jax.jit(lambda table, x: map_rows(count_below, table, x))(TABLE, rows())
    np.testing.assert_allclose(found, expected(rows()), rtol=1e-4, atol=1e-4)
    alone = jax.vmap(lambda x: count_below(TABLE, x))(jnp.asarray(rows()))
    np.testing.assert_allclose(alone, expected(rows()), rtol=1e-4, atol=1e-4)


def test_what_all_rows_agree_on_stays_uniform():
    flag = lambda table, x: (any_in_packet(table[0, 0] < 0), any_in_packet(x[0] > 9))
    first, second = jax.jit(lambda table, x: map_rows(flag, table, x))(TABLE, rows())
    assert bool(jnp.all(first == (TABLE[0, 0] < 0))) and not bool(jnp.any(second))


def test_packets_are_known_under_every_transformation():
    call = jax.vmap(lambda x: map_rows(count_below, TABLE, x))
    x = rows()[:200].reshape(4, 50, 2)
    np.testing.assert_allclose(
        jax.jit(call)(x).reshape(-1, 2), expected(rows()[:200]), rtol=1e-4, atol=1e-4
    )
    slope = lambda x: jnp.sum(map_rows(lambda t, r: r[0] * any_in_packet(r[1] > 9), TABLE, x))
    np.testing.assert_array_equal(jax.jit(jax.grad(slope))(rows()), 0)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_bits_are_counted(dtype):
    numbers = np.array([0, 1, 2, 3, 2**31 - 1, -1, -(2**31)] * 9, np.int64).astype(dtype)
    found = jax.jit(lambda x: map_rows(lambda _, n: jax.lax.population_count(n), 0.0, x))(numbers)
    np.testing.assert_array_equal(found, [int(n).bit_count() for n in numbers.view(np.uint32)])


# A table of tables: a row chooses one, and looks up in it.
GRIDS = np.random.default_rng(2).normal(size=(3, 5, 6, 7)).astype(np.float32)


def read_grid(grids, row):
    which, x = row
    grid = jax.lax.dynamic_index_in_dim(grids, which, keepdims=False)
    corner = (jnp.abs(x) * 3).astype(int)
    window = jax.lax.dynamic_slice(grid, (corner[0], corner[1], 0), (2, 2, 2))
    return jnp.sum(window) + grid[corner[1], 2, 3]


def test_look_ups_in_a_chosen_table_load_what_they_need():
    draw = np.random.default_rng(3)
    which, x = draw.integers(-1, 4, COUNT), draw.normal(size=(COUNT, 2)).astype(np.float32)
    operands = GRIDS, (which, x)
    found = jax.jit(lambda grids, rows: map_rows(read_grid, grids, rows))(*operands)
    alone = jax.vmap(read_grid, (None, 0))(*map(jnp.asarray, (GRIDS,)), (which, jnp.asarray(x)))
    np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-5)
    text = jax.jit(lambda g, r: map_rows(read_grid, g, r)).lower(*operands).as_text()
    assert "scenegraph_rows" in text
