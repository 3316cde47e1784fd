"""Orders of numbers against numpy, and places along Hilbert's curve against what defines it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics import order_by_number
from scenegraph.numerics._order import _bits_of_place, _hilbert


@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000, 5000])
def test_equal_numbers_stay_in_order(count):
    rng = np.random.default_rng(count)
    for most in (3, 2 ** (32 - _bits_of_place(count)) - 1):
        numbers = rng.integers(0, most + 1, count, dtype=np.uint32)
        numbers[0] = most
        order = jax.jit(order_by_number)(numbers)
        np.testing.assert_array_equal(order, np.argsort(numbers, kind="stable"))


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 3), (2, 8), (3, 1), (3, 2), (3, 5)])
def test_the_curve_goes_from_neighbour_to_neighbour(dimensions, bits):
    # It visits every cell of a cube once.
    cells = np.stack(np.meshgrid(*[np.arange(2**bits)] * dimensions), -1).reshape(-1, dimensions)
    code = np.asarray(_hilbert(list(jnp.asarray(cells.T, jnp.uint32)), bits))
    assert sorted(code) == list(range(2 ** (bits * dimensions)))
    steps = np.abs(np.diff(cells[np.argsort(code)], axis=0))
    np.testing.assert_array_equal(steps.sum(axis=1), 1)
