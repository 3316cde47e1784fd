"""Noise: what its slopes at the corners of a cell say, how it continues, and how it fades."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.shaders import InSpace, OnSurface
from scenegraph.shaders._noise import _SHIFT
from support.helpers import assert_close, assert_gradients
from support.shading import color_at, colors, footprint_mean


RED, BLUE = np.array([0.9, 0.2, 0.1]), np.array([0.1, 0.3, 0.8])
RNG = np.random.default_rng(0)
BLACK, WHITE = np.zeros(3), np.ones(3)


def share(shader, places):
    """Of white, for noise from black to white."""
    return colors(shader, places, np.zeros((*places.shape, 2)))[:, 0]


def unbent(white):
    """The sum of the octaves, between -1 and 1, from the share of white."""
    return np.arctanh(2 * white - 1) / 2


def wave(shader, places):
    return unbent(share(shader, places))


def single(scale=1.0, **options):
    return sg.Noise(scale, WHITE, BLACK, octaves=1, **options)


def quintic(x):
    return 6 * x**5 - 15 * x**4 + 10 * x**3


# --- One octave


@pytest.mark.parametrize("coordinates", [OnSurface(), InSpace()])
def test_a_cell_interpolates_the_slopes_at_its_corners(x64, coordinates):
    """These have the same length everywhere, and the noise itself is zero there."""
    n = coordinates.dimensions
    shader = single(coordinates=coordinates)

    def one(place):
        white = color_at(shader, place, jnp.zeros((n, 2)))[0]
        return jnp.arctanh(2 * white - 1) / 2

    look = jax.jit(jax.vmap(jax.value_and_grad(one)))
    corners = np.array(list(itertools.product((0, 1), repeat=n))) + np.array([3, -2, 5])[:n]
    at_corners, slopes = look(jnp.asarray(corners - _SHIFT + 1e-9))
    assert_close(at_corners, np.zeros(2**n), 0, 1e-7)
    assert_close(np.linalg.norm(slopes, axis=1), np.full(2**n, 2 / np.sqrt(n)), 1e-6)
    places = corners[0] + RNG.uniform(size=(9, n))
    away = places[:, None] - corners
    weights = np.prod(quintic(1 - np.abs(away)), axis=-1)
    expected = np.sum(weights * np.sum(slopes * away, axis=-1), axis=1)
    assert_close(look(jnp.asarray(places - _SHIFT))[0], expected, 1e-6)


def test_no_edge_between_cells(x64):
    """The value, the slope and the curvature go on."""
    place = np.array([0.3, 0.0, 0.7]) + np.array([0.0, 4 - _SHIFT, 0.0])

    def along(y):
        return color_at(single(), jnp.asarray(place).at[1].add(y), jnp.zeros((3, 2)))[0]

    for function in (along, jax.grad(along), jax.grad(jax.grad(along))):
        before, after = jax.jit(jax.vmap(function))(jnp.array([-1e-6, 1e-6]))
        assert abs(float(after - before)) < 1e-4


def test_seeds_and_statistics():
    places = RNG.uniform(-40, 40, (4000, 3))
    one, same, other = (wave(single(seed=seed), places) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.08
    assert abs(np.mean(one)) < 0.02 and 0.2 < np.std(one) < 0.4
    assert np.max(np.abs(one)) <= 1
    shifted = wave(single(), places + np.array([1.0, 0.0, 0.0]))
    assert abs(np.corrcoef(one, shifted)[0, 1]) < 0.1


# --- All octaves


def test_octaves_halve_size_and_strength():
    """The second is noise like the first; together they are as strong as the first alone."""
    places = RNG.uniform(-2, 2, (500, 3))
    one, two = (wave(sg.Noise(0.7, WHITE, BLACK, octaves=n), places) for n in (1, 2))
    second = 2 * (np.sqrt(1.25) * two - one)
    assert abs(np.std(second) / np.std(one) - 1) < 0.2 and abs(np.std(two) / np.std(one) - 1) < 0.2
    assert abs(np.corrcoef(one, second)[0, 1]) < 0.2


def test_colours_stay_between_both():
    places = RNG.uniform(-20, 20, (5000, 3))
    seen = colors(sg.Noise(0.5, RED, BLUE), places, np.zeros((5000, 3, 2)))
    assert np.all(seen <= np.maximum(RED, BLUE)) and np.all(seen >= np.minimum(RED, BLUE))
    assert_close(np.mean(seen, axis=0), (RED + BLUE) / 2, 0.02)
    assert np.std(seen[:, 0]) > 0.15 * (RED[0] - BLUE[0])


def test_far_away_noise_has_its_mean_colour():
    places = RNG.uniform(-2, 2, (50, 2))
    shader = sg.Noise(0.5, RED, BLUE, coordinates=OnSurface())
    seen = colors(shader, places, np.broadcast_to(np.eye(2), (50, 2, 2)))
    assert_close(seen, np.broadcast_to((RED + BLUE) / 2, (50, 3)), 1e-6)


def test_fading_comes_closer_to_the_mean_over_the_pixel():
    shader = single(coordinates=OnSurface())
    places = RNG.uniform(-9, 9, (40, 2))
    for width in (0.4, 0.7, 1.0, 1.4):
        slopes = np.broadcast_to(width * np.eye(2), (40, 2, 2))
        means = [
            footprint_mean(lambda p: share(shader, p), place, width * np.eye(2), 20)
            for place in places
        ]
        seen = colors(shader, places, slopes)[:, 0]
        faded = np.sqrt(np.mean((seen - means) ** 2))
        sharp = np.sqrt(np.mean((share(shader, places) - means) ** 2))
        assert faded < min(0.7 * sharp, np.std(means))


def test_gradients_of_noise(x64):
    def look(scale, a, b, place, slopes):
        return color_at(sg.Noise(scale, a, b, octaves=3), place, slopes)

    numbers = 0.7, RED, BLUE, RNG.uniform(size=3), RNG.uniform(-0.2, 0.2, (3, 2))
    assert_gradients(look, *map(jnp.asarray, numbers))


def test_no_octave_is_refused():
    with pytest.raises(ValueError, match="octaves` must be at least 1; got 0"):
        sg.Noise(octaves=0)
