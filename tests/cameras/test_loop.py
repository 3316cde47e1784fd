"""Films of captures: closed paths that stay near the cameras, the right way up."""

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import common_up, find_loop, loop as make_loop, pose_matrix
from support.blender_folder import look_at


CAMERA = sg.PerspectiveCamera(sg.Pose(np.eye(4)), 20.0, 16, 12)


def turned(poses: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same cameras in a world that is turned and moved, with the turn."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    matrix[:3, :3] *= np.sign(np.linalg.det(matrix[:3, :3]))
    matrix[:3, 3] = [3.0, -2.0, 5.0]
    return matrix @ poses, matrix


def ring(count: int, first: float, last: float, height: float = 1.0, noise: float = 0.05):
    """Cameras that look at the origin from an arc of angles, by hand."""
    random = np.random.default_rng(3)
    angles = np.linspace(first, last, count, endpoint=False)
    eyes = np.stack([3 * np.cos(angles), 3 * np.sin(angles), np.full(count, height)], axis=1)
    eyes += noise * random.normal(size=eyes.shape)
    return np.stack([look_at(eye, noise * random.normal(size=3)) for eye in eyes])


def rooms(count: int = 30) -> np.ndarray:
    """Cameras on a walk, which look ahead and to the sides."""
    steps = np.linspace(0, 8, count)
    eyes = np.stack([steps, np.sin(steps), np.full(count, 1.5)], axis=1)
    sides = np.stack([np.cos(steps * 2), np.sin(steps * 2), np.zeros(count)], axis=1)
    return np.stack([look_at(eye, eye + side) for eye, side in zip(eyes, sides, strict=True)])


def degrees(cosine: float) -> float:
    return float(np.degrees(np.arccos(min(1.0, cosine))))


CAPTURES = {
    "around": ring(40, 0, 2 * np.pi),
    "few around": ring(8, 0, 2 * np.pi),
    "arc": ring(20, 0.3, 2.5),
    "two rings": np.concatenate([ring(30, 0, 2 * np.pi, -0.5), ring(30, 0, 2 * np.pi, 2.0)]),
    "facing": ring(12, 1.4, 1.7, noise=0.15),
    "walk": rooms(),
    "two": ring(2, 0.0, 0.4),
    "one": ring(1, 0.0, 1.0),
}


@pytest.fixture(params=CAPTURES)
def capture(request) -> tuple[np.ndarray, np.ndarray]:
    """Poses in a turned world, and the turn."""
    return turned(CAPTURES[request.param], 1)


@pytest.mark.parametrize("frames", [1, 7, 40])
def test_every_frame_is_near_a_camera_and_upright(capture, frames):
    poses, matrix = capture
    target, up = matrix[:3, 3], matrix[:3, 2]
    found = find_loop(CAMERA, poses, target, up, frames)
    assert len(found.cameras) == frames
    made = np.stack([np.asarray(pose_matrix(camera), float) for camera in found.cameras])
    # The distance from every frame to the nearest camera, one pair at a time.
    for frame in made:
        away = min(np.linalg.norm(frame[:3, 3] - pose[:3, 3]) for pose in poses)
        assert away <= found.bound * (1 + 1e-6)
        # No roll: rows are level, and upwards is up.
        assert abs(frame[:3, 0] @ up) < 1e-4 and frame[:3, 1] @ up > 0


def test_the_bound_is_that_of_the_neighbours():
    """Cameras a tenth apart, one alone: 1.5 times a tenth, or a tenth of the distance."""
    line = np.stack([look_at(np.array([x, -0.5, 0.0]), np.array([x, 5.0, 0])) for x in range(20)])
    line[:, 0, 3] *= 0.1
    line = np.concatenate([line, line[:1]])
    line[-1, 0, 3] = 9.0
    near = find_loop(CAMERA, line, [1.0, 0.0, 0.0], [0, 0, 1], 3).bound
    assert abs(near - 0.15) < 1e-6
    far = find_loop(CAMERA, line, [0.95, 20.0, 0.0], [0, 0, 1], 3).bound
    assert 2.0 < far < 2.1


@pytest.mark.parametrize("name", ["around", "arc", "two rings", "facing", "walk"])
def test_the_path_closes(name):
    """The step from the last frame to the first is like the others."""
    cameras = make_loop(CAMERA, CAPTURES[name], [0, 0, 0], [0, 0, 1], 60)
    eyes = np.stack([np.asarray(camera.pose.offset(), float) for camera in cameras])
    steps = np.linalg.norm(np.roll(eyes, -1, axis=0) - eyes, axis=1)
    assert steps[-1] <= 2 * np.max(steps[:-1]) and np.max(steps) < 6 * np.median(steps)


def test_all_around_it_goes_round_once_at_the_height_of_the_cameras():
    found = find_loop(CAMERA, CAPTURES["around"], [0, 0, 0], [0, 0, 1], 40)
    eyes = np.stack([np.asarray(camera.pose.offset(), float) for camera in found.cameras])
    turn = np.unwrap(np.arctan2(eyes[:, 1], eyes[:, 0]))
    assert abs(abs(turn[-1] - turn[0]) - 2 * np.pi * 39 / 40) < 0.05
    assert np.allclose(eyes[:, 2], 1.0, atol=0.1) and "once around" in found.kind
    assert np.allclose(np.linalg.norm(eyes[:, :2], axis=1), 3.0, atol=0.15)


def test_it_never_goes_where_no_camera_was():
    """Of an arc of 126 degrees, the film stays in the arc."""
    cameras = make_loop(CAMERA, CAPTURES["arc"], [0, 0, 0], [0, 0, 1], 60)
    eyes = np.stack([np.asarray(camera.pose.offset(), float) for camera in cameras])
    angles = np.arctan2(eyes[:, 1], eyes[:, 0])
    assert angles.min() > 0.2 and angles.max() < 2.6 and np.ptp(angles) > 1.5


def test_of_two_rings_it_keeps_to_one():
    cameras = make_loop(CAMERA, CAPTURES["two rings"], [0, 0, 0], [0, 0, 1], 60)
    heights = np.array([float(camera.pose.offset()[2]) for camera in cameras])
    assert np.ptp(heights) < 0.5


def test_no_frames():
    with pytest.raises(ValueError, match="at least one frame"):
        make_loop(CAMERA, CAPTURES["around"], [0, 0, 0], [0, 0, 1], 0)


# --- What is up


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["around", "few around", "arc", "two rings", "walk"])
def test_up_of_cameras_in_a_turned_world(name, seed):
    """Within a degree of the world's, and of the mean of the cameras' own where they are around."""
    poses, matrix = turned(CAPTURES[name], seed)
    up = common_up(poses)
    assert degrees(up @ matrix[:3, 2]) < 1
    if "around" in name:
        mean = poses[:, :3, 1].mean(axis=0)
        assert degrees(up @ mean / np.linalg.norm(mean)) < 2


