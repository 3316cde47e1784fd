"""Good data folders: what comes out is what was put in."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.io import read_picture
from support.blender_folder import (
    ball_picture,
    COLOR,
    eyes,
    FOV_X,
    look_at,
    write_ball,
    write_split,
)
from support.helpers import assert_close


POSES = [look_at(eye) for eye in eyes(3)]


@pytest.fixture
def random_pictures() -> np.ndarray:
    """Three RGBA pictures, 7 pixels wide and 5 high."""
    return np.random.default_rng(0).integers(0, 256, (3, 5, 7, 4), dtype=np.uint8)


def shrunk(rgba: np.ndarray, factor: int) -> np.ndarray:
    """The mean colour of every block, weighted by opacity: a plain loop."""
    height, width = rgba.shape[0] // factor, rgba.shape[1] // factor
    result = np.zeros((height, width, 4))
    for row in range(height):
        for column in range(width):
            block = rgba[row * factor :, column * factor :][:factor, :factor].reshape(-1, 4) / 255
            alpha = block[:, 3].sum()
            color = sum(pixel[3] * pixel[:3] for pixel in block) / alpha
            result[row, column] = *color, alpha / factor**2
    return result


def test_pictures_are_kept_as_bytes(tmp_path, random_pictures):
    write_split(tmp_path, "train", random_pictures, POSES)
    views = sg.load_blender(tmp_path)
    assert views.frames == 3 and views.names == tuple(f"./train/r_{i}" for i in range(3))
    assert views.pixels.dtype == jnp.uint8
    np.testing.assert_array_equal(views.pixels.reshape(random_pictures.shape), random_pictures)


def test_image_is_the_file_over_white(tmp_path, random_pictures):
    write_split(tmp_path, "train", random_pictures, POSES)
    views = sg.load_blender(tmp_path)
    for frame in range(3):
        file = read_picture(tmp_path / "train" / f"r_{frame}.png") / 255
        alpha = file[..., 3:]
        assert_close(views.image(frame).rgb, file[..., :3] * alpha + 1 - alpha, 0, 1e-6)
        assert_close(views.image(frame).alpha, file[..., 3], 0, 1e-6)


def test_pictures_without_alpha(tmp_path, random_pictures):
    write_split(tmp_path, "val", random_pictures[..., :3], POSES)
    image = sg.load_blender(tmp_path, "val").image(1)
    assert image.alpha is None
    assert_close(image.rgb, random_pictures[1, ..., :3] / 255, 0, 1e-6)


def test_other_splits_and_names_with_an_ending(tmp_path, random_pictures):
    listing = write_split(tmp_path, "holdout", random_pictures, POSES)
    listing.write_text(listing.read_text().replace('r_1"', 'r_1.png"'))
    assert sg.load_blender(tmp_path, "holdout").frames == 3


def test_downscaling_weights_colours_by_opacity(tmp_path, random_pictures):
    write_split(tmp_path, "train", random_pictures, POSES)
    views = sg.load_blender(tmp_path, downscale=2)
    rgba = views.rgba(jnp.arange(3 * 2 * 3)).reshape(3, 2, 3, 4)
    for frame in range(3):
        assert_close(rgba[frame], shrunk(random_pictures[frame], 2), 0, 1e-6)


def test_invisible_pixels_do_not_bleed_into_smaller_pictures(tmp_path):
    write_ball(tmp_path, {"train": 1}, size=32)
    rgba = np.asarray(sg.load_blender(tmp_path, downscale=2).pixels)
    seen = rgba[:, 3] > 0
    assert 0 < np.mean(rgba[:, 3] == 1) < np.mean(seen) < 1
    assert_close(rgba[seen, :3], np.broadcast_to(np.array(COLOR) / 255, (seen.sum(), 3)), 1e-6)
    published = np.asarray(sg.load_blender(tmp_path, downscale=2, straight_alpha=True).pixels)
    assert np.max(np.abs(published - rgba)) > 0.1


def test_downscaling_too_far_is_an_error(tmp_path, random_pictures):
    write_split(tmp_path, "train", random_pictures, POSES)
    with pytest.raises(ValueError, match="cannot shrink a picture of 7x5 pixels by 6"):
        sg.load_blender(tmp_path, downscale=6)


@pytest.mark.slow
def test_rays_of_every_picture_are_those_of_its_camera(tmp_path, random_pictures):
    write_split(tmp_path, "train", random_pictures, POSES)
    views = sg.load_blender(tmp_path)
    rays = views.rays(jnp.arange(3 * 35))
    np.testing.assert_array_equal(views.frame_of(jnp.arange(3 * 35)), np.repeat([0, 1, 2], 35))
    for frame, pose in enumerate(POSES):
        mine = jax.tree.map(lambda x, f=frame: x.reshape(3, 5, 7, *x.shape[1:])[f], rays)
        assert_close(mine.origin, np.broadcast_to(pose[:3, 3], (5, 7, 3)), 1e-6)
        focal = 3.5 / np.tan(FOV_X / 2)
        right_and_down = np.array([(6.5 - 3.5) / focal, -(4.5 - 2.5) / focal, -1.0])
        assert_close(mine.direction[4, 6], pose[:3, :3] @ right_and_down, 1e-6)


def test_depth_range_holds_the_scene_wherever_it_is(tmp_path):
    center, radius = np.array([100.0, -50.0, 20.0]), 3.5
    write_ball(tmp_path, {"train": 3}, center=center, radius=radius)
    camera = sg.load_blender(tmp_path).camera(0)
    assert 0 < camera.near < 7 * radius and camera.far > 9 * radius
    given = sg.load_blender(tmp_path, near=2.0, far=6.0).camera(0)
    assert (float(given.near), float(given.far)) == (2.0, 6.0)


def test_ball_is_seen_where_its_camera_projects_it(tmp_path):
    center = np.array([100.0, -50.0, 20.0])
    pose = look_at(center + [20.0, -20.0, 15.0], center + [1.0, 2.0, -3.0])
    write_split(tmp_path, "train", [ball_picture(pose, 32, center, 2.0)], [pose])
    views = sg.load_blender(tmp_path)
    rows, columns = np.nonzero(views.image(0).alpha)
    middle = [columns.mean() + 0.5, rows.mean() + 0.5]
    assert_close(views.camera(0).project(jnp.asarray(center, jnp.float32)), middle, 0, 0.5)
    assert abs(middle[0] - 16) > 1 and abs(middle[1] - 16) > 1


def test_symbolic_links_inside_the_folder_are_followed(tmp_path, random_pictures):
    write_split(tmp_path, "train", random_pictures, POSES)
    moved = tmp_path / "elsewhere.png"
    shutil.move(tmp_path / "train" / "r_0.png", moved)
    (tmp_path / "train" / "r_0.png").symlink_to(moved)
    assert sg.load_blender(tmp_path).frames == 3


def test_real_listings_have_more_than_is_needed(tmp_path, random_pictures):
    listing = write_split(tmp_path, "train", random_pictures, POSES)
    content = json.loads(listing.read_text())
    for frame in content["frames"]:
        frame["rotation"] = 0.012566
    listing.write_text(json.dumps(content | {"camera_angle_y": 0.5}))
    assert sg.load_blender(tmp_path).frames == 3
