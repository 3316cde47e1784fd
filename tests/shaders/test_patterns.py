"""Stripes, checkers and ramps against plain means over the pixel's parallelogram."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.shaders import InSpace
from support.helpers import assert_close, assert_finite_gradients, assert_gradients
from support.shading import color_at, colors, footprint_mean


RED, BLUE = np.array([0.9, 0.2, 0.1]), np.array([0.1, 0.3, 0.8])
RNG = np.random.default_rng(0)
PLACES = RNG.uniform(-2, 2, (12, 2))
SIZES = np.array([0.05, 0.2, 0.5, 1.0, 1.5, 3.0] * 2)
SLOPES = SIZES[:, None, None] * RNG.uniform(-1, 1, (12, 2, 2))
STRAIGHT = SIZES[:, None, None] * np.array(
    [[[1.0, 0.0], [0.0, -0.7]], [[0.0, 0.6], [1.1, 0.0]]] * 6
)


def wave(x):
    return np.where(np.floor(x) % 2 == 0, 1.0, -1.0)


def mixed(share):
    """`BLUE` at 0 and `RED` at 1."""
    return BLUE + np.asarray(share)[..., None] * (RED - BLUE)


# --- Stripes


def test_stripes_are_exact_over_any_footprint():
    shader = sg.Stripes(0.6, RED, BLUE, angle=0.3)
    seen = colors(shader, PLACES, SLOPES)
    across = lambda p: (np.cos(0.3) * p[:, 0] + np.sin(0.3) * p[:, 1]) / 0.6
    expected = [
        footprint_mean(lambda p: mixed(wave(across(p)) / 2 + 0.5), place, slopes)
        for place, slopes in zip(PLACES, SLOPES, strict=True)
    ]
    assert_close(seen, np.stack(expected), 0, 3e-3)


def test_stripes_of_a_solid():
    shader = sg.Stripes(0.5, RED, BLUE, coordinates=InSpace())
    place, still = np.array([[0.2, 5.0, 7.0], [0.7, 5.0, 7.0]]), np.zeros((2, 3, 2))
    assert_close(colors(shader, place, still), np.stack([RED, BLUE]), 1e-6)


def test_gradients_of_stripes(x64):
    def look(scale, angle, color, place, slopes):
        return color_at(sg.Stripes(scale, color, BLUE, angle), place, slopes)

    for index in (1, 4):
        numbers = 0.6, 0.3, RED, PLACES[index], SLOPES[index]
        assert_gradients(look, *map(jnp.asarray, numbers))


# --- Checkers


def checker(p):
    return mixed(wave(p[:, 0] / 0.6) * wave(p[:, 1] / 0.6) / 2 + 0.5)


def test_checkers_are_exact_over_straight_footprints():
    seen = colors(sg.Checker(0.6, RED, BLUE), PLACES, STRAIGHT)
    expected = [footprint_mean(checker, *x) for x in zip(PLACES, STRAIGHT, strict=True)]
    assert_close(seen, np.stack(expected), 0, 3e-3)


def test_checkers_over_slanting_footprints_keep_their_bound():
    """Two waves of means m and n have a covariance of at most sqrt((1 - m^2) (1 - n^2))."""
    seen = colors(sg.Checker(0.6, RED, BLUE), PLACES, SLOPES)
    errors = []
    for place, slopes, color in zip(PLACES, SLOPES, seen, strict=True):
        means = footprint_mean(lambda p: wave(p / 0.6), place, slopes)
        bound = np.sqrt(np.prod(1 - means**2)) / 2
        error = (color - footprint_mean(checker, place, slopes)) / (RED - BLUE)
        assert np.all(np.abs(error) <= bound + 5e-3)
        errors.append(error)
    assert np.sqrt(np.mean(np.square(errors))) < 0.15


def test_gradients_of_checkers(x64):
    def look(scale, color, place, slopes):
        return color_at(sg.Checker(scale, color, BLUE), place, slopes)

    for index in (1, 4):
        numbers = 0.6, RED, PLACES[index], SLOPES[index]
        assert_gradients(look, *map(jnp.asarray, numbers))


@pytest.mark.parametrize("kind", [sg.Checker, sg.Stripes])
def test_far_away_patterns_have_their_mean_colour(kind):
    seen = colors(kind(0.6, RED, BLUE), PLACES, 1000 * STRAIGHT + 0.1)
    assert_close(seen, np.broadcast_to((RED + BLUE) / 2, seen.shape), 0, 2e-3)


# --- Ramps

START, END = np.array([-0.3, 0.2]), np.array([0.9, 0.6])


def ramp(p):
    way = END - START
    return mixed(1 - np.clip((p - START) @ way / (way @ way), 0, 1))


def test_ramps_are_exact_over_any_footprint():
    """Straight ones too, where the trapezoid is a box; and where there is no footprint at all."""
    shader = sg.Gradient(START, END, RED, BLUE)
    slopes = np.concatenate([SLOPES, STRAIGHT, np.zeros_like(SLOPES)])
    places = np.concatenate([PLACES] * 3)
    expected = [footprint_mean(ramp, *x) for x in zip(places, slopes, strict=True)]
    assert_close(colors(shader, places, slopes), np.stack(expected), 0, 1e-4)


def test_gradients_of_ramps(x64):
    def look(start, end, a, b, place, slopes):
        return color_at(sg.Gradient(start, end, a, b), place, slopes)

    for place, slopes in ((PLACES[2], SLOPES[2]), (START + 0.01, SLOPES[1]), (END, SLOPES[3])):
        assert_gradients(look, *map(jnp.asarray, (START, END, RED, BLUE, place, slopes)))


def test_singular_ramps_have_finite_gradients():
    def look(start, end, place, slopes):
        return color_at(sg.Gradient(start, end), place, slopes)

    here, still = jnp.array([0.3, 0.4]), jnp.zeros((2, 2))
    assert_finite_gradients(look, here, here, here, still)
    assert_finite_gradients(look, here, here + 1, here, still)
    assert_finite_gradients(look, here, here + 1, here + 1, jnp.eye(2))


def test_a_ramp_in_space():
    shader = sg.Gradient([0, 0, 1], [0, 0, 3], RED, BLUE, InSpace())
    place = np.array([[5.0, 6.0, 0.0], [5.0, 6.0, 1.5], [5.0, 6.0, 4.0]])
    expected = np.stack([RED, 0.75 * RED + 0.25 * BLUE, BLUE])
    assert_close(colors(shader, place, np.zeros((3, 3, 2))), expected, 1e-6)


# --- What is refused


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [sg.Checker, sg.Stripes, sg.Noise])
def test_no_scale_but_a_positive_one(kind, scale):
    with pytest.raises(ValueError, match=f"{kind.__name__}.scale` must be positive"):
        kind(scale)


def test_ramps_refuse_places_of_other_coordinates():
    with pytest.raises(
        ValueError, match="must have 3 numbers, like the coordinates InSpace; got 2"
    ):
        sg.Gradient(coordinates=InSpace())
    with pytest.raises(ValueError, match="Gradient.end` must be finite"):
        sg.Gradient(end=[np.nan, 1.0])
