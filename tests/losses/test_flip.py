"""FLIP: against its authors' package, and facts that hold without it."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.io import MissingExtra
from scenegraph.losses import flip, flip_map, PIXELS_PER_DEGREE
from support.helpers import golden


evaluator = pytest.importorskip(
    "flip_evaluator", reason="needs flip-evaluator: pip install scenegraph[metrics]"
)


def pair():
    data = golden("mip_math")
    names = "ssim.img_a_uint8", "ssim.img_b_uint8"
    return tuple(jnp.asarray(data[name].astype(np.float32) / 255) for name in names)


def flat(*color: float) -> jnp.ndarray:
    return jnp.broadcast_to(jnp.array(color, jnp.float32), (9, 12, 3))


def between_greys(one: float, other: float) -> float:
    """FLIP of two flat grey pictures, from the equations of its paper."""

    def lightness(srgb: float) -> float:
        light = srgb / 12.92 if srgb <= 0.04045 else ((srgb + 0.055) / 1.055) ** 2.4
        return 116 * light ** (1 / 3) - 16 if light > (6 / 29) ** 3 else 29**3 / 27 * light

    # The largest colour difference is that of blue and green; 0.4 of it takes up 0.95 of the scale.
    difference, largest = abs(lightness(one) - lightness(other)) ** 0.7, 41.2760
    if difference < 0.4 * largest:
        return 0.95 * difference / (0.4 * largest)
    return 0.95 + 0.05 * (difference - 0.4 * largest) / (0.6 * largest)


@pytest.mark.parametrize(("one", "other"), [(0.0, 1.0), (0.5, 0.6), (0.2, 0.9), (0.3, 0.3)])
def test_flat_greys_in_closed_form(one, other):
    value = flip(flat(one, one, one), flat(other, other, other))
    assert value == pytest.approx(between_greys(one, other), abs=2e-4)


def test_blue_and_green_are_as_far_apart_as_can_be():
    assert flip(flat(0, 0, 1), flat(0, 1, 0)) == pytest.approx(1, abs=1e-5)


def test_equal_pictures():
    one, _ = pair()
    assert flip(one, one) == 0 and np.all(flip_map(one, one) == 0)


def test_symmetric():
    one, other = pair()
    np.testing.assert_allclose(flip_map(one, other), flip_map(other, one), atol=1e-6)


def test_what_the_package_says():
    """With its own defaults, which the pixels per degree are."""
    one, other = pair()
    arrays = np.array(other), np.array(one)
    errors, mean, used = evaluator.evaluate(*arrays, "LDR", applyMagma=False)
    assert used["ppd"] == pytest.approx(PIXELS_PER_DEGREE, rel=1e-6)
    assert flip_map(one, other).shape == (64, 64) and flip(one, other) > 0.05
    np.testing.assert_allclose(flip_map(one, other), errors[..., 0], atol=1e-6)
    assert flip(one, other) == pytest.approx(mean, rel=1e-5)


def test_from_afar_less_is_seen():
    one, _ = pair()
    noise = jnp.asarray(np.random.default_rng(0).normal(scale=0.1, size=one.shape), jnp.float32)
    near, far = (flip(one + noise, one, pixels_per_degree=x) for x in (30.0, 120.0))
    assert far < 0.8 * near


def test_values_are_clipped_as_a_screen_does():
    one, other = pair()
    assert flip(3 * one - 1, other) == flip(jnp.clip(3 * one - 1, 0, 1), other)


def test_what_is_not_a_number_is_not_called_equal():
    one, _ = pair()
    errors = flip_map(one.at[3, 4, 1].set(jnp.nan), one)
    assert np.isnan(errors[3, 4]) and np.isnan(errors).sum() == 1
    assert np.isnan(flip(one.at[3, 4, 1].set(jnp.nan), one))


def test_without_the_package_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "flip_evaluator", None)
    with pytest.raises(MissingExtra, match=r"FLIP needs `pip install scenegraph\[metrics\]`"):
        flip(*pair())
