"""Where rays look: the published numbers, and what jitter must keep."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rays import ConeBeam, CylinderBeam
from scenegraph.samplers import (
    Disparity,
    resample,
    resampling_weights,
    sample_edges,
    strata,
    stratify,
    Uniform,
)
from support.helpers import assert_close, covariances, golden, golden_rays, sections


BEAMS = {"cone": ConeBeam(), "cylinder": CylinderBeam()}
SPACINGS = {"linear": Uniform(), "lindisp": Disparity()}
NEAR, FAR = jnp.asarray(2.0), jnp.asarray(6.0)


def assert_sections(beam, edges, name):
    data = golden("mip_math")
    cast = sections(BEAMS[beam], golden_rays(data), edges[:, :-1], edges[:, 1:])
    assert_close(cast.mean, data[f"{name}.means"])
    assert_close(covariances(cast, "diag"), data[f"{name}.covs"])


@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("spacing", SPACINGS)
def test_published_samples(spacing, beam):
    data, name = golden("mip_math"), f"sample.{spacing}.{beam}"
    rays = golden_rays(data)
    edges = jax.vmap(lambda ray: sample_edges(SPACINGS[spacing], ray.near, ray.far, 16))(rays)
    assert_close(edges, data[f"{name}.t_vals"], 1e-6)
    assert_sections(beam, edges, name)


def test_published_random_samples():
    data = golden("mip_math")
    regular = Uniform()(NEAR, FAR, 16)
    edges = jax.vmap(lambda u: stratify(regular, u))(jnp.asarray(data["sample_random.t_rand"]))
    assert_close(edges, data["sample_random.t_vals"], 1e-6)


@pytest.mark.parametrize(
    ("padding", "beam"), [("0.01", "cone"), ("0.01", "cylinder"), ("0", "cone")]
)
def test_published_resampling(padding, beam):
    data, name = golden("mip_math"), f"resample.pad{padding}.{beam}"

    def next_edges(edges, weights):
        return resample(edges, resampling_weights(weights, float(padding)), 16)

    edges = jax.vmap(next_edges)(data["t_vals"], data["resample.in_weights"])
    assert_close(edges, data[f"{name}.t_vals"], 0, 3e-5)
    assert_sections(beam, edges, name)


def test_spacings_are_even_in_t_and_in_one_over_t():
    assert_close(jnp.diff(Uniform()(NEAR, FAR, 8)), np.full(8, 0.5), 1e-6)
    assert_close(jnp.diff(1 / Disparity()(NEAR, FAR, 8)), np.full(8, -1 / 24), 1e-5)


@pytest.mark.parametrize("spacing", SPACINGS)
@pytest.mark.parametrize("seed", range(3))
def test_jittered_samples_are_sorted_and_inside(spacing, seed):
    key = jax.random.key(seed)
    edges = sample_edges(SPACINGS[spacing], NEAR, FAR, 64, key=key)
    assert np.all(np.diff(edges) >= 0) and edges[0] >= 2 and edges[-1] <= 6
    assert not np.array_equal(edges, sample_edges(SPACINGS[spacing], NEAR, FAR, 64))


def test_jitter_moves_no_fence_post_past_the_middle():
    regular = Uniform()(NEAR, FAR, 4)
    assert_close(stratify(regular, jnp.zeros(5)), [2, 2.5, 3.5, 4.5, 5.5], 1e-6)
    assert_close(stratify(regular, jnp.ones(5)), [2.5, 3.5, 4.5, 5.5, 6], 1e-6)


@pytest.mark.parametrize("count", [1, 2, 17, 129])
def test_strata_hold_one_number_each(count):
    u = strata(count, jnp.float32, key=jax.random.key(count))
    np.testing.assert_array_equal(
        np.floor(np.asarray(u, np.float64) * count + 1e-6), np.arange(count)
    )
    assert u[-1] < 1


def test_even_strata_reach_both_ends():
    u = strata(5, jnp.float32)
    assert u[0] == 0 and u[-1] < 1
    assert_close(u, [0, 0.25, 0.5, 0.75, 1], 1e-6)


def test_random_draws_follow_the_histogram():
    edges, weights = jnp.array([2.0, 3.0, 5.0, 6.0]), jnp.array([1.0, 6.0, 3.0])
    drawn = resample(edges, weights, 9999, key=jax.random.key(0))
    shares = np.histogram(drawn, edges)[0] / 10000
    assert_close(shares, [0.1, 0.6, 0.3], 0, 1e-3)


def test_resampling_weights_leave_nothing_out():
    assert_close(resampling_weights(jnp.array([0.0, 0.0, 1.0, 0.0])), [0.01, 0.51, 1.01, 0.51])
