"""Paths fitted to cameras, through cameras, and from files."""

import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import ellipse, interpolate, read_camera_path
from scenegraph.cameras._interpolated import short_tour
from scenegraph.io import FileError
from support.blender_folder import eyes, look_at
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera(sg.Pose(look_at([2.0, 1.0, 1.0])), 20.0, 16, 12, near=1, far=9)
UP = [0, 0, 1]


def matrices(cameras):
    poses = np.tile(np.eye(4), (len(cameras), 1, 1))
    for pose, camera in zip(poses, cameras, strict=True):
        pose[:3, :3], pose[:3, 3] = camera.pose.linear(), camera.pose.offset()
    return poses


def turn_between(a, b):
    """The angle of a rotation, from its trace."""
    return math.acos(np.clip((np.trace(a[:3, :3].T @ b[:3, :3]) - 1) / 2, -1, 1))


# --- Ellipse


def ring(long, short, height, turn=0.4, center=(1.0, 2.0, 3.0)):
    """Cameras evenly on an ellipse, whose axes are turned about z."""
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    flat = np.stack([long * np.cos(angles), short * np.sin(angles), np.full(200, height)], axis=1)
    cosine, sine = np.cos(turn), np.sin(turn)
    places = flat @ np.array([[cosine, sine, 0], [-sine, cosine, 0], [0, 0, 1]]) + center
    return np.stack([look_at(place, center) for place in places])


def test_ellipse_is_the_one_on_which_cameras_stand():
    poses, center = ring(3.0, 2.0, 1.5), np.array([1.0, 2.0, 3.0])
    path = ellipse(CAMERA, poses, center, UP, 40)
    places = matrices(path)[:, :3, 3] - center
    cosine, sine = np.cos(0.4), np.sin(0.4)
    x = places[:, 0] * cosine + places[:, 1] * sine
    y = -places[:, 0] * sine + places[:, 1] * cosine
    # Nine tenths of the cameras are nearer than this along an axis of length one.
    part = np.percentile(np.abs(np.cos(np.linspace(0, 2 * np.pi, 200, endpoint=False))), 90)
    assert_close((x / 3 / part) ** 2 + (y / 2 / part) ** 2, np.ones(40), 1e-3)
    assert_close(places[:, 2], np.full(40, 1.5), 1e-5)
    for camera in path:
        assert_close(camera.project(jnp.asarray(center, jnp.float32)), [8, 6], 1e-3)


def test_ellipse_has_constant_speed_and_closes():
    places = matrices(ellipse(CAMERA, ring(4.0, 1.5, 0.5), [1, 2, 3], UP, 200))[:, :3, 3]
    steps = np.linalg.norm(np.diff(places, axis=0, append=places[:1]), axis=1)
    assert_close(steps, np.full(200, steps.mean()), 5e-3)
    turned = np.cross(places[:-1] - [1, 2, 3], places[1:] - [1, 2, 3])[:, 2]
    assert np.all(turned > 0)  # the way round in which `orbit` goes


def test_ellipse_begins_where_the_camera_stands():
    first = matrices(ellipse(CAMERA, ring(2.0, 2.0, 1.0, center=(0, 0, 0)), [0, 0, 0], UP, 9))[0]
    assert math.atan2(first[1, 3], first[0, 3]) == pytest.approx(math.atan2(1, 2), abs=1e-3)


def test_ellipse_of_cameras_in_a_line_does_not_pass_through_the_target():
    poses = np.stack([look_at([x, 0.0, 1.0]) for x in (-2.0, -1.0, 1.0, 2.0)])
    places = matrices(ellipse(CAMERA, poses, [0, 0, 0], UP, 30))[:, :2, 3]
    assert np.linalg.norm(places, axis=1).min() > 0.4


def test_ellipse_needs_cameras_off_the_axis():
    poses = np.eye(4)[None].copy()
    poses[0, 2, 3] = 2.0
    with pytest.raises(ValueError, match="on its axis"):
        ellipse(CAMERA, poses, [0, 0, 0], UP, 3)


# --- Through cameras


