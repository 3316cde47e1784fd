"""Median depths and mean normals against loops over samples, one after the other."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.compositing import (
    composite,
    composite_layers,
    composite_packed,
    composite_with_layers,
    interval_weights,
    median_depth,
    packed_details,
)
from scenegraph.rays import Layers, Medium, Radiance, Ray, Span
from support.helpers import assert_close, assert_finite_gradients


# Compiled as a whole: operation by operation takes several times as long.
composite, composite_layers, composite_with_layers, interval_weights, median_depth = map(
    eqx.filter_jit,
    (composite, composite_layers, composite_with_layers, interval_weights, median_depth),
)
composite_packed, packed_details = map(eqx.filter_jit, (composite_packed, packed_details))
RNG = np.random.default_rng(0)
UP = jnp.array([0.0, 0.0, 1.0])


def naive_median(weights, edges):
    """Walks along the ray until half of the opacity is behind."""
    half, met = sum(weights) / 2, 0.0
    for weight, near, far in zip(weights, edges[:-1], edges[1:], strict=True):
        if met + weight >= half:
            return near + (half - met) / weight * (far - near)
        met += weight
    raise AssertionError("the opacity is never reached")


@pytest.mark.parametrize("seed", range(4))
def test_median_is_where_a_walk_ends(seed):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(size=9) * rng.choice([0, 1, 1e-6], size=9, p=[0.4, 0.4, 0.2])
    weights[rng.integers(9)] = 0.3
    edges = np.cumsum(rng.uniform(0.1, 1, size=10))
    found = median_depth(jnp.asarray(weights), jnp.asarray(edges), jnp.asarray(99.0))
    assert_close(found, naive_median(weights, edges), 1e-5)


def test_median_of_nothing():
    edges = jnp.array([1.0, 2.0, 3.0])
    assert float(median_depth(jnp.zeros(2), edges, jnp.asarray(7.0))) == 7.0
    assert_finite_gradients(lambda w: median_depth(w, edges, jnp.asarray(7.0)), jnp.zeros(2))
    assert_finite_gradients(lambda w: median_depth(w, edges, jnp.asarray(7.0)), jnp.ones(2))


def test_median_does_not_lie_between_two_things():
    """The mean does: a ray that grazes an edge sees half of the thing, and half of the wall."""
    weights, edges = jnp.array([0.6, 0.0, 0.0, 0.4]), jnp.array([1.0, 1.1, 5.0, 9.0, 9.1])
    assert 1 < float(median_depth(weights, edges, edges[-1])) < 1.1


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def media(count):
    normals = unit(RNG.normal(size=(count, 3)))
    return Medium(jnp.asarray(RNG.uniform(0, 2, count)), jnp.ones((count, 3)), jnp.asarray(normals))


def test_mean_normal_is_a_weighted_sum():
    medium, edges = media(6), jnp.linspace(2.0, 3.0, 7)
    seen = composite(medium, edges, UP)
    total = sum(float(w) * np.asarray(n) for w, n in zip(seen.weights, medium.normal, strict=True))
    assert_close(seen.normal, unit(total), 1e-5)
    assert_close(seen.median_depth, naive_median(np.asarray(seen.weights, float), edges), 1e-5)


def test_nobody_asked():
    seen = composite(Medium(jnp.ones(3), jnp.ones((3, 3))), jnp.linspace(0.0, 1.0, 4), UP)
    assert seen.normal is None and seen.median_depth is None


RAY = Ray(jnp.zeros(3), UP, UP, jnp.zeros((2, 3)), jnp.zeros((2, 3)), 0.0, 9.0)


def layers(t, alpha, normals=None):
    normals = jnp.tile(-UP, (len(t), 1)) if normals is None else normals
    return Layers(t, alpha, jnp.ones((len(t), 3)), jnp.zeros((), int), normals)


@pytest.mark.parametrize(
    "alpha, expected",
    [([0.6, 1, 0], 1.0), ([0.3, 0.2, 1.0], 3.0), ([0.4, 0.5, 0], 1.0), ([0.0, 0, 0], 9.0)],
)
def test_median_layer(alpha, expected):
    """Weights of .3, .14 and .56: the third reaches a half. Of .4 and .3, the first reaches .35."""
    assert float(composite_layers(layers([1.0, 2.0, 3.0], alpha), RAY).median_depth) == expected


def quadrature_median(density, edges, t, alpha, steps=400_000):
    """The first of many places by which half of the light that is stopped at all has been."""
    places = np.linspace(edges[0], edges[-1], steps)
    inside = np.clip(np.searchsorted(edges, places, side="right") - 1, 0, len(density) - 1)
    depth = np.concatenate([[0], np.cumsum(density[inside][1:] * np.diff(places))])
    left = np.exp(-depth)
    for where, stop in zip(t, alpha, strict=True):
        left = np.where(places >= where, left * (1 - stop), left)
    return places[np.argmax(1 - left >= (1 - left[-1]) / 2)]


@pytest.mark.parametrize("seed", range(6))
def test_median_of_media_with_layers(seed):
    """Against many small steps. Inside an interval, opacity is taken to grow linearly."""
    rng = np.random.default_rng(seed)
    edges, density = np.linspace(1, 3, 41), rng.uniform(0, 1.5, 40) * (rng.random(40) < 0.5)
    t, alpha = np.sort(rng.uniform(1, 3, 3)), rng.uniform(0, 0.6, 3)
    # The last layer is not touched; such ones may be anywhere.
    behind = layers(jnp.asarray([*t, 0.1]), jnp.asarray([*alpha, 0.0]))
    medium = Medium(jnp.asarray(density), jnp.ones((40, 3)), jnp.tile(UP, (40, 1)))
    seen = composite_with_layers(medium, jnp.asarray(edges), RAY, behind)
    assert_close(seen.median_depth, quadrature_median(density, edges, t, alpha), 0, 1e-3)


def test_normals_of_media_with_layers():
    medium, edges = media(5), jnp.linspace(1.0, 2.0, 6)
    normal = jnp.asarray(unit(RNG.normal(size=(1, 3))))
    seen = composite_with_layers(medium, edges, RAY, layers([3.0], jnp.array([0.7]), normal))
    wall = 0.7 * np.exp(-np.sum(medium.density) * 0.2)
    total = np.asarray(seen.weights) @ np.asarray(medium.normal) + wall * np.asarray(normal[0])
    assert_close(seen.normal, unit(total), 1e-5)


def test_listed_rays_are_as_rows():
    """Three rays with five, no and two samples in a list that has a place more."""
    counts, density, normals = (5, 0, 2), RNG.uniform(0.2, 3, 8), unit(RNG.normal(size=(8, 3)))
    ray = np.repeat([0, 1, 2], counts).tolist() + [2]
    near = np.asarray([1.0, 1.2, 1.5, 1.6, 2.0, 3.0, 3.3, 5.0])
    far = near + 0.1
    depth = np.where(np.arange(8) < 7, density * 0.1, 0)
    spans = Span(jnp.zeros(3), jnp.full(3, 9.0))
    arrays = [jnp.asarray(x, jnp.float32) for x in (depth, near, far, normals)]
    medium = Medium(jnp.asarray(density), jnp.ones((8, 3)))
    seen = composite_packed(
        medium, arrays[0], (arrays[1] + arrays[2]) / 2, jnp.asarray(ray), spans, most=5
    )
    parts = Span(arrays[1], arrays[2])
    seen = packed_details(seen, arrays[3], arrays[0], parts, jnp.asarray(ray), most=5)
    assert isinstance(seen, Radiance)
    for number, start in ((0, 0), (2, 5)):
        own = slice(start, start + counts[number])
        weights = np.asarray(interval_weights(arrays[0][own]), float)
        assert_close(seen.normal[number], unit(weights @ normals[own]), 1e-5)
        pieces = np.stack([near[own], far[own]], axis=1).reshape(-1)
        between = np.stack([weights, 0 * weights], axis=1).reshape(-1)[:-1]
        assert_close(seen.median_depth[number], naive_median(between, pieces), 1e-5)
    assert_close(seen.normal[1], np.zeros(3))
    assert float(seen.median_depth[1]) == 9.0


def test_gradients_are_finite():
    edges, many = jnp.linspace(1.0, 2.0, 4), layers([1.5, 0.0], jnp.array([0.5, 0.0]))

    def details(density, normals):
        seen = composite_with_layers(Medium(density, jnp.ones((3, 3)), normals), edges, RAY, many)
        return seen.normal, seen.median_depth

    for density in (jnp.zeros(3), jnp.array([0.5, 0.0, 3.0])):
        assert_finite_gradients(details, density, jnp.zeros((3, 3)))
