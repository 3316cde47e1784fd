"""From settings to the parts of a fit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import AllImages, Ball, IgnoreAlpha, Random, SingleImage, Solid
from scenegraph.pixels import PixelList
from scenegraph.rays import CylinderBeam
from scenegraph.samplers import Disparity
from scenegraph.scene import named_leaves
from scenegraph.settings import describe_cut, Grid, make_scene, preset, PRESETS
from support.blender_folder import ball_picture, eyes, look_at, write_ball, write_split
from support.helpers import assert_close
from support.llff_folder import facing_poses, write_llff


KEY = jax.random.key(0)
SMALL = preset("tiny", width=8, depth=2, view_width=4, samples=(4, 4))
GRID_LAYERS = ("trunk", "geometry", "head", "view", "rgb")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_ball(tmp_path_factory.mktemp("ball"), {"train": 4, "test": 1}, center=(9, 0, 0))


def test_unknown_preset_names_the_nearest():
    with pytest.raises(ValueError, match="no preset 'minpnerf'; did you mean 'mipnerf'.*tiny"):
        preset("minpnerf")


@pytest.mark.parametrize("name", PRESETS)
def test_only_the_network_of_a_preset_is_trained(name):
    grid = isinstance(preset(name).method, Grid)
    config = preset(
        name, width=8, **({"occupancy": 4, "capacity": 2**10} if grid else {"depth": 2})
    )
    box = (np.zeros(3), np.ones(3)) if config.data.bounds != "none" else None
    empty = np.zeros((4, 4, 4), bool) if grid else None
    leaves = named_leaves(make_scene(config, box, empty, key=KEY))
    free = {path for path, _, frozen in leaves if not frozen}
    names = ("encoding", *GRID_LAYERS) if grid else ("network",)
    assert {path.split(".")[2] for path in free} == set(names)
    assert {path for path, _, _ in leaves if ".field." in path} == free


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("mipnerf")])
def test_published_preset_has_the_published_size(name):
    scene = make_scene(preset(name), None, key=KEY)
    assert sg.scene.count_parameters(scene) == 612_740
    assert scene.root.children["field"].bounds is None


# The published configuration files, setting by setting, in our words.
GINS = {
    "mipnerf": {"batching": "single_image"},
    "mipnerf-noextras": {
        "batching": "single_image",
        "density_activation": "relu",
        "density_bias": 0.0,
        "rgb_padding": 0.0,
    },
    "mipnerf-noipe": {"batching": "single_image", "integrated": False},
    "mipnerf-llff": {
        "background": "black",
        "near": 0.0,
        "far": 1.0,
        "downscale": 4,
        "ray_shape": "cylinder",
        "density_noise": 1.0,
    },
    "mipnerf-multiscale": {"near": None, "far": None},
    "mipnerf-multiscale-noextras": {
        "near": None,
        "far": None,
        "density_activation": "relu",
        "density_bias": 0.0,
        "rgb_padding": 0.0,
    },
    "mipnerf-multiscale-noipe": {"near": None, "far": None, "integrated": False},
    "mipnerf-multiscale-noloss": {"near": None, "far": None, "area_weights": False},
}
# `Config` and `MipNerfModel` of the published code, where a configuration file says nothing.
PUBLISHED = {
    "batching": "all_images",
    "batch_size": 4096,
    "background": "white",
    "near": 2.0,
    "far": 6.0,
    "hold_every": 8,
    "spherify": False,
    "downscale": 1,
    "steps": 1_000_000,
    "learning_rate": 5e-4,
    "final_learning_rate": 5e-6,
    "delay_steps": 2500,
    "delay_multiplier": 0.01,
    "max_gradient_value": 0.0,
    "max_gradient_norm": 0.0,
    "weight_decay": 0.0,
    "coarse_weight": 0.1,
    "area_weights": True,
    "jitter": True,
    "samples": (128, 128),
    "resample_padding": 0.01,
    "stop_level_gradient": True,
    "use_view": True,
    "disparity": False,
    "ray_shape": "cone",
    "min_degree": 0,
    "max_degree": 16,
    "view_degree": 4,
    "density_activation": "softplus",
    "density_bias": -1.0,
    "density_noise": 0.0,
    "rgb_padding": 0.001,
    "integrated": True,
    "depth": 8,
    "width": 256,
    "view_depth": 1,
    "view_width": 128,
    "skip": 4,
    # Where the code slips.
    "sum_channels": True,
    "straight_alpha": True,
    "empty_depth_near": True,
    "published_radii": True,
}


@pytest.mark.parametrize("name", GINS)
def test_published_configurations(name):
    expected, config = PUBLISHED | GINS[name], preset(name).flat()
    assert {key: config[key] for key in expected} == expected
    assert {name for name in PRESETS if name.startswith("mipnerf")} == set(GINS)


def test_found_box_becomes_the_unit_cube_of_the_field(folder):
    views = SMALL.data.load(folder, "train")
    box = SMALL.data.find_box(views)
    node = make_scene(SMALL, box, key=KEY).root.children["field"]
    inner, moved = sg.scene.thaw(node.child).bounds, sg.scene.thaw(node.transform)
    assert_close(jnp.max(jnp.abs(jnp.stack([inner.lower, inner.upper]))), 1.0, 1e-6)
    corners = jnp.stack([moved.point(inner.lower), moved.point(inner.upper)])
    assert_close(corners, np.stack(box), 1e-5)


def test_no_box_for_the_published_method(folder):
    config = SMALL.replace(bounds="none")
    assert config.data.find_box(config.data.load(folder, "train")) is None


@pytest.mark.parametrize(
    "background, split, kind",
    [("white", "train", Solid), ("random", "train", Random), ("random", "test", Solid)],
)
def test_held_out_pictures_are_never_on_random_colours(folder, background, split, kind):
    views = SMALL.replace(background=background).data.load(folder, split)
    assert type(views.backdrop) is kind


def test_black_is_black_in_data_and_scene(folder):
    config = SMALL.replace(background="black")
    views = config.data.load(folder, "train")
    scene = make_scene(config, None, key=KEY)
    ray = views.camera(0).ray(jnp.array([0.5, 0.5]))
    assert views.image(0).rgb[0, 0].tolist() == [0.0, 0.0, 0.0]
    assert sg.scene.thaw(scene).background(ray).tolist() == [0.0, 0.0, 0.0]
    assert not isinstance(views.backdrop, IgnoreAlpha)


@pytest.mark.parametrize(
    "batching, boxed, kind",
    [
        ("all_images", True, PixelList),
        ("all_images", False, AllImages),
        ("single_image", True, SingleImage),
    ],
)
def test_which_pixels_a_batch_has(folder, batching, boxed, kind):
    config = SMALL.replace(batching=batching, batch_size=7)
    views = config.data.load(folder, "train")
    batches = config.training.make_batches(views, config.data.find_box(views) if boxed else None)
    assert type(batches.choice) is kind and batches.size == 7


def test_options_reach_field_integrator_and_loss():
    config = SMALL.replace(
        use_view=False,
        density_activation="relu",
        density_noise=0.5,
        rgb_padding=0.0,
        samples=(3, 5, 7),
        ray_shape="cylinder",
        disparity=True,
        stop_level_gradient=False,
        weight_decay=0.1,
        jitter=False,
        coarse_weight=0.3,
    )
    field, integrator, loss = (
        config.method.make_field(key=KEY),
        config.method.make_integrator(None),
        config.training.make_loss(),
    )
    assert field.view_encoding is None and field.output.density_activation is jax.nn.relu
    assert (field.output.density_noise, field.output.rgb_padding) == (0.5, 0.0)
    assert integrator.samples == (3, 5, 7) and not integrator.stop_gradient
    assert isinstance(integrator.beam, CylinderBeam) and isinstance(integrator.spacing, Disparity)
    assert (loss.weight_decay, loss.jitter, loss.loss.coarse_weight) == (0.1, False, 0.3)


# --- Formats


@pytest.mark.slow
@pytest.mark.parametrize("area_weights", [True, False])
def test_weights_of_small_pictures_are_honoured_or_not(folder, tmp_path, area_weights):
    sg.data.convert_multiscale(folder, tmp_path / "data", 2)
    config = SMALL.replace(area_weights=area_weights)
    views = config.data.load(tmp_path / "data", "train")
    assert views.lossmult.tolist() == ([1.0, 4.0] if area_weights else [1.0, 1.0]) * 4
    batch = config.training.make_batches(views, None).batch(0, 0)
    assert set(np.unique(batch.lossmult)) == ({1.0, 4.0} if area_weights else {1.0})


def test_format_is_told_by_the_files(folder, tmp_path):
    config = SMALL.replace(near=1.0)
    assert config.data.load(folder, "test").names == ("./test/r_0",)
    write_llff(tmp_path, facing_poses(9), np.zeros((9, 4, 6, 3), np.uint8))
    facing = SMALL.replace(hold_every=3).data.load(tmp_path, "test")
    assert facing.frames == 3 and isinstance(facing.cameras, sg.cameras.NDCCamera)
    plain = SMALL.replace(ndc=False).data.load(tmp_path, "test")
    assert isinstance(plain.cameras, sg.PerspectiveCamera)
    (tmp_path / "metadata.json").write_text("{}")
    # That is no listing of pictures: it hides none.
    assert isinstance(SMALL.data.load(tmp_path, "test").cameras, sg.cameras.NDCCamera)


def test_options_that_a_format_does_not_have(folder):
    with pytest.raises(ValueError, match="Blender data, for which there is no 'hold_every'"):
        sg.load_data(folder, hold_every=3)
    with pytest.raises(ValueError, match="`spherify` is for LLFF data"):
        SMALL.replace(spherify=True).data.load(folder, "train")


# --- The box


def test_box_that_leaves_much_out_is_mentioned_with_a_remedy(tmp_path):
    """The box that is found leaves nothing out, though a camera is close by; a smaller one does."""
    poses = [look_at(eye) for eye in [*eyes(3), (0.0, -1.0, 0.3)]]
    pictures = [ball_picture(pose, 16)[..., :3] for pose in poses]
    write_split(tmp_path, "train", pictures, poses)
    views, data = sg.load_blender(tmp_path), SMALL.data
    assert describe_cut(views, data.find_box(views), 1.0) is None
    small = SMALL.replace(box_scale=0.25).data.find_box(views)
    said = describe_cut(views, small, 0.25)
    assert said is not None and "% of the pixels of the pictures look past that box" in said
    assert "./train/r_0 " in said
    scale = float(said.split("`--box-scale ")[1].split("`")[0])
    assert scale > 0.25
    larger = SMALL.replace(box_scale=scale).data.find_box(views)
    assert describe_cut(views, larger, scale) is None
    lower, upper = data.find_box(views)
    assert_close(larger[1] - larger[0], scale * (upper - lower))
    assert_close(larger[1] + larger[0], upper + lower, 1e-5, 1e-6)


def test_box_about_all_that_is_opaque_is_not_mentioned(folder):
    views = sg.load_blender(folder)
    assert describe_cut(views, SMALL.data.find_box(views), 1.0) is None
    with pytest.raises(ValueError, match="`box_scale`.* must be above 0, and finite; got 0"):
        SMALL.replace(box_scale=0.0).data.find_box(views)
    smaller = SMALL.replace(box_scale=0.3).data.find_box(views)
    said = describe_cut(views, smaller, 0.3)
    assert said is not None and "opaque pixels" in said


def test_forward_facing_cameras_look_past_no_box(tmp_path):
    shape = 4, 12, 16, 3
    write_llff(tmp_path, facing_poses(4), np.zeros(shape, np.uint8))
    views = sg.load_llff(tmp_path, hold_every=4)
    assert describe_cut(views, SMALL.data.find_box(views), 1.0) is None


def test_rays_begin_wide_where_a_fit_draws_fewer_pixels_than_there_are(folder, monkeypatch):
    config = preset("fast", batch_size=8)
    views, training = config.data.load(folder), config.training
    box = np.array([8.0, -1, -1]), np.array([10.0, 1, 1])
    assert training.make_batches(views, box).annealing is None  # There are few.
    monkeypatch.setattr("scenegraph.settings._training._WIDE_PIXELS", 1)
    batches = training.make_batches(views, box)
    assert isinstance(batches.choice, PixelList) and batches.annealing is not None
    assert batches.annealing.start == 4.0
    # An epoch are so many steps as draw all pixels that see the box.
    assert batches.annealing.epoch == batches.choice.indices.shape[0] / 8
    narrow = dataclasses.replace(training, start_width=1.0)
    assert narrow.make_batches(views).annealing is None
    assert training.make_batches(views, Ball(np.zeros(3), 1.0)).annealing is None
