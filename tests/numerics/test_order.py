"""Orders of numbers against numpy, and places along Hilbert's curve against what defines it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import most_number, order_by_number, order_longest_first
from scenegraph.numerics._order import _hilbert


@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000, 5000])
def test_equal_numbers_stay_in_order(count):
    rng = np.random.default_rng(count)
    for most in (3, most_number(count)):
        numbers = rng.integers(0, most + 1, count, dtype=np.uint32)
        numbers[0] = most
        order = jax.jit(order_by_number)(numbers)
        np.testing.assert_array_equal(order, np.argsort(numbers, kind="stable"))


def test_longest_come_first_and_what_fits_no_word_counts_as_equal():
    lengths = np.array([0, 7, 2**31 - 1, 3, 7, 2**29, 2**31 - 2], np.int32)
    # Seven places take three bits of a word.
    assert most_number(7) == 2**29 - 1
    assert jax.jit(order_longest_first)(lengths).tolist() == [2, 5, 6, 1, 4, 3, 0]


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 3), (2, 8), (3, 1), (3, 2), (3, 5)])
def test_the_curve_goes_from_neighbour_to_neighbour(dimensions, bits):
    # It visits every cell of a cube once.
    cells = np.stack(np.meshgrid(*[np.arange(2**bits)] * dimensions), -1).reshape(-1, dimensions)
    code = np.asarray(_hilbert(list(jnp.asarray(cells.T, jnp.uint32)), bits))
    assert sorted(code) == list(range(2 ** (bits * dimensions)))
    steps = np.abs(np.diff(cells[np.argsort(code)], axis=0))
    np.testing.assert_array_equal(steps.sum(axis=1), 1)
