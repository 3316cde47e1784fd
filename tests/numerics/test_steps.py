"""Step functions against the published numbers, a naive loop, and what must always hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from scenegraph.numerics import cumulative, inverse_cdf, max_blur, midpoints
from scenegraph.samplers import jittered_strata, strata
from support.helpers import assert_close, assert_finite_gradients, assert_gradients, golden


PIECES = 8
weight = st.sampled_from([0.0, 0.0, 1e-9, 1e-3, 0.5, 1.0, 1e4])
weights_lists = st.lists(weight, min_size=PIECES, max_size=PIECES)
gaps_lists = st.lists(st.sampled_from([0.0, 1e-6, 0.1, 3.0]), min_size=PIECES, max_size=PIECES)
draws_lists = st.lists(st.floats(0, 1, exclude_max=True, width=32), min_size=6, max_size=6)


@jax.jit
def draw_from(bins, weights, u):
    return jax.vmap(lambda e, w, u: inverse_cdf(e, cumulative(w), u))(bins, weights, u)


@pytest.mark.parametrize("count", [17, 33])
def test_published_quantiles(count):
    data = golden("mip_math")
    u = jnp.broadcast_to(strata(count, jnp.float32), (24, count))
    drawn = draw_from(data["pdf.in_bins"], data["pdf.in_weights"], u)
    assert_close(drawn, data[f"pdf.det.n{count}"], 0, 3e-5)


def test_published_random_draws():
    data = golden("mip_math")
    u = jax.jit(jax.vmap(jittered_strata))(data["pdf_random.jitter"])
    drawn = draw_from(data["pdf.in_bins"], data["pdf.in_weights"], u)
    assert_close(drawn, data["pdf_random.n17"], 0, 3e-5)


def naive_inverse_cdf(edges, weights, u):
    """Walks through the histogram until the mass on the left is `u`."""
    total, passed = float(sum(weights)), 0.0
    for left, right, weight in zip(edges[:-1], edges[1:], weights, strict=True):
        mass = float(weight) / total
        if mass > 0 and u < passed + mass:
            return left + (right - left) * (u - passed) / mass
        passed += mass
    return edges[-1]


@pytest.mark.parametrize("seed", range(5))
def test_inverse_cdf_against_a_loop(seed, x64):
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.uniform(2, 6, 10))
    weights = rng.uniform(size=9) * (rng.uniform(size=9) > 0.4)
    u = rng.uniform(size=50)
    actual = jax.jit(inverse_cdf)(edges, jax.jit(cumulative)(weights), u)
    assert_close(actual, [naive_inverse_cdf(edges, weights, x) for x in u], 1e-10)


def test_inverse_cdf_of_one_interval():
    u = jnp.array([0.0, 0.25, 0.75])
    drawn = jax.jit(inverse_cdf)(jnp.array([2.0, 4.0]), jnp.array([0.0, 1.0]), u)
    assert_close(drawn, [2.0, 2.5, 3.5])


@given(weights_lists, gaps_lists, draws_lists)
def test_inverse_cdf_is_sorted_and_stays_inside(weights, gaps, u):
    edges = np.cumsum([2.0, *gaps]).astype(np.float32)
    cdf = jax.jit(cumulative)(jnp.array(weights, jnp.float32))
    drawn = jax.jit(inverse_cdf)(jnp.asarray(edges), cdf, jnp.array(sorted(u), jnp.float32))
    drawn = np.asarray(drawn)
    rounding = 4 * np.spacing(edges[-1])
    assert np.all(np.diff(drawn) >= -rounding)
    assert drawn[0] >= edges[0] - rounding and drawn[-1] <= edges[-1] + rounding


@given(weights_lists)
def test_cumulative_is_sorted_from_zero_to_one(weights):
    cdf = np.asarray(jax.jit(cumulative)(jnp.array(weights, jnp.float32)))
    assert cdf.shape == (PIECES + 1,) and cdf[0] == 0 and cdf[-1] == 1
    assert np.all(np.diff(cdf) >= 0)


def test_cumulative_of_nothing_is_even():
    assert_close(jax.jit(cumulative)(jnp.zeros(4)), [0, 0.25, 0.5, 0.75, 1], 1e-6)


def test_max_blur_is_an_envelope():
    assert_close(jax.jit(max_blur)(jnp.array([0.0, 0.0, 4.0, 0.0, 1.0])), [0, 2, 4, 2.5, 1])


def test_midpoints():
    assert_close(midpoints(jnp.array([0.0, 2.0, 3.0])), [1.0, 2.5])


@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
def test_gradients_are_finite(weights):
    def drawn(edges, weights):
        return inverse_cdf(edges, cumulative(weights), jnp.array([0.0, 0.3, 0.999]))

    assert_finite_gradients(drawn, jnp.array([2.0, 3.0, 3.0, 4.0]), jnp.array(weights))


def test_gradients(x64):
    def drawn(edges, weights):
        return inverse_cdf(edges, cumulative(weights), jnp.array([0.1, 0.4, 0.8]))

    assert_gradients(drawn, jnp.array([2.0, 3.0, 3.5, 4.0]), jnp.array([0.2, 1.0, 0.7]))
