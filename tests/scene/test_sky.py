"""The panorama of an environment light behind a scene, beside lookups in numpy."""

import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from support.helpers import assert_close


TEXELS = np.random.default_rng(0).uniform(0.1, 1, (8, 16, 3))
CAMERA = sg.PanoramaCamera(sg.Pose(jnp.eye(4)), 16, 8)


def toward(rows, columns):
    """The directions of the middles of texels."""
    azimuth = -np.pi + 2 * np.pi * (columns + 0.5) / 16
    elevation = np.pi / 2 - np.pi * (rows + 0.5) / 8
    level = np.cos(elevation)
    return np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], -1)


def seen(light, directions):
    scene = sg.Scene(sg.Group(light=light), background=light)
    ray = lambda d: sg.rays.Ray(0 * d, d, d, jnp.zeros((2, 3)), jnp.zeros((2, 3)), 0.0, 1.0)
    look = lambda d: scene.background(jax.tree.map(jnp.asarray, ray(d)))
    return jax.jit(jax.vmap(look))(jnp.asarray(directions, jnp.float32))


def test_a_ray_sees_the_texel_that_it_points_at():
    rows, columns = np.mgrid[:8, :16]
    found = seen(sg.EnvironmentLight(TEXELS), toward(rows, columns).reshape(-1, 3))
    assert_close(found, TEXELS.reshape(-1, 3), 1e-4)


def test_the_seam_is_interpolated():
    edge = toward(np.array([3]), np.array([-0.5]))
    assert_close(
        seen(sg.EnvironmentLight(TEXELS), edge)[0], (TEXELS[3, 0] + TEXELS[3, -1]) / 2, 1e-4
    )


def test_frames_turn_the_picture_with_the_light():
    turn = sg.Similarity(rotation=[0.8, 0.5, 0.1, 0.3])
    light = sg.EnvironmentLight(TEXELS).moved(turn)
    rows, columns = np.mgrid[1:7, :16]
    directions = toward(rows, columns).reshape(-1, 3) @ np.asarray(turn.linear()).T
    assert_close(seen(light, directions), TEXELS[1:7].reshape(-1, 3), 1e-3)
