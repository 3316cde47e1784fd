"""Orders of numbers against numpy."""

import jax
import numpy as np
import pytest

from scenegraph.numerics import most_number, order_by_number, order_longest_first


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
