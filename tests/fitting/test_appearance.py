"""Appearance codes of pictures: what they change, what they do not, and that fits find them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.fitting import with_corrections
from scenegraph.rays import Gaussian
from scenegraph.rendering import render_rays
from scenegraph.settings import prepare, preset
from support.helpers import assert_close


KEY = jax.random.key(0)
SIZE, CODES = 12, 2
EYES = [[0.0, -3.0, 1.0], [3.0, 0.0, 1.0], [0.0, 3.0, 1.0], [-3.0, 0.5, 1.0]]
CAMERAS = [sg.PerspectiveCamera.look_at(eye, [0] * 3, [0, 0, 1], 0.7, SIZE, SIZE) for eye in EYES]


def field(appearance: int = CODES) -> sg.fields.GridField:
    grid = sg.encodings.Grid((4, 8), 2, 2**9, key=KEY)
    grid = eqx.tree_at(lambda g: g.table, grid, 3e3 * grid.table)
    return sg.fields.GridField(grid, 16, 3, appearance=appearance, key=KEY)


def scene_of(field: sg.fields.GridField) -> sg.Scene:
    box = sg.Box([-1.0] * 3, [1.0] * 3)
    return sg.Scene(sg.Group(grid=sg.Volume(field, box)), integrator=sg.Hierarchical((12,)))


@eqx.filter_jit
def picture(scene: sg.Scene, camera: sg.PerspectiveCamera, code=None) -> jax.Array:
    rays = sg.data.pixel_rays(camera)
    if code is not None:
        codes = jnp.broadcast_to(code, (SIZE * SIZE, len(code)))
        rays = dataclasses.replace(rays, appearance=codes)
    return render_rays(scene, rays, scene.integrator)[-1].rgb.reshape(SIZE, SIZE, 3)


def test_codes_change_colours_and_not_densities():
    own, view = field(), jnp.array([0.0, 1.0, 0.0])
    gaussian = Gaussian(jnp.array([0.1, 0.2, -0.3]), view, jnp.array(1e-3), jnp.array(1e-3))
    at = lambda code: own.medium(gaussian, own.condition_on(view, code))
    none, zero, one = at(None), at(jnp.zeros(CODES)), at(jnp.ones(CODES))
    assert_close(none.rgb, zero.rgb, 0, 1e-7)
    assert_close(own(gaussian, view).rgb, zero.rgb, 0, 1e-7)
    assert one.density == none.density == own.density(gaussian)
    assert jnp.max(jnp.abs(one.rgb - none.rgb)) > 0.01


def test_fields_without_codes_ignore_them():
    plain = scene_of(field(appearance=0))
    assert_close(picture(plain, CAMERAS[0], jnp.ones(3)), picture(plain, CAMERAS[0]), 0, 1e-7)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`appearance` must be at least 0; got -1"):
        field(appearance=-1)
    with pytest.raises(ValueError, match="takes appearance codes of 2 numbers; got 3"):
        picture(scene_of(field()), CAMERAS[0], jnp.ones(3))


def test_codes_pass_transforms():
    turned = sg.Transformed(scene_of(field()).root, sg.Similarity([0.1, 0.0, 0.0], scale=0.8))
    moved = sg.Scene(turned, integrator=sg.Hierarchical((12,)))
    change = picture(moved, CAMERAS[0], jnp.ones(CODES)) - picture(moved, CAMERAS[0])
    assert np.max(np.abs(change)) > 0.01


def test_codes_of_pictures_are_found():
    """Of a known field; the pictures are rendered with codes whose mean is zero."""
    codes = jnp.array([[0.5, -0.8], [-1.0, 0.3], [0.2, 0.9], [0.3, -0.4]])
    known = scene_of(field())
    seen = [picture(known, camera, code) for camera, code in zip(CAMERAS, codes, strict=True)]
    views = sg.views(CAMERAS, seen, space=sg.images.SRGB())
    scene, views = with_corrections(known, views, poses=False, appearance=CODES)
    where, adam = ["capture.appearances"], optax.adam(optax.cosine_decay_schedule(0.1, 150))
    loss, how = sg.fitting.RenderLoss(jitter=False), {"optimizer": adam, "steps": 150, "key": KEY}
    result = sg.fit(scene, views, trainable=where, loss=loss, **how)
    assert_close(result.scene["capture"].codes(), codes, 0, 0.03)
    # A picture by itself is that of the mean code.
    assert_close(picture(result.scene, CAMERAS[0]), picture(known, CAMERAS[0]), 0, 1e-6)


def test_codes_are_drawn_to_none():
    capture = sg.scene.Capture(CAMERAS[0], appearances=jnp.full((4, 2), 3.0))
    assert float(capture.penalty()) == pytest.approx(9e-6)
    assert_close(capture.codes(), jnp.zeros((4, 2)), 0, 1e-7)


def test_a_fit_has_a_code_for_every_picture():
    views = sg.views(CAMERAS, [picture(scene_of(field()), camera) for camera in CAMERAS])
    small = preset("fast", appearance=3, resolutions=(4, 8), occupancy=8, batch_size=64, steps=3)
    parts = prepare(small, views)
    assert parts.scene["capture"].appearances.shape == (4, 3)
    result = sg.fit(
        parts.scene,
        parts.batches,
        loss=parts.loss,
        optimizer=parts.optimizer,
        steps=3,
        key=parts.key,
    )
    assert np.all(np.max(np.abs(result.scene["capture"].appearances), axis=1) > 0)
    without = prepare(small.replace(appearance=0), views).scene
    assert "capture" not in without.root.children


def test_what_is_fitted_is_said():
    told = preset("fast").corrections.describe(4)
    assert told == "fitted with the scene: an appearance code of 4 numbers for every picture"
