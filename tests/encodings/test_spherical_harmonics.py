"""Spherical harmonics against quadrature over the sphere, scipy, and rotations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import sph_harm_y

import support.quadrature as brute
from scenegraph.encodings import SphericalHarmonics
from support.helpers import assert_close, assert_gradients


def directions(count=50, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def features(vectors, degree=4):
    return np.asarray(jax.jit(jax.vmap(SphericalHarmonics(degree)))(vectors))


def scipy_feature(band, order, vectors):
    """The real one of a band and an order, from scipy's complex ones."""
    x, y, z = vectors.T
    value = sph_harm_y(band, abs(order), np.arccos(z), np.arctan2(y, x))
    part = value.imag if order < 0 else value.real
    return part * (np.sqrt(2) if order else 1)


def test_features_are_those_of_scipy(x64):
    """Band by band, each from order `-band` to `band`."""
    pairs = [(band, order) for band in range(4) for order in range(-band, band + 1)]
    expected = np.stack([scipy_feature(*pair, directions()) for pair in pairs], axis=1)
    assert_close(features(directions()), expected, 1e-7)


def test_features_are_orthonormal_over_the_sphere(x64):
    """Gauss-Legendre in height times even angles: exact for such polynomials."""
    heights, weights = np.polynomial.legendre.leggauss(8)
    angles = 2 * np.pi * np.arange(16) / 16
    z, angle = np.meshgrid(heights, angles, indexing="ij")
    across = np.sqrt(1 - z**2)
    sphere = np.stack([across * np.cos(angle), across * np.sin(angle), z], -1).reshape(-1, 3)
    values = features(sphere)
    product = values.T @ (np.repeat(weights * 2 * np.pi / 16, 16)[:, None] * values)
    assert_close(product, np.eye(16), 1e-7)


def test_length_of_a_band_does_not_depend_on_the_direction():
    """Nor, then, on a rotation: it is `sqrt((2 band + 1) / 4 pi)`."""
    values = features(directions() @ brute.turn([1.0, 2.0, -0.5], 0.7).T)
    for band in range(4):
        norms = np.linalg.norm(values[:, band**2 : (band + 1) ** 2], axis=1)
        assert_close(norms, np.full(50, np.sqrt((2 * band + 1) / (4 * np.pi))), 1e-5)


def test_length_of_the_direction_does_not_matter():
    assert_close(features(7.5 * directions()), features(directions()), 1e-5)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_fewer_bands_are_the_first_ones(degree):
    assert SphericalHarmonics(degree).size == degree**2
    assert_close(features(directions(), degree), features(directions())[:, : degree**2], 0, 1e-7)


def test_gradients(x64):
    assert_gradients(SphericalHarmonics(), jnp.array([0.3, -0.7, 1.1]))


@pytest.mark.parametrize("degree", [0, 5])
def test_impossible_degrees_are_refused(degree):
    with pytest.raises(ValueError, match=f"between 1 and 4; got {degree}"):
        SphericalHarmonics(degree)