def dome(count=12, seed=0):
    return np.stack([look_at(eye) for eye in eyes(count, 4.0, seed)])


@pytest.mark.parametrize("order", ["nearest", "index"])
def test_path_goes_through_cameras(order):
    """Through all of them, with so many frames that one comes close to each."""
    poses = dome(7)
    path = matrices(interpolate(CAMERA, poses, 400, order=order, keyframes=7))
    near = [min(np.abs(pose - frame).max() for frame in path) for pose in poses]
    assert max(near) < 0.06


def test_index_keeps_the_order_and_the_ends():
    poses = dome(6)
    path = matrices(interpolate(CAMERA, poses, 300, order="index", keyframes=6))
    assert_close(path[0], poses[0], 1e-5)
    assert_close(path[-1], poses[-1], 1e-5)
    passed = [np.argmin(np.abs(path - pose).max(axis=(1, 2))) for pose in poses]
    assert passed == sorted(passed)


def test_evenly_spread_keyframes():
    poses = dome(9)
    path = matrices(interpolate(CAMERA, poses, 400, order="index", keyframes=3))
    for pose in poses[[0, 4, 8]]:
        assert np.abs(path - pose).max(axis=(1, 2)).min() < 0.03


@pytest.mark.parametrize("order", ["nearest", "index"])
def test_speed_is_constant(order):
    """A step is the way, and the angle times the median distance from the middle."""
    poses = ring(3.0, 2.0, 1.0)[:180:20]
    reach = np.median(np.linalg.norm(poses[:, :3, 3] - poses[:, :3, 3].mean(axis=0), axis=1))
    path = matrices(interpolate(CAMERA, poses, 150, order=order, keyframes=9))
    steps = [
        np.linalg.norm(a[:3, 3] - b[:3, 3]) + reach * turn_between(a, b)
        for a, b in zip(path[:-1], path[1:], strict=True)
    ]
    assert_close(steps, np.full(149, np.mean(steps)), 0.03)
    if order == "nearest":  # goes round: the last is one step before the first
        last = np.linalg.norm(path[0, :3, 3] - path[-1, :3, 3])
        assert last + reach * turn_between(path[0], path[-1]) == pytest.approx(steps[0], rel=0.03)


def test_cameras_about_one_thing_go_on_looking_at_it():
    """As far away as they stand, and it stays in the middle of the picture."""
    center = np.array([1.0, 2.0, 0.5])
    poses = np.stack([look_at(center + place, center) for place in eyes(9)])
    for camera in interpolate(CAMERA, poses, 40, keyframes=5):
        place = np.asarray(camera.pose.offset())
        assert np.linalg.norm(place - center) == pytest.approx(4, rel=1e-3)
        assert_close(camera.project(jnp.asarray(center, jnp.float32)), [8, 6], 2e-3)


def test_path_is_smooth():
    """With twice the frames, the direction turns half as much from one to the next, everywhere."""
    turns = []
    for frames in (60, 120):
        path = matrices(interpolate(CAMERA, ring(3.0, 2.0, 1.0), frames, keyframes=5))[:, :3, 3]
        steps = np.diff(path, axis=0)
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
        turns.append(np.arccos(np.clip(np.sum(steps[1:] * steps[:-1], axis=1), -1, 1)).max())
    assert turns[1] < 0.65 * turns[0]


def test_cameras_that_only_turn():
    poses = np.stack([look_at([0, 0, 0], [np.cos(a), np.sin(a), 0]) for a in (0.0, 0.5, 2.0)])
    path = matrices(interpolate(CAMERA, poses, 101, order="index", keyframes=3))
    angles = [turn_between(path[0], pose) for pose in path]
    assert_close(angles, np.linspace(0, 2, 101), 0.02)


def test_one_camera_and_many_copies():
    poses = np.repeat(dome(1), 5, axis=0)
    path = matrices(interpolate(CAMERA, poses, 3))
    assert_close(path, np.repeat(poses[:1], 3, axis=0), 1e-5)


