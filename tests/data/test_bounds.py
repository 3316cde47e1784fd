"""Boxes found from cameras and opacities alone."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import find_bounds, find_empty_cells, focus_point, probe_views
from support.blender_folder import ball_picture, eyes, look_at, write_ball, write_split
from support.helpers import assert_close


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
    assert_close(focus_point(places, axes), target, 1e-5)


def test_parallel_cameras_have_a_centre_nonetheless():
    places = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    axes = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert_close(focus_point(places, axes), [0.5, 0.0, 0.5], 1e-5)


# --- Cells of a box that are empty


def corners_of(lower, upper, resolution):
    """All eight of every cell, `cells 8 3`, in the cells' order."""
    cell = (upper - lower) / resolution
    low = np.indices((resolution,) * 3).reshape(3, -1).T * cell + lower
    offsets = np.indices((2, 2, 2)).reshape(3, -1).T * cell
    return low[:, None] + offsets


@pytest.mark.parametrize("resolution", [8, 24])
@pytest.mark.parametrize("center, radius", [((0, 0, 0), 0.5), ((100, -50, 20), 3.5)])
def test_cells_of_a_ball_are_never_empty_and_most_others_are(tmp_path, center, radius, resolution):
    write_ball(tmp_path, {"train": 24}, size=48, center=center, radius=radius)
    center = np.array(center)
    lower, upper = center - [2 * radius] * 3, center + [2 * radius, 2 * radius, 1.5 * radius]
    empty = find_empty_cells(sg.load_blender(tmp_path), lower, upper, resolution)
    assert empty.shape == (resolution,) * 3 and empty.dtype == bool
    corners = corners_of(lower, upper, resolution)
    nearest = np.clip(center, corners[:, 0], corners[:, -1])
    touched = np.linalg.norm(nearest - center, axis=1) < radius
    assert touched.sum() > 20 and not np.any(empty.reshape(-1)[touched])
    # Cameras are above: what is far to the sides, or high up, is seen to be empty.
    above = corners[:, :, 2].min(1) > center[2] - radius
    away = np.linalg.norm(nearest - center, axis=1) > (1.5 + 6 / resolution) * radius
    assert np.mean(empty.reshape(-1)[away & above]) > 0.9


def test_cells_of_pictures_without_empty_pixels_may_hold_anything(tmp_path):
    poses = [look_at(eye) for eye in eyes(3)]
    rgba = np.full((3, 8, 8, 4), 255, np.uint8)
    write_split(tmp_path, "train", rgba, poses)
    write_split(tmp_path, "val", rgba[..., :3], poses)
    for split in ("train", "val"):
        views = sg.load_blender(tmp_path, split)
        assert not np.any(find_empty_cells(views, -np.ones(3), np.ones(3), 4))


def test_cells_that_no_picture_shows_may_hold_anything(tmp_path):
    """Behind the cameras, and beside the pictures."""
    write_ball(tmp_path, {"train": 6}, size=32)
    views = sg.load_blender(tmp_path)
    for place in ([0.0, 0.0, 60.0], [50.0, 0.0, 0.0], [0.0, 0.0, -50.0]):
        lower, upper = np.array(place) - 0.1, np.array(place) + 0.1
        empty = find_empty_cells(views, lower, upper, 2)
        seen = np.zeros(8, bool)
        for frame in range(views.frames):
            camera = views.camera(frame)
            for index, corners in enumerate(corners_of(lower, upper, 2)):
                pixel = np.asarray(camera.project(jnp.asarray(corners.mean(0), jnp.float32)))
                inside = np.all((pixel >= 0) & (pixel < 32))
                seen[index] |= bool(inside)
        assert not np.any(empty.reshape(-1) & ~seen)


def test_empty_cells_do_not_depend_on_scale_and_place(tmp_path):
    found = []
    for scale, shift in ((1.0, np.zeros(3)), (7.0, np.array([100.0, -50.0, 20.0]))):
        folder = tmp_path / str(scale)
        write_ball(folder, {"train": 8}, size=32, center=shift, radius=0.5 * scale)
        box = shift - 0.9 * scale, shift + 0.9 * scale
        found.append(find_empty_cells(sg.load_blender(folder), *box, 12))
    assert 0.2 < np.mean(found[0]) < 0.9
    # But for middles whose projection falls on the edge of a pixel.
    assert np.mean(found[0] != found[1]) < 0.01


# --- What a box leaves out


def near_and_far(folder, channels: int) -> sg.Views:
    """A box as large as the nearest camera allows, which the farther ones look past."""
    poses = [look_at(eye) for eye in [*eyes(3), (0.0, -1.0, 0.3)]]
    pictures = [ball_picture(pose, 20, radius=1.3)[..., :channels] for pose in poses[:3]]
    pictures.append(np.full((20, 20, channels), 255, np.uint8))
    write_split(folder, "train", pictures, poses)
    return sg.load_blender(folder, near=0.1, far=8.0)


