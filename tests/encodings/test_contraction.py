"""All of space in a ball: against the paper's formula, automatic derivatives and random points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.encodings import contract_length, Contraction, expand_length
from scenegraph.rays import FullGaussian, Gaussian
from support.helpers import assert_close


PLACES = jnp.array(
    [[0, 0, 0], [0.3, -0.2, 0.5], [0.6, 0, 0.8], [0.0, 1.2, 0.1], [-3.0, 2.0, 7.0], [90.0, 0, 1]],
    jnp.float32,
)


def published(x):
    """Equation 10, place by place."""
    length = np.linalg.norm(x)
    return x if length <= 1 else (2 - 1 / length) * x / length


def test_places_are_contracted_as_published():
    found = jax.vmap(Contraction().point)(PLACES)
    assert_close(found, [published(x) for x in np.asarray(PLACES, float)], 1e-6)


def test_another_radius_scales_the_ball():
    halved = jax.vmap(Contraction(1.0).point)(PLACES)
    assert_close(halved, 0.5 * jax.vmap(Contraction().point)(PLACES), 1e-6)
    assert np.linalg.norm(halved, axis=1).max() < 1


@pytest.mark.parametrize("radius", [1.0, 2.0])
def test_derivatives_are_the_automatic_ones(radius):
    contraction = Contraction(radius)
    for place in PLACES:
        expected = jax.jacfwd(contraction.point)(place)
        assert_close(contraction.linear(place), expected, 1e-5, 1e-7)
        along = contraction.direction(place, jnp.array([0.2, -1.0, 0.4]))
        assert_close(along, expected @ np.array([0.2, -1.0, 0.4], np.float32), 1e-5, 1e-7)


def test_covariances_pass_the_linearised_map():
    contraction, direction = Contraction(), jnp.array([0.3, 1.1, -0.4])
    for place in PLACES:
        matrix = jax.jacfwd(contraction.point)(place)
        long = Gaussian(place, direction, 0.02, 0.003)
        expected = matrix @ long.covariance() @ matrix.T
        bent = contraction.gaussian(long)
        assert_close(bent.covariance(), expected, 1e-4, 1e-9)
        assert_close(bent.direction, matrix @ direction, 1e-5, 1e-7)
        full = FullGaussian(place, direction, long.covariance())
        assert_close(contraction.gaussian(full).covariance(), expected, 1e-4, 1e-9)


def test_random_points_of_a_small_gaussian_spread_as_the_contracted_one():
    """By Monte Carlo, beyond the unit ball."""
    place, direction = jnp.array([1.5, -2.0, 0.5]), jnp.array([0.6, 0.0, 0.8])
    gaussian = Gaussian(place, direction, 4e-4, 1e-4)
    root = np.linalg.cholesky(np.asarray(gaussian.covariance(), float))
    points = np.asarray(place) + np.random.default_rng(0).normal(size=(200_000, 3)) @ root.T
    length = np.linalg.norm(points, axis=1, keepdims=True)
    moved = (2 - 1 / length) / length * points
    bent = Contraction().gaussian(gaussian)
    assert_close(moved.mean(axis=0), bent.mean, 0, 1e-4)
    assert_close(np.cov(moved.T), bent.covariance(), 0.02, 3e-7)


def test_gradients_are_finite_in_the_middle_and_on_the_unit_ball():
    for place in PLACES[:3:2]:
        gradient = jax.grad(
            lambda x: jnp.sum(Contraction().gaussian(Gaussian(x, x + 1, 1, 1)).spread)
        )
        assert np.all(np.isfinite(gradient(jnp.asarray(place))))


def test_lengths_are_contracted_as_places_on_an_axis_and_back():
    lengths = jnp.array([-300.0, -2.0, -1.0, -0.4, 0.0, 0.7, 1.0, 5.0, 900.0])
    on_axis = jnp.stack([lengths, 0 * lengths, 0 * lengths], axis=1)
    contracted = contract_length(lengths)
    assert_close(contracted, jax.vmap(Contraction().point)(on_axis)[:, 0], 1e-6)
    assert_close(expand_length(contracted), lengths, 1e-3)


def test_a_ball_needs_a_radius():
    with pytest.raises(ValueError, match="`radius` must be positive; got 0"):
        Contraction(0.0)
