"""Pictures of different sizes in one store: nobody takes one for another's size."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.cameras import focal_from_fov, MovedCamera
from scenegraph.data import find_bounds, find_empty_cells, pixel_rays, RayBatches
from scenegraph.pixels import pixels_through, stack_cameras
from scenegraph.runs import (
    evaluate,
    open_run,
    PathContext,
    PathRequest,
    PATHS,
    summarise_cameras,
)
from support.blender_folder import ball_picture, eyes, FOV_X, look_at
from support.helpers import assert_close


SIZES = [(24, 24), (12, 12), (12, 8), (24, 24), (12, 8)]
POSES = [look_at(eye) for eye in eyes(5)]


def camera_of(pose, width, height):
    focal = focal_from_fov(FOV_X, width)
    return sg.PerspectiveCamera(sg.Pose(pose), focal, width, height, near=2, far=6)


CAMERAS = [camera_of(pose, *size) for pose, size in zip(POSES, SIZES, strict=True)]


@pytest.fixture(scope="module")
def views() -> sg.Views:
    """RGBA pictures of a ball; one is not square."""
    cut = {24: slice(None), 12: slice(None), 8: slice(2, 10)}
    pictures = [
        ball_picture(pose, width)[cut[height]]
        for pose, (width, height) in zip(POSES, SIZES, strict=True)
    ]
    blank = sg.views(CAMERAS, [sg.Image(jnp.zeros((h, w, 3))) for w, h in SIZES])
    pixels = jnp.concatenate([jnp.asarray(x.reshape(-1, 4)) for x in pictures])
    return dataclasses.replace(blank, pixels=pixels)


def test_every_picture_has_its_camera(views):
    for frame, camera in enumerate(CAMERAS):
        mine = views.camera(frame)
        assert (mine.width, mine.height) == SIZES[frame]
        assert jax.tree.structure(mine) == jax.tree.structure(camera)
        assert all(map(jnp.array_equal, jax.tree.leaves(mine), jax.tree.leaves(camera)))


def test_flat_rays_are_those_of_each_camera(views):
    rays = eqx.filter_jit(lambda views: views.rays(jnp.arange(views.pixels.shape[0])))(views)
    expected = [eqx.filter_jit(pixel_rays)(camera) for camera in CAMERAS]
    expected = jax.tree.map(lambda *parts: jnp.concatenate(parts), *expected)
    for mine, theirs in zip(jax.tree.leaves(rays), jax.tree.leaves(expected), strict=True):
        assert_close(mine, theirs, 1e-6, 1e-7)


def test_pictures_have_their_shapes(views):
    for frame, (width, height) in enumerate(SIZES):
        image = views.image(frame)
        assert (image.width, image.height) == (width, height)
        assert float(image.alpha[height // 2, width // 2]) == 1


def test_a_traced_number_is_answered_with_the_leaves(views):
    focal = jax.jit(lambda views, frame: views.camera(frame).focal)(views, 4)
    assert_close(focal, CAMERAS[4].focal)


def test_box_and_hull_are_about_the_ball(views):
    lower, upper = find_bounds(views)
    assert np.all(lower < -0.45) and np.all(upper > 0.45)
    assert np.all(lower > -2) and np.all(upper < 2)
    corners = np.full(3, -1.0), np.full(3, 1.0)
    empty = find_empty_cells(views, *corners, 8)
    assert not empty[3:5, 3:5, 3:5].any() and empty.any()
    listed = np.asarray(pixels_through(views, *corners).indices)
    starts = np.asarray(views.starts())
    for start, (width, height) in zip(starts, SIZES, strict=True):
        assert start + height // 2 * width + width // 2 in listed


@pytest.mark.slow
def test_evaluation_renders_each_size(views):
    fog = sg.fields.ConstantFog(0.5, [0.2, 0.3, 0.4])
    scene = sg.Scene(sg.Group(fog=sg.Volume(fog, sg.Box([-0.5] * 3, [0.5] * 3))))
    shapes = []
    scores = evaluate(scene, views, seen=lambda _, image, truth: shapes.append(image.rgb.shape))
    assert shapes == [(height, width, 3) for width, height in SIZES]
    assert np.isfinite([score.psnr for score in scores]).all()


def test_films_are_seen_by_the_largest(views):
    camera = PATHS["orbit"](
        PathContext(open_run("none"), summarise_cameras(views)), PathRequest(frames=3)
    )[1]
    assert (camera.width, camera.height) == (24, 24)


# --- Resizing


@pytest.mark.parametrize(
    "camera",
    [
        CAMERAS[0],
        sg.OrthographicCamera(sg.Pose(POSES[0]), 5.0, 9, 7),
        MovedCamera(sg.Similarity([1, 2, 3], scale=2.0), CAMERAS[0]),
    ],
    ids=lambda camera: type(camera).__name__,
)
def test_resized_sees_the_same_through_every_pixel(camera):
    other = camera.resized(5, 4)
    assert (other.width, other.height) == (5, 4)
    assert (camera.width, camera.height) != (5, 4)
    pixel = jnp.array([3.5, 0.5])
    pairs = zip(*(jax.tree.leaves(x.ray(pixel)) for x in (camera, other)), strict=True)
    assert all(jnp.array_equal(a, b) for a, b in pairs)
    back = other.resized(camera.width, camera.height)
    assert jax.tree.structure(back) == jax.tree.structure(camera)


def test_impossible_size():
    with pytest.raises(ValueError, match="positive integers; got 0, 4"):
        CAMERAS[0].resized(0, 4)


def test_kinds_are_not_mixed():
    with pytest.raises(ValueError, match="differ in kind"):
        stack_cameras([CAMERAS[0], sg.OrthographicCamera(sg.Pose(POSES[0]), 5.0, 9, 7)])


# --- Cameras in a scene


@pytest.mark.slow
def test_cameras_of_a_scene_are_stacked_while_they_are_traced():
    """Two cameras of different sizes, in a scene under `jit` and `grad`: each one's own rays."""
    cameras = {"a": camera_of(POSES[0], 12, 8), "b": camera_of(POSES[1], 6, 10)}
    group = sg.Group(**cameras)

    def first_rays(group):
        stacked = stack_cameras([group.children["a"], group.children["b"]])
        pixel = jnp.array([2.5, 3.5])
        return jax.vmap(lambda camera: camera.ray(pixel).direction)(stacked)

    seen = eqx.filter_jit(first_rays)(group)
    for row, camera in zip(seen, cameras.values(), strict=True):
        assert_close(row, camera.ray(jnp.array([2.5, 3.5])).direction, 1e-6)
    slope = eqx.filter_grad(lambda group: jnp.sum(first_rays(group)))(group)
    assert float(jnp.abs(slope.children["a"].focal)) > 0


def test_a_fit_of_cameras_of_different_sizes():
    fog = sg.Volume(sg.fields.ConstantFog(0.5, [0.2, 0.3, 0.4]), sg.Box([-0.5] * 3, [0.5] * 3))
    scene = sg.Scene(
        sg.Group(fog=fog, a=camera_of(POSES[0], 12, 8), b=camera_of(POSES[1], 6, 10)),
        background=[0, 0, 0],
    )
    pictures = [np.full((8, 12, 3), 60, np.uint8), np.full((10, 6, 3), 60, np.uint8)]
    views = sg.views(["a", "b"], pictures)
    key, optimizer = jax.random.key(0), optax.adam(1e-2)
    views = RayBatches(views, 16)
    result = sg.fit(
        scene, views, trainable=["fog.**", "*.focal"], optimizer=optimizer, steps=2, key=key
    )
    assert int(result.state.step) == 2
    for name, camera in {"a": scene.root.children["a"], "b": scene.root.children["b"]}.items():
        assert float(result.scene.root.children[name].focal) != float(camera.focal)
