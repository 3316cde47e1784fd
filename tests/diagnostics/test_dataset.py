"""The data set that the library makes for itself."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import find_bounds
from scenegraph.diagnostics import make_dataset, straight_rgba, toy_scene
from support.helpers import assert_close


SCALE = 7.0


@pytest.fixture(scope="module")
def scaled():
    """The toy scene, seven times as large."""
    toy = toy_scene()
    root = sg.Group(toy=sg.Transformed(toy.root, sg.Similarity(scale=SCALE)))
    return sg.Scene(root, background=toy.background)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, scaled):
    """Its data set: 32 training views of 16x16 pixels."""
    path = tmp_path_factory.mktemp("data") / "set"
    return make_dataset(
        path, scene=scaled, size=16, train=32, val=1, test=2, distance=4 * SCALE, seed=3
    )


@pytest.mark.slow
def test_splits_have_their_numbers_of_pictures(folder):
    views = [sg.load_blender(folder, split) for split in ("train", "val", "test")]
    assert [v.frames for v in views] == [32, 1, 2]
    assert views[0].pixels.shape == (32 * 16 * 16, 4) and views[0].pixels.dtype == jnp.uint8


@pytest.mark.slow
def test_pictures_are_renders_of_the_scene(folder, scaled):
    views = sg.load_blender(folder, "test", near=0.4 * 4 * SCALE, far=1.6 * 4 * SCALE)
    for frame in range(2):
        image = sg.render(scaled, views.camera(frame), sg.Hierarchical((64, 128)))
        # Colour and opacity are rounded each, by at most half a step.
        assert_close(image.rgb, views.image(frame).rgb, 0, 1.01 / 255)
        assert_close(image.alpha, views.image(frame).alpha, 0, 0.51 / 255)
        assert 0.05 < np.mean(image.alpha) < 0.9


@pytest.mark.slow
def test_cameras_are_above_the_scene_and_all_different(folder):
    views = sg.load_blender(folder)
    places = np.stack([views.camera(n).pose.offset() for n in range(32)])
    assert_close(np.linalg.norm(places, axis=1), np.full(32, 4 * SCALE), 1e-5)
    assert places[:, 2].min() > 0 and places[:, 2].max() - places[:, 2].min() > SCALE
    assert len(np.unique(places.round(3), axis=0)) == 32
    test_places = sg.load_blender(folder, "test").cameras.pose
    assert not np.isin(np.asarray(test_places.base.value)[:, 0, 3], places[:, 0]).any()


@pytest.mark.slow
def test_box_holds_the_clouds_wherever_they_are(folder):
    shift = np.array([100.0, -50.0, 20.0])
    listing = json.loads((folder / "transforms_train.json").read_text())
    for frame in listing["frames"]:
        matrix = np.array(frame["transform_matrix"])
        matrix[:3, 3] += shift
        frame["transform_matrix"] = matrix.tolist()
    moved = folder / "transforms_moved.json"
    moved.write_text(json.dumps(listing))
    lower, upper = find_bounds(sg.load_blender(folder, "moved"))
    lower, upper = (lower - shift) / SCALE, (upper - shift) / SCALE
    # Slab and pillar. A pixel is 0.18 wide; the box may be three of them too large at any side.
    low, high = np.array([-0.7, -0.7, -0.62]), np.array([0.7, 0.7, 0.6])
    assert np.all(lower <= low) and np.all(lower >= low - 0.6)
    assert np.all(upper >= high) and np.all(upper <= high + 0.6)


@pytest.mark.slow
def test_toy_scene_stays_inside_its_cube():
    """No camera sees anything where a line passes the cube that the documentation names."""
    toy = toy_scene()
    eye, up = [0.0, -4.0, 0.0], [0.0, 0.0, 1.0]
    camera = sg.OrthographicCamera.look_at(eye, [0.0] * 3, up, 4.0, 24, 24)
    alpha = np.array(sg.render(toy, camera, sg.Hierarchical((64, 64))).alpha)
    assert alpha[6:18, 6:18].max() > 0.9
    alpha[6:18, 6:18] = 0
    assert alpha.max() < 0.02


def test_straight_colours_are_those_of_the_cloud_alone():
    fog = sg.Volume(sg.fields.ConstantFog(0.5, [0.2, 0.4, 0.6]), sg.Box([-9.0] * 3, [9.0] * 3))
    scene = sg.Scene(sg.Group(fog=fog), background=[0.0, 0.0, 0.0])
    camera = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.7, 4, 4, 1.0, 2.0)
    image = sg.render(scene, camera)
    rgba = straight_rgba(image)
    assert_close(rgba[..., 3], np.round(255 * np.asarray(image.alpha)), 0, 1)
    assert 80 < rgba[..., 3].min() < rgba[..., 3].max() < 180
    assert_close(rgba[..., :3], np.broadcast_to([51, 102, 153], (4, 4, 3)), 0, 1)


def test_linear_colours_are_encoded_after_they_are_divided_by_the_opacity():
    light, alpha = jnp.full((1, 1, 3), 0.25 * 0.2), jnp.full((1, 1), 0.25)
    image = sg.images.Image(light, alpha, space=sg.images.Linear())
    encoded = 255 * np.asarray(sg.images.linear_to_srgb(jnp.float32(0.2)))
    assert_close(straight_rgba(image)[0, 0], [*[np.round(encoded)] * 3, 64], 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "`size` must be at least 1 pixel; got 0"),
        ({"distance": -1.0}, "`distance` must be positive; got -1.0"),
        ({"val": -1}, "`val`, a number of views"),
        ({"outputs": ("albedo",)}, "no output 'albedo'"),
    ],
)
def test_wrong_numbers_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        make_dataset(tmp_path / "set", **options)
    assert not (tmp_path / "set").exists()
