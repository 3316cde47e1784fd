"""Metrics: the published numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.losses import (
    average_error,
    correct_color,
    mse_to_psnr,
    psnr,
    psnr_to_mse,
    ssim,
    ssim_map,
)
from support.helpers import assert_close, assert_finite_gradients, golden


@pytest.fixture
def pictures():
    data = golden("mip_math")
    a, b = (jnp.asarray(data[f"ssim.img_{name}_uint8"].astype(np.float32) / 255) for name in "ab")
    return {"a": a, "b": b, "c": jnp.asarray(data["ssim.img_c"])}


@pytest.mark.parametrize("pair", ["a_b", "a_c", "a_a"])
def test_published_ssim(pictures, pair):
    one, other = (pictures[name] for name in pair.split("_"))
    assert_close(ssim(one, other), golden("mip_math")[f"ssim.{pair}"], 2e-6)


@pytest.mark.parametrize("pair", ["a_b", "a_c"])
def test_published_ssim_maps(pictures, pair):
    """Flat areas are a quotient of rounding errors."""
    one, other = (pictures[name] for name in pair.split("_"))
    assert_close(ssim_map(one, other), golden("mip_math")[f"ssim.{pair}_map"], 0, 5e-4)


def test_published_ssim_of_another_window(pictures):
    value = ssim(pictures["a"], pictures["c"], size=7, sigma=1.0)
    assert_close(value, golden("mip_math")["ssim.a_c_size7_sigma1"], 2e-6)


def test_ssim_window_is_a_plain_convolution(pictures, x64):
    """One pixel of the map from sums over the window, in numpy."""
    a, c = (np.asarray(pictures[name], np.float64)[10:21, 20:31, 1] for name in "ac")
    line = np.exp(-0.5 * ((np.arange(11) - 5) / 1.5) ** 2)
    window = np.outer(line, line) / line.sum() ** 2
    mean_a, mean_c = (window * a).sum(), (window * c).sum()
    variances = (window * (a - mean_a) ** 2).sum() + (window * (c - mean_c) ** 2).sum()
    covariance = (window * (a - mean_a) * (c - mean_c)).sum()
    expected = (2 * mean_a * mean_c + 1e-4) * (2 * covariance + 9e-4)
    expected /= (mean_a**2 + mean_c**2 + 1e-4) * (variances + 9e-4)
    value = ssim_map(pictures["a"].astype(float), pictures["c"].astype(float))[10, 20, 1]
    assert_close(value, expected, 1e-9)


def test_ssim_refuses_pictures_smaller_than_its_window():
    with pytest.raises(ValueError, match="11x11"):
        ssim(jnp.zeros((10, 20, 3)), jnp.zeros((10, 20, 3)))


def test_ssim_gradient_is_finite_for_flat_pictures():
    assert_finite_gradients(lambda x: ssim(x, jnp.ones((12, 12, 3))), jnp.ones((12, 12, 3)))


def test_published_psnr():
    data = golden("mip_math")
    assert_close(mse_to_psnr(jnp.asarray(data["psnr.in_mse"])), data["psnr.psnr"], 2e-6)
    back = psnr_to_mse(jnp.asarray(data["psnr.psnr"]))
    np.testing.assert_allclose(back, data["psnr.back_to_mse"], rtol=2e-5)


def test_psnr_of_pictures_does_not_clip():
    image, target = jnp.full((4, 5, 3), 1.3), jnp.full((4, 5, 3), 1.2)
    assert float(psnr(image, target)) == pytest.approx(20, abs=1e-4)


def test_published_average_error():
    data = golden("mip_math")
    value = average_error(*jnp.asarray(data["avg_error.in"]))
    assert_close(value, data["avg_error.out"], 2e-6)


def test_psnr_and_mse_are_inverse():
    x = jnp.array([1e-5, 0.3])
    assert_close(jax.vmap(psnr_to_mse)(jax.vmap(mse_to_psnr)(x)), x, 1e-5)


# --- Exposure and white balance


def test_an_affine_change_of_colours_is_undone():
    image = np.random.default_rng(0).uniform(size=(12, 9, 3)).astype(np.float32)
    target = image @ np.array([[0.8, 0.1, 0.0], [0.0, 1.1, 0.1], [0.05, 0.0, 0.7]]) + [0.1, 0, -0.1]
    assert_close(correct_color(jnp.asarray(image), jnp.asarray(target, jnp.float32)), target, 1e-3)


def test_correction_is_the_best_affine_map():
    """By NumPy's least squares, of colours that no affine map explains."""
    image, target = np.random.default_rng(0).uniform(size=(2, 12, 9, 3))
    rows = np.concatenate([image.reshape(-1, 3), np.ones((108, 1))], axis=1)
    best = rows @ np.linalg.lstsq(rows, target.reshape(-1, 3), rcond=None)[0]
    found = correct_color(*(jnp.asarray(x, jnp.float32) for x in (image, target)))
    assert_close(found.reshape(-1, 3), best, 0, 1e-4)


def test_pictures_of_one_colour_are_corrected_to_the_mean():
    image, target = jnp.full((4, 4, 3), 0.3), jnp.full((4, 4, 3), 0.7)
    assert_close(correct_color(image, target), target, 1e-6)
