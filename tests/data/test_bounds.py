"""Boxes found from cameras and opacities alone."""

import numpy as np
import pytest

import scenegraph as sg
from blender_folder import ball_picture, eyes, look_at, write_ball, write_split
from helpers import assert_close
from scenegraph.data import find_bounds, look_centre


@pytest.mark.parametrize("center, radius", [((0, 0, 0), 0.5), ((100, -50, 20), 3.5)])
def test_box_fits_what_is_opaque(tmp_path, center, radius):
    write_ball(tmp_path, {"train": 24}, size=48, center=center, radius=radius)
    lower, upper = find_bounds(sg.load_blender(tmp_path))
    assert np.all(lower <= np.array(center) - radius)
    assert np.all(upper >= np.array(center) + radius)
    assert np.all(upper - lower <= 1.5 * 2 * radius)


def test_box_does_not_depend_on_scale_and_place(tmp_path):
    boxes = []
    for scale, shift in ((1.0, np.zeros(3)), (7.0, np.array([100.0, -50.0, 20.0]))):
        folder = tmp_path / str(scale)
        write_ball(folder, {"train": 8}, center=shift, radius=0.5 * scale)
        box = np.stack(find_bounds(sg.load_blender(folder)))
        boxes.append((box - shift) / scale)
    # Up to one cell of the grid, for points whose projection falls on the edge of a pixel.
    assert_close(boxes[0], boxes[1], 0, 0.05)


def test_box_of_something_off_the_centre(tmp_path):
    poses = [look_at(eye) for eye in eyes(24)]
    center, radius = np.array([0.5, -0.3, 0.2]), 0.3
    pictures = [ball_picture(pose, 48, center, radius) for pose in poses]
    write_split(tmp_path, "train", pictures, poses)
    lower, upper = find_bounds(sg.load_blender(tmp_path))
    assert np.all(lower <= center - radius) and np.all(upper >= center + radius)
    assert np.all(upper - lower <= 1.6 * 2 * radius)


def test_box_without_opacity_holds_what_the_cameras_see(tmp_path):
    center, radius = np.array([100.0, -50.0, 20.0]), 3.5
    poses = [look_at(center + eye, center) for eye in eyes(6, 8 * radius)]
    pictures = [ball_picture(pose, 16, center, radius)[..., :3] for pose in poses]
    write_split(tmp_path, "train", pictures, poses)
    lower, upper = find_bounds(sg.load_blender(tmp_path))
    assert np.all(lower <= center - radius) and np.all(upper >= center + radius)
    # No camera is inside.
    places = np.array([pose[:3, 3] for pose in poses])
    assert not np.any(np.all((places > lower) & (places < upper), axis=1))


def test_pictures_that_are_opaque_everywhere_are_like_those_without_opacity(tmp_path):
    poses = [look_at(eye) for eye in eyes(3)]
    rgba = np.full((3, 8, 8, 4), 255, np.uint8)
    write_split(tmp_path, "train", rgba, poses)
    write_split(tmp_path, "val", rgba[..., :3], poses)
    boxes = [np.stack(find_bounds(sg.load_blender(tmp_path, split))) for split in ("train", "val")]
    np.testing.assert_array_equal(*boxes)


def test_pictures_of_nothing_still_have_a_box(tmp_path):
    poses = [look_at(eye) for eye in eyes(3)]
    write_split(tmp_path, "train", np.zeros((3, 8, 8, 4), np.uint8), poses)
    lower, upper = find_bounds(sg.load_blender(tmp_path))
    assert np.all(np.isfinite([lower, upper])) and np.all(lower < upper)


def test_two_pictures_are_enough(tmp_path):
    write_ball(tmp_path, {"train": 2}, size=32)
    lower, upper = find_bounds(sg.load_blender(tmp_path))
    assert np.all(lower <= -0.5) and np.all(upper >= 0.5) and np.all(upper - lower < 8)


def test_cameras_that_look_at_one_point():
    target = np.array([3.0, -1.0, 2.0])
    places = target + eyes(5)
    axes = (target - places) / np.linalg.norm(target - places, axis=1, keepdims=True)
    assert_close(look_centre(places, axes), target, 1e-5)


def test_parallel_cameras_have_a_centre_nonetheless():
    places = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    axes = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert_close(look_centre(places, axes), [0.5, 0.0, 0.5], 1e-5)
