"""Orders of rays: those that come in bundles stay, all others are sorted into some."""

import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.visibility import BUNDLE, order_rays


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
