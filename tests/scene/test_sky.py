"""Panoramas behind everything, about the zenith and the nadir too, beside naive means."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


SIDE, FOV, FINE = 12, 0.6, 16


def looking(direction, up):
    return sg.PerspectiveCamera.look_at([0, 0, 0], direction, up, FOV, SIDE, SIDE)


def naive(texels, camera):
    """Means of the panorama, interpolated between texels, over many points of every pixel."""
    height, width, _ = texels.shape
    places = (np.arange(SIDE * FINE) + 0.5) / FINE
    x, y = np.meshgrid(places, places)
    focal = float(camera.focal)
    local = np.stack([(x - SIDE / 2) / focal, -(y - SIDE / 2) / focal, -np.ones_like(x)], -1)
    way = local @ np.asarray(camera.pose.linear(), float).T
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    row = (0.5 - np.arcsin(np.clip(way[..., 2], -1, 1)) / np.pi) * height - 0.5
    column = (0.5 + np.arctan2(way[..., 1], way[..., 0]) / (2 * np.pi)) * width - 0.5
    top, left = np.floor(row).astype(int), np.floor(column).astype(int)
    total = 0
    for i in (0, 1):
        for j in (0, 1):
            share = np.abs(1 - i - (row - top)) * np.abs(1 - j - (column - left))
            at = texels[np.clip(top + i, 0, height - 1), (left + j) % width]
            total = total + share[..., None] * at
    return total.reshape(SIDE, FINE, SIDE, FINE, 3).mean((1, 3))


RNG = np.random.default_rng(0)
ROWS = np.linspace(0, 1, 32)[:, None, None] * np.ones((32, 64, 3))
CAP = np.where(np.arange(32)[:, None, None] < 4, 5.0, 1.0) * np.ones((32, 64, 3))
# Even in azimuth about the poles' own texels, as smooth maps of the sphere are.
WAVE = 0.5 + 0.5 * np.sin(np.pi * (np.arange(32) + 0.5) / 32)[:, None, None] * np.cos(
    2 * np.pi * (np.arange(64) + 0.5) / 64
)[None, :, None] * np.ones(3)
VIEWS = {
    "zenith": looking([0, 0, 1], [0, 1, 0]),
    "nadir": looking([0, 0, -1], [0, 1, 0]),
    "beside": looking([0.2, 0.1, 1], [0, 1, 0]),
    "horizon": looking([1, 0.3, 0.1], [0, 0, 1]),
    "behind": looking([-1, 0, 0.1], [0, 0, 1]),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("texels", [ROWS, CAP, WAVE], ids=["rows", "cap", "wave"])
def test_skies_beside_naive_means(texels, view):
    light = sg.EnvironmentLight(texels)
    rgb = sg.render(sg.Scene(sg.Group(), background=light), VIEWS[view]).rgb
    most = 0.06 * (texels.max() - texels.min()) if texels is CAP else 0.012
    assert_close(rgb, naive(texels, VIEWS[view]), absolute=most)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 1), (3, 5)])
def test_even_skies_are_even(shape):
    light = sg.EnvironmentLight(np.full((*shape, 3), 0.7))
    for view in VIEWS.values():
        rgb = sg.render(sg.Scene(sg.Group(), background=light), view).rgb
        assert_close(rgb, jnp.full_like(rgb, 0.7), 1e-5)


def test_a_sky_finer_than_pixels_is_averaged():
    """Noise of one texel in size: pixels at the zenith have the mean of all around it."""
    texels = RNG.uniform(size=(1024, 2048, 3))
    rgb = sg.render(
        sg.Scene(sg.Group(), background=sg.EnvironmentLight(texels)), VIEWS["zenith"]
    ).rgb
    assert float(jnp.abs(rgb - 0.5).max()) < 0.15