def test_intrinsics_are_kept():
    camera = interpolate(CAMERA, dome(4), 2)[1]
    assert float(camera.focal) == 20 and (camera.width, camera.height) == (16, 12)


@pytest.mark.parametrize("seed", range(3))
def test_tour_of_a_circle_is_the_circle(seed):
    """Greedy alone jumps back over the circle in the end."""
    angles = np.random.default_rng(seed).permutation(np.arange(9)) * 2 * np.pi / 9
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    order = short_tour(np.linalg.norm(places[:, None] - places[None], axis=-1))
    assert sorted(order) == list(range(9))
    steps = np.linalg.norm(np.diff(places[[*order, order[0]]], axis=0), axis=1)
    assert_close(steps, np.full(9, 2 * np.sin(np.pi / 9)), 1e-6)


def test_tour_beats_going_to_the_nearest():
    places = np.array([[0, 0], [1, 0], [-1.5, 0], [3, 0], [-4, 0]], float)
    between = np.linalg.norm(places[:, None] - places[None], axis=-1)
    order = short_tour(between)
    assert sum(between[a, b] for a, b in zip(order, [*order[1:], 0], strict=True)) == 14


@pytest.mark.parametrize("settings", [{"frames": 0}, {"frames": 3, "keyframes": 0}])
def test_no_frames(settings):
    with pytest.raises(ValueError, match="at least one"):
        interpolate(CAMERA, dome(3), **settings)


# --- Files


def written(folder, content):
    path = folder / "path.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


POSES = dome(3).tolist()


@pytest.mark.parametrize("wrapped", [False, True])
def test_plain_matrices(tmp_path, wrapped):
    path = read_camera_path(written(tmp_path, {"cameras": POSES} if wrapped else POSES), CAMERA)
    assert_close(matrices(path.cameras), np.asarray(POSES), 1e-6)
    camera = path.cameras[2]
    assert float(camera.focal) == 20 and (camera.width, camera.height) == (16, 12)
    assert path.frames_per_second is None


def test_own_focal_lengths(tmp_path):
    cameras = [
        {"camera_to_world": POSES[0], "fov_x": 1.0},
        {"camera_to_world": POSES[1][:3], "focal": 33.0},
        {"camera_to_world": np.ravel(POSES[2]).tolist()},
    ]
    content = {"width": 32, "height": 8, "fps": 12, "cameras": cameras}
    path = read_camera_path(written(tmp_path, content), CAMERA)
    focals = [float(camera.focal) for camera in path.cameras]
    # The third keeps the horizontal angle of the scene's camera, twice as wide in pixels.
    assert_close(focals, [16 / math.tan(0.5), 33.0, 40.0], 1e-5)
    assert {(x.width, x.height, float(x.near), float(x.far)) for x in path.cameras} == {
        (32, 8, 1.0, 9.0)
    }
    assert_close(matrices(path.cameras), np.asarray(POSES), 1e-6)
    assert path.frames_per_second == 12


def nerfstudio(**changes):
    cameras = [
        {"camera_to_world": np.ravel(pose).tolist(), "fov": fov, "aspect": 2.0}
        for pose, fov in zip(POSES, (50, 60.0, None), strict=True)
    ]
    start = {"camera_type": "perspective", "render_width": 64, "render_height": 32, "seconds": 2}
    return start | {"camera_path": cameras, "fps": 24, "keyframes": []} | changes


def test_nerfstudio(tmp_path):
    """Its angle of view is vertical: the ray through the upper edge shows it."""
    path = read_camera_path(written(tmp_path, nerfstudio()), CAMERA)
    assert path.frames_per_second == 24 and len(path.cameras) == 3
    assert_close(matrices(path.cameras), np.asarray(POSES), 1e-6)
    for camera, fov in zip(path.cameras, (50, 60), strict=False):
        upper, middle = (camera.ray(jnp.array([32.0, y])).view for y in (0.0, 16.0))
        assert math.degrees(math.acos(float(upper @ middle))) == pytest.approx(fov / 2, abs=1e-2)


