"""Filters by hand; `render/test_render.py` has them on rendered pictures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.ndimage

import scenegraph as sg
from scenegraph.images import Image, Linear, SRGB
from support.contract_table import FILTERS
from support.helpers import assert_close, assert_finite_gradients, assert_gradients


PICTURE = jnp.linspace(-0.2, 1.3, 2 * 3 * 3).reshape(2, 3, 3)


@eqx.filter_jit
def apply(filter, image):
    return filter(image)


def test_inverting():
    """Colours beyond 0 and 1 too; what is not colour stays."""
    image = Image(PICTURE, alpha=PICTURE[..., 0], depth=PICTURE[..., 1], space=Linear())
    negative = sg.Invert()(image)
    assert_close(negative.rgb, 1 - np.asarray(PICTURE), 1e-6)
    assert negative.alpha is image.alpha and negative.depth is image.depth
    assert negative.space == image.space
    assert_close(sg.Invert()(negative).rgb, PICTURE, 1e-6)


def test_the_gradient_of_inverting():
    gradient = jax.jit(jax.grad(lambda rgb: jnp.sum(PICTURE * sg.Invert()(Image(rgb)).rgb)))(
        PICTURE
    )
    assert_close(gradient, -PICTURE, 1e-6)


# --- Light and numbers

GREY = jnp.asarray(np.random.default_rng(0).uniform(0.05, 0.9, (5, 7, 3)), jnp.float32)


@pytest.mark.parametrize("space", [Linear(), SRGB()])
def test_exposure_multiplies_light(space):
    brighter = sg.Exposure(2)(Image(space.from_linear(GREY), space=space))
    assert_close(space.to_linear(brighter.rgb), 4 * np.asarray(GREY), 1e-5)


def test_gamma_is_a_power_with_finite_gradients_at_black():
    assert_close(apply(sg.Gamma(2.2), Image(GREY)).rgb, np.asarray(GREY) ** 2.2, 1e-6)
    dark = jnp.zeros((1, 2, 3)).at[0, 1].set(-0.1)
    assert_close(apply(sg.Gamma(0.5), Image(dark)).rgb, dark, 0)
    assert_finite_gradients(
        lambda rgb, e: jnp.sum(sg.Gamma(e)(Image(rgb)).rgb), dark, jnp.array(0.5)
    )


def test_tone_mapping():
    """White becomes one, black stays, order is kept, and dim light hardly changes."""
    light = jnp.broadcast_to(jnp.array([0.0, 0.01, 1.0, 4.0])[:, None], (4, 3))[None]
    mapped = apply(sg.ToneMap(4.0), Image(light, space=Linear())).rgb[0, :, 0]
    assert_close(mapped, [0.0, 0.01 * (1 + 0.01 / 16) / 1.01, 17 / 32, 1.0], 1e-6)


GREYS = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 400)])


def test_aces_by_hand():
    """Values of the published fraction, and its tangent at zero below."""
    light = jnp.broadcast_to(jnp.array([-0.14, 0.0, 0.18, 1.0, 4.0])[:, None], (5, 3))[None]
    mapped = apply(sg.AcesToneMap(), Image(light, space=Linear())).rgb[0, :, 0]
    assert_close(mapped, [-0.03, 0.0, 0.086724 / 0.324932, 2.54 / 3.16, 40.28 / 41.38], 1e-6)


def test_agx_is_the_sigmoid_of_its_author():
    """The polynomial's curve, for greys, beside Sobotka's two halves of a sigmoid."""
    light = jnp.asarray(np.broadcast_to(GREYS[:, None], (401, 3))[None], jnp.float32)
    mapped = apply(sg.AgxToneMap(), Image(light, space=Linear())).rgb[0]
    x = np.clip(np.log2(np.maximum(GREYS, 1e-9) / 0.18) + 10, 0, 16.5) / 16.5
    pivot, slope = 10 / 16.5, 2.0
    half = lambda x, p: x / (1 + x**p) ** (1 / p)
    scale = lambda length, p: ((2 * slope * length) ** p - 1) ** (-1 / p) * slope * length
    toe, shoulder = scale(pivot, 3.0), scale(1 - pivot, 3.25)
    below = 0.5 - toe * half(slope * np.maximum(pivot - x, 0) / toe, 3.0)
    above = 0.5 + shoulder * half(slope * np.maximum(x - pivot, 0) / shoulder, 3.25)
    encoded = np.where(x < pivot, below, above)
    assert np.max(np.abs(np.asarray(mapped) ** (1 / 2.2) - encoded[:, None])) < 0.02


def test_agx_fades_bright_colors():
    """A red lamp gets less saturated as it gets brighter, by matrices and a curve in float64."""
    together = np.array(
        [
            [0.842479062253094, 0.0784335999999992, 0.0792237451477643],
            [0.0423282422610123, 0.878468636469772, 0.0791661274605434],
            [0.0423756549057051, 0.0784336, 0.879142973793104],
        ]
    )
    red = np.array([[0.1, 0.01, 0.01], [1.0, 0.1, 0.1], [10.0, 1.0, 1.0], [100.0, 10.0, 10.0]])
    x = np.clip((np.log2(red @ together.T) + 12.47393) / 16.499999, 0, 1)
    powers = x[..., None] ** np.arange(7)
    curve = powers @ [-0.00232, 0.1191, 0.4298, -6.868, 31.96, -40.14, 15.5]
    # The published inverse is rounded: the exact one is near.
    expected = np.maximum(np.linalg.solve(together, curve.T).T, 0) ** 2.2
    mapped = apply(sg.AgxToneMap(), Image(jnp.asarray(red[None]), space=Linear())).rgb[0]
    assert_close(mapped, expected, 0, 2e-3)
    ratio = np.asarray(mapped[:, 0] / mapped[:, 1])
    assert np.all(np.diff(ratio) < 0)


@pytest.mark.parametrize("filter", [sg.AcesToneMap(), sg.AgxToneMap()], ids=["aces", "agx"])
def test_tone_maps_are_monotone_and_finite(filter):
    """In both colour spaces; black stays black, and gradients are finite at black and white."""
    light = jnp.asarray(np.broadcast_to(GREYS[:, None], (401, 3))[None], jnp.float32)
    mapped = np.asarray(apply(filter, Image(light, space=Linear())).rgb[0])
    assert np.all(mapped[0] == 0)
    assert np.all(np.diff(mapped, axis=0) >= -1e-6) and np.all(mapped < 1.04)
    encoded = apply(filter, Image(SRGB().from_linear(light), space=SRGB())).rgb[0]
    assert_close(SRGB().to_linear(encoded), mapped, 1e-3, 1e-5)
    ends = jnp.array([[[0.0, 0.0, 0.0], [-1.0, -1.0, 0.0], [1e4, 1e4, 1e4], [1.0, 0.0, 0.0]]])
    assert_finite_gradients(lambda rgb: jnp.sum(filter(Image(rgb, space=Linear())).rgb), ends)


def test_vignetting_follows_the_cosine():
    """A camera whose corners are seen at 45 degrees, and cos^4 of every pixel's angle."""
    rows, columns = np.arange(5) + 0.5 - 2.5, np.arange(7) + 0.5 - 3.5
    focal = np.hypot(2.5, 3.5)
    cosine = focal / np.sqrt(focal**2 + rows[:, None] ** 2 + columns**2)
    darker = apply(sg.Vignette(1.0), Image(GREY, space=Linear())).rgb
    assert_close(darker, np.asarray(GREY) * cosine[..., None] ** 4, 1e-5)


