"""`loop_rows` against a loop in Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rows import map_rows
from scenegraph.rowwise import loop_rows


def collatz(offset, state):
    """One step of a walk whose length differs from number to number."""
    n, steps = state
    following = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
    return (following, steps + 1 + offset), following != 1


def walk(n, offset=0):
    return loop_rows(collatz, jnp.asarray(offset), (n, jnp.zeros((), jnp.int32)), n > 1)[1]


def expected(n):
    steps = 0
    while n > 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


@pytest.mark.parametrize("count", [1, 7, 255, 256, 257, 700])
def test_every_row_takes_its_own_steps(count):
    numbers = jnp.arange(1, count + 1)
    steps = jax.jit(jax.vmap(walk))(numbers)
    np.testing.assert_array_equal(steps, [expected(int(n)) for n in numbers])


def test_one_row_is_a_loop():
    assert int(walk(jnp.array(27))) == expected(27)


def test_operands_of_rows_and_of_all():
    numbers = jnp.arange(1, 20)
    own = jax.vmap(walk)(numbers, numbers)
    shared = jax.vmap(walk, (0, None))(numbers, 1)
    lengths = np.array([expected(int(n)) for n in numbers])
    np.testing.assert_array_equal(own, lengths * (1 + np.asarray(numbers)))
    np.testing.assert_array_equal(shared, 2 * lengths)


def test_maps_within_maps():
    numbers = jnp.arange(1, 13).reshape(3, 4)
    nested = jax.jit(jax.vmap(jax.vmap(walk)))(numbers)
    by_rows = jax.jit(lambda x: map_rows(lambda _, n: walk(n), None, x))(numbers.reshape(-1))
    lengths = [expected(int(n)) for n in numbers.reshape(-1)]
    np.testing.assert_array_equal(nested.reshape(-1), lengths)
    np.testing.assert_array_equal(by_rows, lengths)


def test_rows_that_do_not_begin_keep_their_state():
    state = jax.vmap(lambda n: loop_rows(collatz, jnp.array(0), (n, n), n > 99))(jnp.arange(9))
    np.testing.assert_array_equal(state[1], np.arange(9))
