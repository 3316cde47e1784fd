"""Suns and skies in any units, and skies of any number of texels."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


LAMPS = {
    "sun": sg.DirectionalLight([0.5, 0.4, -1.0], [2.0] * 3),
    "sky": sg.EnvironmentLight(
        np.linspace(2, 0.1, 8)[:, None, None] * np.ones((8, 16, 3)), samples=8
    ),
}


def picture(unit, lamp):
    corners = np.array([[-0.4, -0.3, 0.2], [0.4, 0.3, 0.9]]) * unit
    checker = sg.Lambert(sg.Checker(0.5 * unit, [0.9] * 3, [0.5] * 3))
    scene = sg.Scene(
        sg.Group(
            box=sg.Surface(sg.Box(*corners), sg.Lambert([0.8, 0.4, 0.2])),
            floor=sg.Surface(sg.Rectangle([0, 0, 0], [6.0 * unit, 6.0 * unit]), checker),
            lamp=LAMPS[lamp],
        ),
        background=[0.1, 0.2, 0.4],
    )
    eye, target = np.array([0.5, -3.5, 2.5]) * unit, np.array([0, 0, 0.3]) * unit
    limits = 0.01 * unit, 100.0 * unit
    view = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 0.8, 16, 16, *limits)
    return np.asarray(sg.render(scene, view).rgb)


@pytest.mark.parametrize("lamp", LAMPS)
def test_pictures_are_the_same_in_all_units(lamp):
    meters = picture(1.0, lamp)
    assert meters.std() > 0.05
    for unit in (1e-4, 1e4):
        assert_close(picture(unit, lamp), meters, absolute=0.01)


def test_the_sun_has_no_end_unless_it_is_given_one():
    """A card far above shades a floor; not where `reach` ends before it."""
    card = sg.Surface(sg.Rectangle([0, 0, 2e4], [9.0, 9.0]), [1.0] * 3)
    floor = sg.Surface(sg.Rectangle([0, 0, 0], [2.0, 2.0]), sg.Lambert([1.0] * 3))
    view = sg.OrthographicCamera.look_at([0, 0, 1], [0, 0, 0], [0, 1, 0], 1.0, 2, 2)
    for options, seen in (({}, 0.0), ({"reach": 1e4}, 1.0)):
        sun = sg.DirectionalLight([0.0, 0, -1], [np.pi] * 3, **options)
        rgb = sg.render(sg.Scene(sg.Group(card=card, floor=floor, sun=sun)), view).rgb
        assert_close(rgb, jnp.full_like(rgb, seen), absolute=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 5), (4, 8), (64, 128)])
@pytest.mark.parametrize("samples", [16, 64])
def test_even_skies_light_evenly_however_few_texels_they_have(shape, samples):
    """All directions stand for 4 pi / n, and together for all of the sky."""
    light = sg.EnvironmentLight(np.ones((*shape, 3)), samples=samples)
    irradiance = light.sample(jnp.zeros(3), jnp.zeros((2, 3))).irradiance
    assert_close(jnp.sum(irradiance, axis=0), np.full(3, 4 * np.pi), 1e-5)
    assert_close(irradiance * samples / (4 * np.pi), np.ones((samples, 3)), 0.12)


def test_the_light_of_a_texel_comes_from_all_of_it():
    """Of two halves of the sky, the upper one is white: what arrives from above is 2 pi."""
    light = sg.EnvironmentLight(np.array([[[1.0] * 3], [[0.0] * 3]]), samples=64)
    sample = light.sample(jnp.zeros(3), jnp.zeros((2, 3)))
    above = sample.rays.direction[:, 2] > 0
    assert_close(jnp.sum(sample.irradiance[:, 0]), 2 * np.pi, 1e-5)
    # But for the directions about the horizon, which stand for parts of both halves.
    assert_close(jnp.sum(sample.irradiance[:, 0] * above), 2 * np.pi, 0.08)