# --- Blur


def test_blur_is_a_convolution():
    """Away from the edges, where scipy's truncation and ours differ."""
    rgb = jnp.asarray(np.random.default_rng(1).uniform(size=(40, 50, 3)), jnp.float32)
    blurred = apply(sg.Blur(1.5), Image(rgb, alpha=rgb[..., 0]))
    expected = scipy.ndimage.gaussian_filter(np.asarray(rgb, np.float64), (1.5, 1.5, 0), truncate=8)
    inside = (slice(12, -12),) * 2
    assert_close(np.asarray(blurred.rgb)[inside], expected[inside], 1e-5)
    assert_close(blurred.alpha, blurred.rgb[..., 0], 1e-6)


def test_blur_keeps_what_is_even_and_zero_does_nothing():
    even = jnp.full((6, 4, 3), 0.3)
    assert_close(apply(sg.Blur(3.0), Image(even)).rgb, even, 1e-6)
    assert_close(apply(sg.Blur(0.0), Image(GREY)).rgb, GREY, 1e-6)
    assert_finite_gradients(lambda s: jnp.sum(sg.Blur(s)(Image(GREY)).rgb ** 2), jnp.array(0.0))


# --- All of them


@pytest.mark.parametrize("filter", FILTERS, ids=lambda f: type(f).__name__)
def test_gradients(x64, filter):
    filter, rgb = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), (filter, GREY))
    numbers, treedef = jax.tree.flatten(filter)

    def sum_of_squares(rgb, *numbers):
        return jnp.sum(jax.tree.unflatten(treedef, numbers)(Image(rgb)).rgb ** 2)

    assert_gradients(sum_of_squares, rgb, *numbers)


def test_chain_keeps_the_order():
    one_way = sg.Chain((sg.Invert(), sg.Gamma(2.0)))(Image(GREY)).rgb
    assert_close(sg.Chain([sg.Invert(), sg.Gamma(2.0)])(Image(GREY)).rgb, one_way, 0)
    assert_close(sg.Chain(sg.Invert())(Image(GREY)).rgb, sg.Invert()(Image(GREY)).rgb, 0)
    assert_close(one_way, (1 - np.asarray(GREY)) ** 2, 1e-5)


def test_a_picture_is_recovered_from_its_negative():
    """Through a whole chain, by plain gradient descent on its pixels."""
    truth = sg.Picture(Image(GREY), sg.Chain((sg.Invert(), sg.Vignette(0.3), sg.Blur(0.5))))
    target = truth().rgb
    optimizer, start = optax.adam(3e-2), eqx.tree_at(lambda p: p.image.rgb, truth, 0 * GREY + 0.5)
    state = sg.start_state(start, optimizer, key=jax.random.key(0), trainable=pixels_of(start))
    advance = eqx.filter_jit(
        lambda s: sg.step(
            s, target, loss=mean_square, optimizer=optimizer, trainable=pixels_of(start)
        )
    )
    for _ in range(600):
        state, _ = advance(state)
    assert_close(state.model.image.rgb, GREY, 0, 5e-3)


def pixels_of(picture):
    return sg.select(picture, where=lambda p: p.image.rgb)


def mean_square(picture, state, target, key):
    return jnp.mean((picture().rgb - target) ** 2), state
