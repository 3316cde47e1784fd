"""Orders of rays: those that come in bundles stay, all others are sorted into some."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.visibility import BUNDLE, order_rays, order_shadow_rays


SIDE = 8


def patches(count: int) -> sg.rays.Ray:
    """Patches of 8 x 8 pixels, of as many cameras around a point."""
    rng = np.random.default_rng(0)
    pixels = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2) + 0.5
    parts = []
    for _ in range(count):
        place = rng.normal(size=3)
        eye = 4 * place / np.linalg.norm(place)
        camera = sg.PerspectiveCamera.look_at(eye, [0.0, 0, 0], [0, 0, 1], 0.7, 200, 200)
        corner = rng.integers(0, 200 - SIDE, 2)
        parts.append(jax.vmap(camera.ray)(jnp.asarray(corner + pixels, jnp.float32)))
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


def spread(rays: sg.rays.Ray) -> float:
    """The mean angle, in radians, between the rays of a bundle, and the first of them."""
    units = rays.direction / jnp.linalg.norm(rays.direction, axis=1, keepdims=True)
    units = units.reshape(-1, BUNDLE, 3)
    return float(jnp.mean(jnp.arccos(jnp.clip(jnp.sum(units * units[:, :1], axis=-1), -1, 1))))


def test_patches_stay_bundles():
    rays = patches(64)
    assert np.array_equal(order_rays(rays), np.arange(64 * SIDE**2))


def test_rays_in_any_order_are_sorted():
    rays = patches(64)
    mixed = np.random.default_rng(1).permutation(64 * SIDE**2)
    rays = jax.tree.map(lambda x: x[mixed], rays)
    order = np.asarray(order_rays(rays))
    assert np.array_equal(np.sort(order), np.arange(64 * SIDE**2))
    assert spread(jax.tree.map(lambda x: x[order], rays)) < 0.3 * spread(rays)


def test_rays_that_fill_no_bundle_are_sorted_too():
    rays = jax.tree.map(lambda x: x[:100], patches(2))
    assert np.array_equal(np.sort(np.asarray(order_rays(rays))), np.arange(100))


def shadow_rays(ends: np.ndarray) -> sg.rays.Ray:
    """Rays from points of a plane to a lamp above it."""
    origins = jnp.asarray(np.pad(ends, ((0, 0), (0, 1))), jnp.float32)
    ways, none = jnp.array([0.0, 0.0, 2.0]) - origins, jnp.zeros((len(ends), 2, 3))
    ones = jnp.ones(len(ends))
    return sg.rays.Ray(origins, ways, ways, none, none, 0 * ones, ones)


def islands(count: int, each: int) -> np.ndarray:
    """Points of small squares that are far apart."""
    rng = np.random.default_rng(2)
    places = np.stack(np.meshgrid(*2 * [np.arange(4.0)]), axis=-1).reshape(-1, 2)[:count]
    return (places[:, None] + rng.uniform(0, 0.1, (count, each, 2))).reshape(-1, 2)


@pytest.mark.parametrize("size", [16, 32])
def test_bundles_of_shadow_rays_do_not_cross_gaps(size):
    # A hundred points on each of nine islands; the other rays are not used.
    points = np.concatenate([islands(9, 100), np.zeros((1024 - 900, 2))])
    mixed = np.random.default_rng(3).permutation(1024)
    points, used = points[mixed], (np.arange(1024) < 900)[mixed]
    # Of bundles of 32 rays, 36 hold all: there is space for the four that each island needs.
    points, used = (np.concatenate([x, np.zeros_like(x[:256])]) for x in (points, used))
    order = np.asarray(order_shadow_rays(shadow_rays(points), jnp.asarray(used), size))
    assert np.array_equal(np.sort(order), np.arange(1280))
    bundles, there = points[order].reshape(-1, size, 2), used[order].reshape(-1, size)
    for own, some in zip(bundles, there, strict=True):
        assert not np.any(some) or np.all(np.ptp(own[some], axis=0) < 0.11)


def test_without_unused_rays_gaps_stay():
    rays, used = shadow_rays(islands(9, 100)), jnp.ones(900, bool)
    orders = [np.asarray(order_shadow_rays(rays, used, size)) for size in (None, 32)]
    assert np.array_equal(*orders) and np.array_equal(np.sort(orders[0]), np.arange(900))
