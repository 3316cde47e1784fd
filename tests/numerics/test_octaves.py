import jax
import jax.numpy as jnp
import numpy as np

from scenegraph.numerics import octaves, safe_sin
from support.helpers import assert_close


def angles(x, first, last):
    return np.asarray(x, np.float64) * 2.0 ** np.arange(first, last)[:, None]


def test_octaves_are_sines_and_cosines():
    x = jnp.asarray(np.random.default_rng(0).uniform(-4, 4, 3000), jnp.float32)
    sines, cosines = octaves(x, -2, 16)
    assert_close(sines, np.sin(angles(x, -2, 16)), 0, 2e-6)
    assert_close(cosines, np.cos(angles(x, -2, 16)), 0, 2e-6)


def test_octaves_are_no_worse_than_the_published_sines():
    x = jnp.asarray(np.random.default_rng(1).uniform(-4, 4, 3000), jnp.float32)
    truth = np.sin(angles(x, 0, 16))
    published = safe_sin(x * 2.0 ** jnp.arange(16)[:, None])
    assert np.abs(octaves(x, 0, 16)[0] - truth).max() < np.abs(published - truth).max()


def test_derivatives(x64):
    x = jnp.asarray([0.3, -1.2])
    step = 1e-6
    above, below = octaves(x + step, 0, 5), octaves(x - step, 0, 5)
    by_hand = [(a - b) / (2 * step) for a, b in zip(above, below, strict=True)]
    _, tangents = jax.jvp(lambda x: octaves(x, 0, 5), (x,), (jnp.ones(2),))
    assert_close(tangents[0], by_hand[0], 0, 1e-7)
    assert_close(tangents[1], by_hand[1], 0, 1e-7)