@pytest.mark.parametrize("channels", [3, 4])
def test_rays_that_miss_a_box_are_counted(tmp_path, channels):
    views = near_and_far(tmp_path, channels)
    lower, upper = np.array([-0.9, -1.0, -0.8]), np.array([1.0, 0.7, 0.9])
    shares = []
    for frame in range(views.frames):
        rays = sg.data.pixel_rays(views.camera(frame))
        steps = np.linspace(0.1, 8.0, 4000)[:, None]
        inside = [
            np.any(np.all((points > lower) & (points < upper), axis=1))
            for points in (
                np.asarray(origin) + steps * np.asarray(direction)
                for origin, direction in zip(rays.origin, rays.direction, strict=True)
            )
        ]
        pixels = np.asarray(views.pixels).reshape(views.frames, -1, channels)[frame]
        seen = pixels[:, 3] > 0 if channels == 4 else np.ones(len(pixels), bool)
        shares.append(np.mean(~np.array(inside)[seen]))
    assert shares[0] > 0.1 and shares[3] < 0.1
    # A raster of 32 x 32 rays in pictures of 20 x 20 counts some pixels twice.
    assert_close(probe_views(views).missed(lower, upper), shares, 0, 0.03)
    assert np.all(probe_views(views).missed(lower - 9, upper + 9) == 0)


def test_rays_that_end_before_a_box_miss_it(tmp_path):
    write_ball(tmp_path, {"train": 3})
    box = -np.ones(3), np.ones(3)
    for limits, expected in [((0.1, 9.0), 0.0), ((0.1, 2.0), 1.0), ((7.0, 9.0), 1.0)]:
        views = sg.load_blender(tmp_path, near=limits[0], far=limits[1])
        assert np.all(probe_views(views).missed(*box) == expected)


# --- Captures


def capture_views(poses: np.ndarray, points=None, width: int = 40, height: int = 30) -> sg.Views:
    cameras = [
        sg.PerspectiveCamera(sg.Pose(pose), 24.0, width, height, near=0.01, far=100.0)
        for pose in poses
    ]
    views = sg.views(cameras, [sg.Image(jnp.zeros((height, width, 3)))] * len(poses))
    return dataclasses.replace(views, points=None if points is None else jnp.asarray(points))


def cut_off(views: sg.Views, lower: np.ndarray, upper: np.ndarray) -> int:
    """The number of pixels whose lines miss a box, by the slab test of one line at a time."""
    number = 0
    for frame in range(views.frames):
        rays = sg.data.pixel_rays(views.camera(frame))
        for origin, direction in zip(*map(np.asarray, (rays.origin, rays.direction)), strict=True):
            ends = [(side - origin) / direction for side in (lower, upper)]
            number += np.minimum(*ends).max() >= np.maximum(*ends).min()
            number += np.maximum(*ends).min() <= 0
    return number


@pytest.mark.parametrize("with_points", [False, True])
@pytest.mark.parametrize("kind", ["around", "close-up", "facing", "outwards"])
def test_no_pixel_of_a_capture_is_cut_off(kind, with_points):
    """Whatever the cameras look at, each pixel's line meets the box."""
    random = np.random.default_rng(0)
    places = eyes(7) * random.uniform(0.6, 1.0, (7, 1))
    if kind == "close-up":
        places[0] *= 0.1
    if kind == "facing":
        places = np.array([0.0, -3, 0]) + random.normal(size=(7, 3)) * 0.3
    aims = 2 * places if kind == "outwards" else 0.5 * random.normal(size=(7, 3))
    poses = np.stack([look_at(*pair) for pair in zip(places, aims, strict=True)])
    points = random.normal(size=(500, 3)) * [1.0, 2.0, 0.5] if with_points else None
    views = capture_views(poses, points)
    lower, upper = find_bounds(views)
    assert np.all(lower < upper) and cut_off(views, lower, upper) == 0


def test_points_tell_where_the_scene_is():
    """Cameras that look one way do not tell how far it is; points do, but for outliers."""
    places = np.array([[x, -10.0, 0] for x in np.linspace(-0.5, 0.5, 7)])
    poses = np.stack([look_at(place, place + [0, 1, 0]) for place in places])
    random = np.random.default_rng(1)
    points = random.uniform(-1, 1, (400, 3)) * [8.0, 1.0, 8.0]
    points[:8] *= 1000
    lower, upper = find_bounds(capture_views(poses, points))
    assert upper[1] > 0.9 and np.all(upper - lower < 60)
    inside = np.all((points > lower) & (points < upper), axis=1)
    assert 0.9 < inside.mean() < 1
