"""Encodings: the published numbers, and Monte Carlo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.encodings import IntegratedPositional, Positional
from scenegraph.rays import ConeBeam, FullGaussian, Gaussian
from support.helpers import (
    assert_close,
    assert_finite_gradients,
    assert_gradients,
    golden,
    golden_rays,
    random_covariance,
    sections,
)


def encode(encoding, means, covariances):
    """Of Gaussians `rays samples`, with any covariances."""

    def one(mean, covariance):
        return encoding(FullGaussian(mean, jnp.zeros(3), covariance))

    return jax.jit(jax.vmap(jax.vmap(one)))(means, covariances)


def diagonal(variances):
    return variances[..., None] * np.eye(3, dtype=variances.dtype)


def test_published_integrated_encoding():
    data = golden("mip_math")
    encoding, means = IntegratedPositional(0, 16), data["ipe.in_means"]
    diag = encode(encoding, means, diagonal(data["ipe.in_covs_diag"]))
    full = encode(encoding, means, data["ipe.in_covs_full"])
    assert_close(diag, data["ipe.diag.enc"], 0, 1e-4)
    assert_close(full, data["ipe.full.enc"], 0, 1e-4)


def test_published_integrated_encoding_from_rays():
    """The same numbers from the cones they belong to; a position's last bit makes a difference."""
    data = golden("mip_math")
    rays = jax.tree.map(lambda x: x[:10], golden_rays(data))
    edges = data["t_vals"][:10]
    cast = sections(ConeBeam(), rays, edges[:, :-1:4], edges[:, 1::4])
    encoded = jax.jit(jax.vmap(jax.vmap(IntegratedPositional(0, 16))))(cast)
    assert_close(encoded, data["ipe.diag.enc"], 0, 1e-3)


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_published_encoding_of_mixed_covariances(kind):
    data = golden("mip_math")
    spreads = {
        "diag": diagonal(data["ipe_mixed.in_cov_diag"]),
        "full": data["ipe_mixed.in_cov_full"],
    }
    encoded = encode(IntegratedPositional(0, 16), data["ipe_mixed.in_x"], spreads[kind])
    assert_close(encoded, data[f"ipe_mixed.{kind}.enc"], 0, 1e-4)


def test_published_encoding_of_some_degrees():
    data = golden("mip_math")
    spread = diagonal(data["ipe_mixed.in_cov_diag"])
    encoded = encode(IntegratedPositional(2, 6), data["ipe_mixed.in_x"], spread)
    assert_close(encoded, data["ipe_mixed.diag_deg2to6.enc"], 0, 1e-4)


@pytest.mark.parametrize(("degree", "identity"), [(4, True), (4, False), (10, True)])
def test_published_positional_encoding(degree, identity):
    data = golden("mip_math")
    encoded = jax.vmap(Positional(0, degree, identity).encode)(jnp.asarray(data["pos_enc.in_x"]))
    suffix = "identity" if identity else "noidentity"
    assert_close(encoded, data[f"pos_enc.deg0to{degree}.{suffix}"], 0, 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_integrated_encoding_is_an_expectation(seed):
    """Half of the features are means of sines over the Gaussian, half of cosines."""
    rng = np.random.default_rng(seed)
    mean, spread = rng.normal(size=3), 0.3 * random_covariance(seed)
    gaussian = FullGaussian(jnp.asarray(mean), jnp.zeros(3), jnp.asarray(spread))
    draws = rng.multivariate_normal(mean, spread, 400_000)
    angles = (draws[:, None, :] * 2.0 ** np.arange(-1, 4)[:, None]).reshape(len(draws), -1)
    expected = np.concatenate([np.sin(angles).mean(0), np.cos(angles).mean(0)])
    assert_close(IntegratedPositional(-1, 4)(gaussian), expected, 0, 6e-3)


def test_factored_and_full_gaussians_agree():
    gaussian = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.3, 0.05)
    full = FullGaussian(gaussian.mean, gaussian.direction, gaussian.covariance())
    encoding = IntegratedPositional(0, 8)
    assert_close(encoding(gaussian), encoding(full), 0, 1e-6)


def test_without_spread_integration_changes_nothing():
    point = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0, 0)
    integrated, plain = IntegratedPositional(0, 10), Positional(0, 10, identity=False)
    assert_close(integrated(point), plain(point), 0, 5e-6)


@pytest.mark.parametrize(
    "encoding",
    [
        IntegratedPositional(0, 16),
        IntegratedPositional(2, 6),
        Positional(0, 10),
        Positional(1, 4, False),
    ],
)
def test_size_is_the_number_of_features(encoding):
    gaussian = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.3, 0.05)
    assert encoding(gaussian).shape == (encoding.size,)


def test_gradients_are_finite_for_points_and_clouds():
    def encode(mean, along, across):
        return IntegratedPositional(0, 16)(Gaussian(mean, jnp.ones(3), along, across))

    for spread in (0.0, 1e-30, 1e30):
        assert_finite_gradients(encode, jnp.ones(3), jnp.asarray(spread), jnp.asarray(spread))


def test_gradients(x64):
    gaussian = Gaussian([0.3, -0.2, 0.5], [0.2, -1.1, 0.4], 0.03, 0.05)
    assert_gradients(IntegratedPositional(0, 4), gaussian)
    assert_gradients(Positional(0, 4).encode, gaussian.mean)
