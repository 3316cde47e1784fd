"""Colours that change with the direction of view, in the surface's own frame."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import linear_to_srgb, srgb_to_linear
from scenegraph.shaders import ViewDependent
from support.helpers import assert_close
from support.shading import lit_hit


RNG = np.random.default_rng(0)
TERMS = RNG.normal(0, 0.2, (3, 4, 9, 3)).astype(np.float32)
BASE = np.array([0.5, 0.6, 0.4], np.float32)
EYE = ([0.8, -2.5, 1.5], [0.0, 0, 0], [0, 0, 1])
SQUARE = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], np.float32)
SHAPES = [
    sg.Rectangle([0.0, 0, 0], [2.0, 2.0]),
    sg.TriangleMesh(SQUARE, [[0, 1, 2], [0, 2, 3]], uv=(SQUARE[:, :2] + 1) / 2),
]


def seen(shader, view):
    return shader(lit_hit(), jnp.asarray(view), sg.rays.no_light())


def test_harmonics_are_added_to_the_base():
    terms = np.zeros((1, 1, 4, 3), np.float32)
    terms[0, 0] = [[0.1, 0, 0], [0.2, 0, 0], [0, 0.3, 0], [0, 0, 0.4]]
    x, y, z = view = np.array([0.48, 0.6, -0.64], np.float32)
    # Y = 1 / sqrt(4 pi), and sqrt(3 / (4 pi)) times -y, z and -x
    first, second = 1 / np.sqrt(4 * np.pi), np.sqrt(3 / (4 * np.pi))
    expected = [0.1 * first - 0.2 * second * y, 0.3 * second * z, -0.4 * second * x]
    assert_close(seen(ViewDependent(BASE, terms), view), BASE + expected, 1e-6)
    encoded = ViewDependent(srgb_to_linear(jnp.asarray(BASE)), terms, encoded=True)
    assert_close(linear_to_srgb(seen(encoded, view)), BASE + expected, 1e-5)


def test_negative_sums_are_black():
    terms = np.full((1, 1, 1, 3), -9.0, np.float32)
    assert_close(seen(ViewDependent(BASE, terms), [0.0, 0, 1]), np.zeros(3), 0)


@pytest.mark.parametrize(
    "shape",
    [SHAPES[0], pytest.param(SHAPES[1], marks=pytest.mark.slow)],
    ids=["rectangle", "mesh"],
)
@pytest.mark.parametrize("others", [0, 60], ids=["alone", "among many"])
def test_gloss_turns_with_the_surface(shape, others):
    """Turned together with the eye, a surface looks the same; turned alone, it does not."""
    surface = sg.Surface(shape, ViewDependent(BASE, TERMS))
    # Things that are out of sight, with which a scene is searched through lists.
    hidden = {
        f"ball{i}": sg.Surface(sg.Sphere([0.0, 0, -50 - i], 0.1), [1.0, 0, 0])
        for i in range(others)
    }
    eye = sg.PerspectiveCamera.look_at(*EYE, 0.9, 24, 24)
    matrix = 1.7 * np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]], np.float32)
    turned = sg.Transformed(surface, sg.Affine(matrix))
    places = [matrix @ np.asarray(x, np.float32) for x in EYE[:2]]
    other = sg.PerspectiveCamera.look_at(*places, [0, 0, 1], 0.9, 24, 24)
    draw = lambda child, camera: sg.render(sg.Scene(sg.Group(it=child, **hidden)), camera).rgb
    before = draw(surface, eye)
    assert np.std(np.asarray(before)) > 0.1
    assert_close(draw(turned, other), before, 2e-5)
    assert float(jnp.max(jnp.abs(draw(turned, eye) - before))) > 0.02


def test_terms_and_base_are_leaves():
    """The colour is linear in the terms, so that differences give their gradient exactly."""
    view = jnp.array([0.48, 0.6, -0.64])
    colour = lambda terms: jnp.sum(seen(ViewDependent(BASE, terms), view))
    change = RNG.normal(size=TERMS.shape).astype(np.float32)
    slope = jnp.sum(jax.grad(colour)(jnp.asarray(0.1 * TERMS)) * change)
    assert_close(slope, (colour(0.1 * TERMS + 0.01 * change) - colour(0.1 * TERMS)) / 0.01, 1e-3)


@pytest.mark.parametrize("shape", [(2, 2, 5, 3), (2, 2, 4), (2, 2, 4, 2), (0, 2, 4, 3)])
def test_other_terms_are_refused(shape):
    with pytest.raises((TypeError, ValueError), match="terms|texel"):
        ViewDependent(BASE, np.zeros(shape, np.float32))


def test_a_texture_of_terms_is_no_colour():
    texture = sg.ImageTexture(np.zeros((2, 2, 12), np.float32))
    with pytest.raises(TypeError, match="ViewDependent"):
        seen(texture, [0.0, 0, 1])
