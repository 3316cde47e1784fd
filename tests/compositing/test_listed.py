"""Sums and colours of many rays in one list, against naive loops and one ray at a time."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.compositing import composite, composite_packed
from scenegraph.numerics import segment_prefix_sums
from scenegraph.rays import Medium, Span
from support.helpers import assert_close, assert_gradients


# Compiled as a whole: operation by operation takes several times as long.
composite, composite_packed = eqx.filter_jit(composite), eqx.filter_jit(composite_packed)


def runs(lengths):
    """Numbers of the runs, and where each begins."""
    ray = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.concatenate([[True], ray[1:] != ray[:-1]])
    return ray, starts


def naive_sums(values, starts):
    result, total = np.zeros(len(values)), 0.0
    for index, (value, start) in enumerate(
        zip(np.asarray(values, np.float64), starts, strict=True)
    ):
        total = 0.0 if start else total
        result[index] = total
        total += value
    return result


@pytest.mark.parametrize("longest", [8, 9, 50])
def test_sums_before_each_value_of_its_run(longest):
    ray, starts = runs([8, *np.random.default_rng(0).integers(1, 9, size=20)])
    values = np.random.default_rng(1).uniform(size=len(starts)).astype(np.float32)
    seen = eqx.filter_jit(segment_prefix_sums)(jnp.asarray(values), jnp.asarray(ray), longest)
    assert_close(seen, naive_sums(values, starts))


def test_runs_of_one_value_have_nothing_before_it():
    ray, _ = runs([1, 1, 1])
    assert segment_prefix_sums(jnp.ones(3), jnp.asarray(ray), 1).tolist() == [0, 0, 0]


def test_long_lists_lose_no_digits():
    """A sum over the whole list, taken off again, would be wrong in the third."""
    ray, starts = runs(np.full(1000, 100))
    values = np.random.default_rng(1).uniform(size=100_000).astype(np.float32)
    values[::2000] = 1e5
    expected = naive_sums(values, starts)
    seen = np.asarray(jax.jit(segment_prefix_sums, static_argnums=2)(values, jnp.asarray(ray), 100))
    through = np.cumsum(values, dtype=np.float32) - values
    begins = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
    assert np.abs(through - through[begins] - expected)[expected < 1e3].max() > 0.1
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_gradient_of_sums(x64):
    ray, _ = runs([1, 3, 2, 4])
    values = jnp.asarray(np.random.default_rng(2).uniform(size=10))
    assert_gradients(lambda values: segment_prefix_sums(values, jnp.asarray(ray), 5), values)


def listed(lengths, seed=0):
    """A list of samples with even steps, ray by ray, and the spans of the rays."""
    rng = np.random.default_rng(seed)
    ray, _ = runs(lengths)
    number = np.concatenate([np.arange(n) for n in lengths])
    medium = Medium(jnp.asarray(rng.uniform(0, 3, len(ray))), rng.uniform(size=(len(ray), 3)))
    edges = [1.0 + 0.25 * np.arange(n + 1) for n in lengths]
    return ray, number, medium, edges


@pytest.mark.slow
def test_list_is_composited_ray_by_ray():
    lengths = [3, 1, 7, 4]
    ray, number, medium, edges = listed(lengths)
    spans = Span(np.ones(4), [e[-1] for e in edges])
    seen = composite_packed(
        medium,
        0.25 * medium.density,
        jnp.asarray(1.125 + 0.25 * number),
        jnp.asarray(ray),
        spans,
        most=7,
    )
    for index in range(4):
        own = jax.tree.map(lambda x, i=index: x[ray == i], medium)
        expected = composite(own, jnp.asarray(edges[index]), jnp.array([0.0, 0.0, 1.0]))
        one = jax.tree.map(lambda x, i=index: x[i], seen)
        for name in ("rgb", "alpha", "depth"):
            assert_close(getattr(one, name), getattr(expected, name), 1e-6)


def test_rays_without_samples_see_nothing():
    """Their depth is that of the far end; places that do not count belong to the last ray."""
    medium = Medium(jnp.ones(4), jnp.ones((4, 3)))
    depth, ray = jnp.array([0.5, 0.5, 0.0, 0.0]), jnp.array([1, 1, 2, 2])
    spans = Span(jnp.ones(3), 2 * jnp.ones(3))
    seen = composite_packed(medium, depth, jnp.full(4, 1.5), ray, spans, most=2)
    assert_close(seen.alpha, [0, -np.expm1(-1.0), 0], 1e-6)
    assert_close(seen.depth, [2.0, 1.5, 2.0], 1e-6)
    assert_close(seen.rgb, np.asarray(seen.alpha)[:, None] * np.ones(3), 1e-6)


def test_gradient_of_the_composited_list(x64):
    ray, number, medium, edges = listed([3, 1, 4])
    spans = Span(np.ones(3), np.array([e[-1] for e in edges]))

    def colors(density, rgb):
        own, t = Medium(density, rgb), jnp.asarray(1.125 + 0.25 * number)
        seen = composite_packed(own, 0.25 * density, t, jnp.asarray(ray), spans, most=4)
        return seen.rgb, seen.alpha, seen.depth

    assert_gradients(colors, medium.density, medium.rgb)
