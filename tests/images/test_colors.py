"""Colour spaces, bytes and resizing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
