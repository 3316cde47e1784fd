"""Bad data folders: refused, with a message that names the file."""

import json
import os
import pathlib

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.io import FileError, write_float_picture, write_picture
from support.blender_folder import eyes, look_at, write_split


def refuse(folder: pathlib.Path, *parts: str) -> None:
    """Loading fails with a `FileError` whose message holds all `parts`, the file's name first."""
    with pytest.raises(FileError) as caught:
        sg.load_blender(folder)
    for part in parts:
        assert part in str(caught.value)


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """A good folder with two pictures, `train/r_0.png` and `train/r_1.png`."""
    pictures = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 4), np.uint8)
    write_split(tmp_path / "data", "train", pictures, [look_at(eye) for eye in eyes(2)])
    return tmp_path / "data"


def change(folder: pathlib.Path, **changes) -> None:
    """Changes the listing's own fields."""
    listing = folder / "transforms_train.json"
    listing.write_text(json.dumps(json.loads(listing.read_text()) | changes))


def change_frame(folder: pathlib.Path, **changes) -> None:
    """Changes the second frame; `None` removes a field."""
    frames = json.loads((folder / "transforms_train.json").read_text())["frames"]
    frames[1] = {k: v for k, v in (frames[1] | changes).items() if v is not None}
    change(folder, frames=frames)


def matrix(folder: pathlib.Path) -> np.ndarray:
    frames = json.loads((folder / "transforms_train.json").read_text())["frames"]
    return np.array(frames[1]["transform_matrix"])


def test_the_folder_is_good_before_it_is_spoilt(folder):
    assert sg.load_blender(folder).frames == 2


# --- The listing


def test_no_folder(tmp_path):
    refuse(tmp_path / "missing", "missing", "there is no folder")


def test_no_listing(folder):
    with pytest.raises(FileError, match="transforms_val.json"):
        sg.load_blender(folder, "val")


def test_listing_that_is_not_json(folder):
    (folder / "transforms_train.json").write_text('{\n  "frames": [,\n')
    refuse(folder, "transforms_train.json", "line 2")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"9" * 5000])
def test_listing_of_rubbish(folder, content):
    (folder / "transforms_train.json").write_bytes(content)
    refuse(folder, "transforms_train.json")


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", '{"frames": {}}'])
def test_listing_without_a_list_of_frames(folder, content):
    (folder / "transforms_train.json").write_text(content)
    refuse(folder, "transforms_train.json", "`frames`")


def test_zero_frames(folder):
    change(folder, frames=[])
    refuse(folder, "transforms_train.json", "`frames` is empty")


@pytest.mark.parametrize("angle", [None, "0.7", True, 0, -0.7, 3.2, float("nan"), 10**400])
def test_angle_of_view(folder, angle):
    change(folder, camera_angle_x=angle)
    refuse(folder, "transforms_train.json", "camera_angle_x", "between 0 and pi")


@pytest.mark.parametrize("frame", [None, 3, {}, {"file_path": 7}, {"file_path": None}])
def test_frame_without_a_file(folder, frame):
    change(folder, frames=[frame])
    refuse(folder, "transforms_train.json", "frame 0", "file_path")


# --- Poses


@pytest.mark.parametrize(
    "pose, reason",
    [
        (None, "must be 4x4"),
        ("identity", "not a matrix of numbers"),
        ([[1, 0], [0]], "not a matrix of numbers"),
        ([[10**400] * 4] * 4, "not a matrix of numbers"),
        (np.eye(3).tolist(), "must be 4x4; its shape is (3, 3)"),
        (np.full((4, 4), np.nan).tolist(), "not finite"),
        (np.diag([2.0, 2.0, 2.0, 1.0]).tolist(), "not a rotation"),
        (np.diag([1.0, 1.0, -1.0, 1.0]).tolist(), "not a rotation"),
        (np.zeros((4, 4)).tolist(), "not a rotation"),
    ],
)
def test_matrix_that_is_no_pose(folder, pose, reason):
    change_frame(folder, transform_matrix=pose)
    refuse(folder, "transforms_train.json", "frame 1", reason)


def test_translation_that_is_not_finite(folder):
    pose = matrix(folder)
    pose[0, 3] = np.inf
    change_frame(folder, transform_matrix=pose.tolist())
    refuse(folder, "transforms_train.json", "frame 1", "not finite")


def test_rotation_as_files_round_it_is_accepted(folder):
    change_frame(folder, transform_matrix=np.round(matrix(folder), 4).tolist())
    assert sg.load_blender(folder).frames == 2


# --- Where pictures may be


@pytest.mark.parametrize(
    "name", ["../outside", "train/../../outside.png", "./train/.././../outside"]
)
def test_picture_outside_the_folder(folder, name):
    write_picture(folder.parent / "outside.png", np.zeros((4, 6, 4), np.uint8))
    change_frame(folder, file_path=name)
    refuse(folder, "transforms_train.json", "frame 1", name, "leads out")


def test_absolute_path(folder):
    inside = folder / "train" / "r_1.png"
    assert inside.exists()
    expected = np.asarray(sg.load_blender(folder).pixels)
    change_frame(folder, file_path=str(inside))
    np.testing.assert_array_equal(sg.load_blender(folder).pixels, expected)
    write_picture(folder.parent / "outside.png", np.zeros((4, 6, 4), np.uint8))
    change_frame(folder, file_path=str(folder.parent / "outside.png"))
    refuse(folder, "transforms_train.json", "frame 1", "leads out")


def test_symbolic_link_out_of_the_folder(folder):
    write_picture(folder.parent / "outside.png", np.zeros((4, 6, 4), np.uint8))
    (folder / "train" / "r_1.png").unlink()
    (folder / "train" / "r_1.png").symlink_to(folder.parent / "outside.png")
    refuse(folder, "transforms_train.json", "frame 1", "leads out")


def test_symbolic_link_to_itself(folder):
    (folder / "train" / "r_1.png").unlink()
    (folder / "train" / "r_1.png").symlink_to("r_1.png")
    refuse(folder, "r_1")


@pytest.mark.parametrize("name", ["", ".", "..", "a\0b", "x" * 5000])
def test_names_that_no_picture_has(folder, name):
    change_frame(folder, file_path=name)
    refuse(folder)


# --- The pictures


def test_missing_picture(folder):
    os.remove(folder / "train" / "r_1.png")
    refuse(folder, "r_1.png", "there is no picture")


@pytest.mark.parametrize("kept", [0, 20, 100])
def test_truncated_picture(folder, kept):
    path = folder / "train" / "r_1.png"
    path.write_bytes(path.read_bytes()[:kept])
    refuse(folder, "r_1.png", "damaged")


def test_picture_that_is_something_else(folder):
    (folder / "train" / "r_1.png").write_text("<html>404</html>")
    refuse(folder, "r_1.png", "damaged")


def test_picture_with_thirty_two_bits(folder):
    change_frame(folder, file_path="train/wide.tif")
    write_float_picture(folder / "train" / "wide.tif", np.zeros((4, 6), np.float32))
    refuse(folder, "wide.tif", "32-bit", "8 or 16 bits")


@pytest.mark.parametrize("shape", [(6, 4, 4), (4, 6, 3), (8, 12, 4)])
def test_pictures_of_different_shapes(folder, shape):
    write_picture(folder / "train" / "r_1.png", np.zeros(shape, np.uint8))
    refuse(folder, "r_1.png", str(shape), "r_0.png", "(4, 6, 4)")
