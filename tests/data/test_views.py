"""Pictures put together with cameras: arrays, colour spaces, masks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.images import Linear, SRGB
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera.look_at([0, 0, 3], [0, 0, 0], [0, 1, 0], 0.6, 8, 6)
GREY = np.full((6, 8, 3), 0.5, np.float32)


def card(color=(0.2, 0.2, 0.2)):
    lit = sg.Surface(sg.Rectangle(size=[9, 9]), sg.Lambert(color))
    return sg.Scene(sg.Group(card=lit, even=sg.AmbientLight([1.0, 1.0, 1.0])))


def fitted(views):
    schedule = optax.adam(0.1)
    paths = ["card.shader.albedo.color"]
    key = jax.random.key(0)
    scene = sg.fit(card(), views, steps=60, optimizer=schedule, trainable=paths, key=key).scene
    return scene["card"].shader.albedo.color


def test_arrays_are_pictures_in_the_stated_space():
    bytes_ = np.full((6, 8, 3), 128, np.uint8)
    assert type(sg.views(CAMERA, bytes_).space) is SRGB
    assert isinstance(sg.views(CAMERA, GREY, space=Linear()).space, Linear)
    two = sg.views([CAMERA, CAMERA], np.stack([GREY, GREY]), space=SRGB())
    assert two.frames == 2
    with pytest.raises(ValueError, match="says itself"):
        sg.views(CAMERA, sg.Image(GREY, space=SRGB()), space=Linear())


@pytest.mark.parametrize("given", [GREY, sg.Image(GREY)], ids=["array", "image"])
def test_numbers_without_a_space_are_in_that_of_the_scene(given):
    with pytest.warns(UserWarning, match="taken to be in the scene's, Linear"):
        assert_close(fitted(sg.views(CAMERA, given)), GREY[0, 0], 0.02)


def test_numbers_with_a_space_are_converted():
    assert_close(fitted(sg.views(CAMERA, GREY, space=SRGB())), [0.2140] * 3, 0.02)


def test_masks_leave_pixels_out():
    picture = GREY.copy()
    picture[:, 4:] = 0.9
    mask = np.zeros((6, 8), bool)
    mask[:, :4] = True
    views = sg.views(CAMERA, picture, space=Linear(), weights=mask)
    assert_close(fitted(views), [0.5] * 3, 0.02)
    weighted = sg.views(CAMERA, picture, space=Linear(), weights=np.where(mask, 3.0, 1.0))
    assert_close(fitted(weighted), [0.6] * 3, 0.05)


def test_weights_are_those_of_the_drawn_pixels():
    small = CAMERA.resized(4, 3)
    weights = [np.arange(48.0).reshape(6, 8), 100 + np.arange(12.0).reshape(3, 4)]
    pictures = [np.stack([w] * 3, -1) / 200 for w in weights]
    views = sg.views([CAMERA, small], pictures, space=Linear(), weights=weights)
    batch = eqx.filter_jit(lambda batches: batches.batch(0, 0))(RayBatches(views, 64))
    assert_close(batch.lossmult, 200 * batch.rgb[:, 0], 1e-6)
    assert jnp.max(batch.lossmult) > 100


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((8, 6)), "6 rows and 8 columns"),
        ([np.ones((6, 8))] * 2, "2 arrays of weights for 1"),
        (-np.ones((6, 8)), "not negative"),
        (np.zeros((6, 8)), "not all zero"),
        (np.full((6, 8), np.nan), "finite"),
    ],
)
def test_what_is_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        sg.views(CAMERA, GREY, space=Linear(), weights=weights)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_colours_that_no_loss_can_compare_with(value):
    """They are found by picture, and not after a fit has failed."""
    camera = sg.PerspectiveCamera.look_at([0, -3, 1], [0, 0, 0], [0, 0, 1], 0.8, 8, 6)
    good = np.zeros((6, 8, 3), np.float32)
    bad = good.copy()
    bad[2, 5, 1] = value
    with pytest.raises(ValueError, match="image 1 has 1 pixels .* row 2 and column 5"):
        sg.views([camera, camera], [good, bad])
