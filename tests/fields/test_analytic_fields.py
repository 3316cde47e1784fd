"""Analytic fields against Monte Carlo averages over the sample."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.fields import ConstantFog, GaussianBlob
from scenegraph.rays import FullGaussian, Gaussian
from support.helpers import (
    assert_close,
    assert_finite_gradients,
    assert_gradients,
    random_covariance,
)


BLOB = GaussianBlob(center=[0.2, -0.1, 0.3], radius=0.6, extinction=5.0, rgb=[0.9, 0.5, 0.1])


def density_at(points):
    """The blob's density at points, in numpy."""
    distance = np.linalg.norm(points - np.asarray(BLOB.center), axis=-1)
    return 5.0 * np.exp(-0.5 * (distance / 0.6) ** 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0.01, 0.3, 3.0])
def test_blob_is_averaged_over_the_sample(seed, size):
    rng = np.random.default_rng(seed)
    mean, spread = rng.normal(scale=0.5, size=3), size * random_covariance(seed)
    draws = density_at(rng.multivariate_normal(mean, spread, 400_000))
    gaussian = FullGaussian(jnp.asarray(mean), jnp.ones(3), jnp.asarray(spread))
    error = 5 * draws.std() / np.sqrt(len(draws))
    assert_close(BLOB.density(gaussian), draws.mean(), 1e-5, error)


def test_blob_at_a_point():
    points = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    densities = jax.vmap(lambda x: BLOB.density(Gaussian(x, jnp.ones(3), 0.0, 0.0)))(points)
    assert_close(densities, density_at(points), 3e-6)


def test_blob_along_and_across():
    factored = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.3, 0.05)
    full = FullGaussian(factored.mean, factored.direction, factored.covariance())
    assert_close(BLOB.density(factored), BLOB.density(full), 1e-6)


def test_fog_is_the_same_everywhere():
    fog, gaussian = ConstantFog(0.7, [1, 0, 0]), Gaussian([9, 9, 9], [1, 0, 0], 1, 1)
    medium = fog(gaussian, jnp.ones(3))
    assert_close(medium.density, 0.7)
    assert_close(medium.rgb, [1, 0, 0])
    assert_close(fog.density(gaussian), medium.density)


def test_blob_answers_twice_the_same():
    gaussian = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.3, 0.05)
    medium = BLOB(gaussian, jnp.ones(3))
    assert_close(medium.density, BLOB.density(gaussian), 0)
    assert_close(medium.rgb, [0.9, 0.5, 0.1])


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_gradients_are_finite_at_the_centre_and_far_away(offset):
    def density(blob, mean, along, across):
        return blob.density(Gaussian(mean, jnp.array([0.0, 0.0, 1.0]), along, across))

    zero = jnp.zeros(())
    assert_finite_gradients(density, BLOB, BLOB.center + offset, zero, zero)


def test_gradients(x64):
    blob, gaussian = jax.tree.map(
        lambda x: jnp.asarray(x, jnp.float64),
        (BLOB, Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.3, 0.05)),
    )
    assert_gradients(lambda blob, gaussian: blob.density(gaussian), blob, gaussian)
