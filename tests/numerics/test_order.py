"""Places along Hilbert's curve, which visits every cell of a cube, from neighbour to neighbour."""

import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.numerics._order import _hilbert


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 1), (2, 3), (2, 8), (3, 1), (3, 2), (3, 5)])
def test_the_curve_goes_from_neighbour_to_neighbour(dimensions, bits):
    cells = np.stack(np.meshgrid(*[np.arange(2**bits)] * dimensions), -1).reshape(-1, dimensions)
    code = np.asarray(_hilbert(list(jnp.asarray(cells.T, jnp.uint32)), bits))
    assert sorted(code) == list(range(2 ** (bits * dimensions)))
    steps = np.abs(np.diff(cells[np.argsort(code)], axis=0))
    np.testing.assert_array_equal(steps.sum(axis=1), 1)
