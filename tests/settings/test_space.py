"""The choice between a box, all of space and NDC, by cameras and pictures alone."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import Ball, Sightings
from scenegraph.integrators import Guided, OccupancyMarch
from scenegraph.settings import Grid, make_scene, prepare, preset
from scenegraph.settings._space import choose_space
from support.blender_folder import ball_picture, eyes, look_at, write_ball, write_split
from support.helpers import assert_close
from support.llff_folder import facing_poses, write_llff


SMALL = preset("fast", width=8, occupancy=8, capacity=2**10, batch_size=8)


@pytest.fixture(scope="module")
def opaque(tmp_path_factory):
    """A folder of pictures without opacity."""
    folder, poses = tmp_path_factory.mktemp("opaque"), [look_at(eye) for eye in eyes(4)]
    write_split(folder, "train", [ball_picture(pose, 16)[..., :3] for pose in poses], poses)
    return folder


def chosen(views, **changes):
    config, views, why = choose_space(SMALL.replace(**changes), views)
    return config.data.bounds, views, why


def test_pictures_with_opacity_have_a_box(tmp_path):
    views = sg.load_blender(write_ball(tmp_path, {"train": 4}))
    bounds, same, why = chosen(views)
    assert bounds == "found" and same is views and "the pictures have an opacity" in why
    assert isinstance(prepare(SMALL, views).scene["field.integrator"], OccupancyMarch)


def test_pictures_without_opacity_have_all_of_space(opaque):
    views = sg.load_blender(opaque)
    bounds, reaching, why = chosen(views)
    assert bounds == "contracted" and "show something everywhere" in why
    assert_close(reaching.cameras.far, 100 * views.cameras.far)
    parts = prepare(SMALL, views)
    volume = parts.scene.root.children["field"].child
    assert isinstance(parts.box, Ball) and isinstance(volume.integrator, Guided)
    assert volume.bounds is None and volume.far_background
    assert_close(parts.batches.views.cameras.far, 100 * views.cameras.far)


@pytest.mark.slow
def test_points_that_pictures_show_lead_rays_in_all_of_space(opaque):
    views = sg.load_blender(opaque)
    pixels = jax.numpy.arange(64)
    known = dataclasses.replace(views, sightings=Sightings(pixels, jax.numpy.zeros((64, 3))))
    parts = prepare(SMALL, known)
    # 10 over the number of pictures.
    assert parts.batches.sighted == 1 and parts.loss.point_weight == 2.5
    assert np.isfinite(parts.batches.batch(0, 0).points).any(axis=1).sum() == 1
    assert prepare(SMALL.replace(point_weight=0.3), known).loss.point_weight == 0.3
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="at least 0"):
            prepare(SMALL.replace(point_weight=wrong), known)
    for without in (
        prepare(SMALL.replace(point_weight=0.0), known),
        prepare(SMALL.replace(bounds="found"), known),
        prepare(SMALL, views),
    ):
        assert without.batches.sighted == 0 and without.batches.batch(0, 0).points is None
    parts = prepare(SMALL.replace(refine_cameras="poses"), known)
    value, _ = parts.loss(parts.scene, None, parts.batches.batch(0, 0), parts.key)
    assert np.isfinite(value)


def test_rays_reach_as_far_however_the_choice_was_made(opaque):
    """Held-out pictures are loaded with the choice made."""
    _, reaching, _ = chosen(sg.load_blender(opaque))
    loaded = SMALL.replace(bounds="contracted").data.load(opaque, "train")
    assert_close(loaded.cameras.far, reaching.cameras.far)
    kept = SMALL.replace(bounds="contracted", far=7.0).data.load(opaque, "train")
    assert_close(kept.cameras.far, np.full(4, 7.0))


def test_cameras_that_look_outwards_need_all_of_space(tmp_path):
    """With opacities too: each camera looks away from the others."""
    poses = [look_at(eye, target=2 * np.asarray(eye)) for eye in eyes(4)]
    picture = np.full((16, 16, 4), 200, np.uint8)
    picture[:4, :, 3] = 0
    write_split(tmp_path, "train", [picture] * 4, poses)
    bounds, _, why = chosen(sg.load_blender(tmp_path))
    assert bounds == "contracted" and "look outwards" in why


def test_forward_facing_cameras_have_ndc(tmp_path):
    write_llff(tmp_path, facing_poses(4), np.zeros((4, 12, 16, 3), np.uint8))
    views = sg.load_llff(tmp_path, hold_every=4)
    bounds, same, why = chosen(views)
    assert bounds == "found" and same is views and "in NDC" in why
    assert isinstance(prepare(SMALL, views).scene["field.integrator"], Guided)
    with pytest.raises(ValueError, match="pass --no-ndc"):
        SMALL.replace(bounds="contracted").data.find_box(views)


def test_a_choice_of_ones_own_stands(opaque):
    views = sg.load_blender(opaque)
    assert chosen(views, bounds="found")[::2] == ("found", None)
    tiny = preset("tiny")
    assert choose_space(tiny, views)[0].data.bounds == "found"
    with pytest.raises(ValueError, match="this method fills a box or rays"):
        make_scene(tiny, Ball(np.zeros(3), 1.0), key=jax.random.key(0))


def test_cells_as_wide_as_a_pixel_at_the_ball(opaque):
    """Contracted space is four balls wide; a pixel is as wide as its angle at one."""
    views = sg.load_blender(opaque)
    ball = Ball(np.zeros(3), 1.0)
    finest = Grid().adapt(views, ball).resolutions[-1]
    camera = views.camera(0)
    pixels = 4 * float(np.asarray(camera.focal).reshape(-1)[0])
    assert finest == 16 * 2 ** np.clip(round(np.log2(pixels / 16)), 3, 6)


def test_steps_as_long_as_the_finest_cells_are_wide(opaque):
    """Along the diagonal of the box; an occupancy has half as many cells as the finest level."""
    views, box = sg.load_blender(opaque), (np.zeros(3), np.array([1.0, 2.0, 2.0]))
    method = Grid((16, 140), guided=False).adapt(views, box)
    march = method.make_integrator(box)
    assert march.candidates == 210  # the diagonal is 3
    assert march.step == pytest.approx(2.0 / 140)
    assert method.find_empty(views, box).shape == (70, 70, 70)
    assert width(method) == 64
    assert Grid((16, 512), guided=False).adapt(views, box).make_integrator(box).candidates == 256


def test_steps_of_ones_own_stand(opaque):
    views, box = sg.load_blender(opaque), (np.zeros(3), np.ones(3))
    method = Grid((16, 512), candidates=50, occupancy=20, width=8, guided=False).adapt(views, box)
    assert method.make_integrator(box).candidates == 50 and width(method) == 8
    assert method.find_empty(views, box).shape == (20, 20, 20)
    guided = Grid((16, 512), guided=True).adapt(views, box)
    assert guided.make_integrator(box).candidates == 128 and width(guided) == 32
    assert guided.find_empty(views, box).shape == (64, 64, 64)


def width(method: Grid) -> int:
    """The width of the field's hidden layers."""
    field = eqx.filter_eval_shape(lambda key: method.make_field(key=key), jax.random.key(0))
    return field.head.bias.shape[0]