def bad_pose(**entry):
    pose = np.eye(4)
    for place, value in entry.items():
        pose[int(place[1]), int(place[2])] = value
    return pose.tolist()


BAD = {
    "not JSON": ("{", "valid JSON"),
    "a text": ('"x"', "must hold a list of cameras; it holds a text"),
    "no cameras": ([], "`cameras` must be a list of at least one"),
    "no list": ({"cameras": 3}, "`cameras` must be"),
    "a word": ([np.eye(4).tolist(), "here"], "camera 1 must be a matrix or an object"),
    "two rows": ([np.eye(4)[:2].tolist()], "camera 0 must be 4x4; its shape is (2, 4)"),
    "ragged": ([[[1, 0], [1]]], "camera 0 is not a matrix of numbers"),
    "words": ([[["a"] * 4] * 4], "camera 0 is not a matrix of numbers"),
    "not finite": ("[[[NaN, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]", "not finite"),
    "scaled": ([bad_pose(_00=2.0)], "not a rotation"),
    "mirrored": ([bad_pose(_00=-1.0)], "not a rotation"),
    "projective": ([bad_pose(_30=1.0)], "last row"),
    "transposed": ([np.eye(4).tolist(), bad_pose(_30=4.0)], "camera 1"),
    "unknown key": ({"cameras": POSES, "speed": 3}, "'speed', which is none of cameras, width"),
    "unknown key of a camera": ([{"camera_to_world": POSES[0], "fov": 3}], "camera 0 has 'fov'"),
    "no pose": ([{"focal": 3}], "camera 0: `camera_to_world`"),
    "focal without size": ([{"camera_to_world": POSES[0], "focal": 3}], "`width` and `height`"),
    "only a width": ({"cameras": POSES, "width": 3}, "`width` alone"),
    "half a pixel": ({"cameras": POSES, "width": 3.5, "height": 3}, "whole numbers"),
    "huge": ({"cameras": POSES, "width": 10**9, "height": 3}, "`width` must be a number between"),
    "true": ({"cameras": POSES, "width": True, "height": 3}, "`width` must be"),
    "no speed": ({"cameras": POSES, "fps": 0}, "`fps`"),
    "another lens": (nerfstudio(camera_type="fisheye"), "must be perspective; it is 'fisheye'"),
    "nerfstudio without size": (nerfstudio(render_width=None), "`render_width` must be"),
    "nerfstudio's matrix": (nerfstudio(camera_path=[{"camera_to_world": [1]}]), "camera 0"),
    "nerfstudio's angle": (
        nerfstudio(camera_path=[{"camera_to_world": POSES[0], "fov": 180}]),
        "camera 0: `fov` (in degrees) must be a number between 0 and 180; it is 180",
    ),
    "nerfstudio's list": (nerfstudio(camera_path=[3]), "camera 0 must be an object"),
}


@pytest.mark.parametrize("case", BAD)
def test_files_that_are_refused(tmp_path, case):
    content, reason = BAD[case]
    path = written(tmp_path, content)
    with pytest.raises(FileError) as caught:
        read_camera_path(path, CAMERA)
    assert str(path) in str(caught.value) and reason in str(caught.value)


def test_both_fov_and_focal(tmp_path):
    camera = {"camera_to_world": POSES[0], "focal": 3, "fov_x": 1}
    content = {"width": 4, "height": 4, "cameras": [camera]}
    with pytest.raises(FileError, match="camera 0 has both"):
        read_camera_path(written(tmp_path, content), CAMERA)


def test_orthographic_scenes_take_poses_alone(tmp_path):
    camera = sg.OrthographicCamera(CAMERA.pose, 8.0, 16, 12)
    content = {"width": 4, "height": 4, "cameras": POSES}
    with pytest.raises(FileError, match="OrthographicCamera do not allow"):
        read_camera_path(written(tmp_path, content), camera)
    plain = read_camera_path(written(tmp_path, POSES), camera).cameras
    assert all(isinstance(x, sg.OrthographicCamera) for x in plain)


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match="none.json"):
        read_camera_path(tmp_path / "none.json", CAMERA)
