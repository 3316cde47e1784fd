"""Training pictures that a fit shows badly are named; the others are not."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.runs import TimePlan
from scenegraph.runs._residuals import describe_outliers, find_outliers, residual_rays
from support.blender_folder import eyes, look_at


WIDTH, HEIGHT = 100, 70


@pytest.fixture(scope="module")
def fitted() -> tuple[sg.Scene, sg.Views]:
    """A scene of smooth colours all around, and twelve pictures of it."""
    scene = sg.Scene(
        sg.Group(fog=sg.Volume(sg.fields.ConstantFog(0.0, [0.0, 0.0, 0.0]), sg.Box())),
        background=[0.4, 0.5, 0.6],
    )
    cameras = [sg.PerspectiveCamera(sg.Pose(look_at(eye)), 60.0, WIDTH, HEIGHT) for eye in eyes(12)]
    random = np.random.default_rng(0)
    truth = np.full((12, HEIGHT, WIDTH, 3), [0.4, 0.5, 0.6])
    truth += random.uniform(0.005, 0.007, (12, 1, 1, 1))
    truth[5] += 0.2  # another exposure
    truth[8, :, :50] = 0.0  # a wrong camera
    names = tuple(f"{index:02d}.jpg" for index in range(12))
    views = sg.views(cameras, list(truth.astype(np.float32)), space=sg.images.SRGB())
    return scene, dataclasses.replace(views, names=names)


def test_outliers_are_named_with_their_psnr(fitted):
    scene, views = fitted
    found = find_outliers(scene, views, TimePlan())
    assert found is not None and [x["name"] for x in found["outliers"]] == ["08.jpg", "05.jpg"]
    # 33 x 23 blocks of 3 x 3 pixels; one column and one row are cut off.
    assert found["size"] == [33, 23] and residual_rays(views) == 12 * 33 * 23
    image = np.asarray(sg.render(scene, views.camera(5)).rgb)
    error = np.asarray(views.image(5).rgb)[:69, :99] - image[:69, :99]
    blocks = error.reshape(23, 3, 33, 3, 3).mean(axis=(1, 3))
    expected = -10 * np.log10(np.mean(blocks**2))
    assert abs(found["outliers"][1]["psnr"] - expected) < 1e-3
    text = describe_outliers(found)
    # Nothing but the background is seen.
    assert found["empty"] and text.startswith("The scene is empty: no training picture shows")
    assert "- 08.jpg: " in text and "07.jpg" not in text and "12 training pictures" in text


def test_what_masks_leave_out_makes_no_outlier(fitted):
    scene, views = fitted
    weights = np.ones((12, HEIGHT, WIDTH), bool)
    weights[8, :, :50] = False
    masked = dataclasses.replace(views, weights=jnp.asarray(weights.reshape(-1)))
    found = find_outliers(scene, masked, TimePlan())
    assert found is not None and [x["name"] for x in found["outliers"]] == ["05.jpg"]


def test_none_is_named_where_all_are_alike(fitted):
    scene, views = fitted
    truth = np.tile(np.array([0.45, 0.5, 0.6], np.float32), (12 * HEIGHT * WIDTH, 1))
    found = find_outliers(scene, dataclasses.replace(views, pixels=jnp.asarray(truth)), TimePlan())
    assert found is not None and found["outliers"] == []
    assert describe_outliers(found).endswith("None is far below it.")


def test_a_short_limit_leaves_no_time(fitted):
    import time

    assert find_outliers(*fitted, TimePlan(time.monotonic() + 20, 20)) is None


def test_a_scene_that_shows_something_is_not_empty(fitted):
    _, views = fitted
    ball = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere(radius=0.2), [0.4, 0.5, 0.6])))
    found = find_outliers(ball, views, TimePlan())
    assert found is not None and not found["empty"]
    assert describe_outliers(found).startswith("The median PSNR")