def test_up_of_cameras_that_all_look_one_way():
    """Their rows span no plane: the mean of their columns."""
    up = common_up(np.stack([look_at(np.array([x, -3, 0]), np.array([x, 0, 0])) for x in range(5)]))
    np.testing.assert_allclose(up, [0, 0, 1], atol=1e-9)


def test_up_of_phones_held_sideways():
    """Rolled by a right angle, all around: up is where the cameras are, seen from the scene."""
    roll = np.eye(4)
    roll[:2, :2] = [[0, -1], [1, 0]]
    poses, matrix = turned(CAPTURES["around"] @ roll, 2)
    assert degrees(common_up(poses) @ matrix[:3, 2]) < 2


def test_a_table_of_points_is_level():
    """Cameras that all tilt by five degrees, over a table; half of the points are not on it."""
    random = np.random.default_rng(0)
    tilt = np.eye(4)
    angle = np.radians(5)
    tilt[1:3, 1:3] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    poses = tilt @ CAPTURES["around"]
    table = random.uniform(-1, 1, (1500, 3)) * [1, 1, 0.003]
    others = random.uniform(-1, 1, (1500, 3)) + [0, 0, 0.8]
    up = common_up(poses, np.concatenate([table, others]))
    assert degrees(up[2]) < 1 < degrees(common_up(poses)[2])
    # A wall is no table, and a cloud is none either.
    wall = table[:, [2, 0, 1]]
    np.testing.assert_allclose(common_up(poses, wall), common_up(poses))
    np.testing.assert_allclose(common_up(poses, others * 3), common_up(poses))
