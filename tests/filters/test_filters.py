"""Filters by hand; `render/test_render.py` has them on rendered pictures."""

import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from helpers import assert_close
from scenegraph.images import Image, Linear


PICTURE = jnp.linspace(-0.2, 1.3, 2 * 3 * 3).reshape(2, 3, 3)


def test_inverting():
    """Colours beyond 0 and 1 too; what is not colour stays."""
    image = Image(PICTURE, alpha=PICTURE[..., 0], depth=PICTURE[..., 1], space=Linear())
    negative = sg.Invert()(image)
    assert_close(negative.rgb, 1 - np.asarray(PICTURE), 1e-6)
    assert negative.alpha is image.alpha and negative.depth is image.depth
    assert negative.space == image.space
    assert_close(sg.Invert()(negative).rgb, PICTURE, 1e-6)


def test_the_gradient_of_inverting():
    gradient = jax.grad(lambda rgb: jnp.sum(PICTURE * sg.Invert()(Image(rgb)).rgb))(PICTURE)
    assert_close(gradient, -PICTURE, 1e-6)
