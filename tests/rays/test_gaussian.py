"""The factored Gaussian and its moves between frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.rays import FullGaussian, Gaussian, transform_gaussian
from support.helpers import (
    assert_close,
    assert_finite_gradients,
    assert_gradients,
    covariances,
    golden,
)


SIMILARITIES = {
    "similarity": sg.Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], 2.5),
    "mirror": sg.Similarity([0, 0, 1], [1, 0, 0, 1], -0.5),
    "pose": sg.Pose.look_at([3, 2, 1], [0, 0, 0], [0, 0, 1]),
    "inverse": sg.Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], 2.5).inverse(),
}
SHEAR = jnp.array([[1.0, 0.4, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 0.5]])


def some_gaussian() -> Gaussian:
    return Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.3, 0.05)


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_lift(kind):
    """Published numbers; the last direction is zero."""
    data = golden("mip_math")
    inputs = [jnp.asarray(data[f"lift.in_{name}"]) for name in ("d", "t_mean", "t_var", "r_var")]
    per_ray = jax.vmap(
        lambda d, t, along, across: Gaussian(t * d, d, along, across), (None, 0, 0, 0)
    )
    lifted = jax.vmap(per_ray)(*inputs)
    assert not np.any(inputs[0][-1])
    assert_close(lifted.mean, data[f"lift.{kind}.mean"])
    assert_close(covariances(lifted, kind), data[f"lift.{kind}.cov"])


def test_variance_is_the_diagonal_of_the_covariance():
    gaussian = some_gaussian()
    assert_close(gaussian.variance(), jnp.diagonal(gaussian.covariance()), 1e-6)


def test_along_and_across_are_the_eigenvalues():
    gaussian = some_gaussian()
    length = jnp.linalg.norm(gaussian.direction)
    expected = [0.05, 0.05, 0.3 * length**2]
    assert_close(jnp.linalg.eigvalsh(gaussian.covariance()), expected, 1e-6)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_similarity_keeps_the_factored_form(name):
    transform, gaussian = SIMILARITIES[name], some_gaussian()
    moved = transform_gaussian(transform, gaussian)
    full = sg.Affine(transform.linear(), transform.offset())
    expected = transform_gaussian(full, gaussian)
    assert type(moved) is Gaussian and type(expected) is FullGaussian
    assert_close(moved.mean, expected.mean, 1e-6)
    assert_close(moved.direction, expected.direction, 1e-6)
    assert_close(moved.covariance(), expected.covariance(), 3e-6)


def test_affine_moves_the_covariance():
    gaussian = some_gaussian()
    points = np.random.default_rng(0).multivariate_normal(
        gaussian.mean, gaussian.covariance(), 400_000
    )
    moved = transform_gaussian(sg.Affine(SHEAR, [1.0, 0.0, 2.0]), gaussian)
    points = points @ np.asarray(SHEAR).T + [1, 0, 2]
    assert_close(moved.mean, points.mean(0), 4e-3)
    assert_close(moved.covariance(), np.cov(points.T), 1e-2)


def test_affine_and_back():
    gaussian, transform = some_gaussian(), sg.Affine(SHEAR, [1.0, 0.0, 2.0])
    back = transform_gaussian(transform.inverse(), transform_gaussian(transform, gaussian))
    assert_close(back.mean, gaussian.mean)
    assert_close(back.covariance(), gaussian.covariance())


def test_gradients_are_finite_at_the_zero_direction():
    def moments(direction, along, across):
        gaussian = Gaussian(jnp.ones(3), direction, along, across)
        return gaussian.variance(), gaussian.covariance()

    assert_finite_gradients(moments, jnp.zeros(3), jnp.asarray(0.3), jnp.asarray(0.1))


@pytest.mark.parametrize("name", SIMILARITIES)
def test_gradients(name, x64):
    transform, gaussian = jax.tree.map(
        lambda x: jnp.asarray(x, jnp.float64), (SIMILARITIES[name], some_gaussian())
    )

    def covariance(gaussian):
        moved = transform_gaussian(transform, gaussian)
        return moved.mean, moved.covariance()

    assert_gradients(covariance, gaussian)
