"""The sizes of leaves, long and short, against numpy."""

import jax
import numpy as np
import pytest

from scenegraph.fitting._sizes import _LONG, sizes_of


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (_LONG // 4 + 5, 4)])
def test_sizes_are_those_of_numpy(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    sizes = jax.jit(sizes_of)({"x": x})
    np.testing.assert_allclose(sizes.largest, [np.max(np.abs(x), initial=0)])
    np.testing.assert_allclose(sizes.norm(), np.linalg.norm(x.astype(np.float64)), rtol=1e-6)


def test_leaves_of_all_lengths_are_measured_in_their_order():
    draw = np.random.default_rng(0)
    lengths = [64, 0, _LONG + 3, 1, 65, 1000, 7, _LONG - 1]
    leaves = [draw.normal(size=n, scale=n + 1).astype(np.float32) for n in lengths]
    leaves[4] = np.ones(65, np.float16)
    sizes = jax.jit(sizes_of)(leaves)
    wide = [leaf.astype(np.float64) for leaf in leaves]
    np.testing.assert_allclose(sizes.largest, [np.max(np.abs(x), initial=0) for x in wide])
    np.testing.assert_allclose(sizes.squares, [np.sum(x * x) for x in wide], rtol=1e-6)


@pytest.mark.parametrize("place", [0, 5000, -1])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen_wherever_it_is(place, bad):
    leaves = [np.ones(_LONG + 100, np.float32), np.ones(3, np.float32), np.ones(9000, np.float32)]
    leaves[0][place] = leaves[2][place] = bad
    np.testing.assert_array_equal(np.isfinite(sizes_of(leaves).largest), [False, True, False])
