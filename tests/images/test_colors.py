"""Colour spaces, bytes and resizing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.images import as_bytes, Image, Linear, linear_to_srgb, shrink, srgb_to_linear
from support.helpers import assert_close, assert_finite_gradients, golden


@pytest.mark.parametrize("function", [linear_to_srgb, srgb_to_linear])
def test_published_curves(function):
    data = golden("mip_math")
    assert_close(function(jnp.asarray(data["srgb.in"])), data[f"srgb.{function.__name__}"], 1e-6)


def test_there_and_back():
    x = jnp.linspace(0, 1.2, 50)
    assert_close(srgb_to_linear(linear_to_srgb(x)), x, 1e-5)


@pytest.mark.parametrize("function", [linear_to_srgb, srgb_to_linear])
def test_gradients_are_finite(function):
    assert_finite_gradients(function, jnp.array([-1.0, 0.0, 0.0031308, 0.04045, 1.0, 5.0]))
    assert np.all(jax.vmap(jax.grad(function))(jnp.linspace(-1, 2, 50)) > 0)


def test_bytes_are_rounded_clipped_and_encoded_once():
    row = jnp.array([[[-0.5, 0.5, 1.5]]])
    assert as_bytes(Image(row)).tolist() == [[[0, 128, 255]]]
    assert as_bytes(Image(row, space=Linear())).tolist() == [[[0, 188, 255]]]


def test_shrinking_weights_colours_by_opacity():
    pixels = np.array([[[1, 0, 0, 1], [0, 1, 0, 0]]] * 2, np.float32)
    assert_close(shrink(pixels, 2), np.array([[[1, 0, 0, 0.5]]]), 1e-6)
    assert_close(shrink(pixels, 2, straight_alpha=True), np.array([[[0.5, 0.5, 0, 0.5]]]), 1e-6)


def test_shrinking_cuts_off_the_rest():
    pixels = np.arange(15, dtype=np.float32).reshape(3, 5, 1)
    assert_close(shrink(pixels, 2), np.array([[[3], [5]]]))
    with pytest.raises(ValueError, match="5x3"):
        shrink(pixels, 4)


@pytest.mark.parametrize(
    ("name", "srgb"), [("red", (255, 0, 0)), ("#cc3311", (204, 51, 17)), ("gray", (128, 128, 128))]
)
def test_names_of_colors_are_decoded(name, srgb):
    linear = [((x / 255 + 0.055) / 1.055) ** 2.4 if x > 10 else x / 255 / 12.92 for x in srgb]
    color = sg.images.as_color(name)
    assert color.shape == (3,)
    np.testing.assert_allclose(color, linear, rtol=1e-5)
    for shader in (sg.Constant(name), sg.Lambert(name).albedo, sg.GGX(name).base_color):
        np.testing.assert_array_equal(shader.color, color)
    np.testing.assert_array_equal(sg.Checker(color_b=name).color_b, color)
    scene = sg.Scene(sg.Group(), background=name)
    np.testing.assert_array_equal(scene.background.shader.color, color)


@pytest.mark.parametrize("name", ["redd", "#cc331", "#cc3311ff", ""])
def test_unknown_colors_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"^`Stripes.color_a`: a colour is .*; got '{name}'$"):
        sg.Stripes(color_a=name)
