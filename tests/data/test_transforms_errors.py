"""Bad listings of nerfstudio's format: refused, with a message that names file, frame and key."""

import copy
import json
import math
import pathlib

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import _listed
from scenegraph.io import FileError, write_picture
from support.transforms_folder import frames, LENS, noise, write_transforms


GOOD = LENS | {"applied_transform": np.eye(4)[:3].tolist(), "frames": frames(3)}


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    return write_transforms(tmp_path / "data", GOOD)


def change(folder: pathlib.Path, frame: int | None, **changes) -> None:
    """Changes the listing or one of its frames."""
    listing = json.loads((folder / "transforms.json").read_text())
    (listing if frame is None else listing["frames"][frame]).update(changes)
    (folder / "transforms.json").write_text(json.dumps(listing))


def refuse(folder: pathlib.Path, *parts: str, split: str = "train") -> None:
    with pytest.raises(FileError) as caught:
        sg.load_transforms(folder, split, hold_every=2)
    assert all(part in str(caught.value) for part in ("transforms.json", *parts)), caught.value


def test_the_folder_is_good_before_it_is_spoilt(folder):
    assert sg.load_transforms(folder).frames == 2


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("fl_x", "9", "must be a number"),
        ("fl_x", True, "must be a number"),
        ("fl_x", 0, "must be positive"),
        ("fl_y", -3.0, "must be positive"),
        ("fl_y", math.nan, "must be finite"),
        ("cx", math.inf, "must be finite"),
        ("cy", [1.0], "must be a number"),
        ("k1", 10**400, "must be finite"),
        ("k2", "0", "must be a number"),
        ("p1", None, ""),
        ("w", 8.5, "number of pixels"),
        ("w", 9, "the picture has 8x6 pixels"),
        ("h", 0, "number of pixels"),
        ("h", 5, "the picture has 8x6 pixels"),
        ("camera_angle_x", 3.2, "between 0 and pi"),
        ("camera_angle_y", 0, "between 0 and pi"),
        ("camera_model", "FOV", "SIMPLE_PINHOLE, PINHOLE"),
        ("camera_model", 4, "not supported"),
        ("camera_model", "PINHOLE", "have no `k1`"),
        ("camera_model", "OPENCV_FISHEYE", "have no `p1`"),
        ("k4", 0.1, "name a model that has it: FULL_OPENCV"),
        ("ftheta_p0", 1.0, "not supported"),
        ("rolling_shutter", [0, 0, 0.1], "not supported"),
    ],
)
@pytest.mark.parametrize("frame", [None, 2], ids=["listing", "frame"])
def test_numbers_of_lenses(folder, frame, key, value, reason):
    change(folder, frame, **{key: value})
    if value is None:
        assert sg.load_transforms(folder).frames == 2
        return
    where = "frame 2" if frame == 2 else "frame "
    refuse(folder, where, f"`{key}`" if key != "camera_model" else "", reason)


def test_no_focal_length_at_all(folder):
    listing = {key: value for key, value in GOOD.items() if key != "fl_x"}
    (folder / "transforms.json").write_text(json.dumps(listing))
    refuse(folder, "frame", "`fl_x` or `camera_angle_x`")


def test_lenses_that_do_not_mix(folder):
    zero = dict.fromkeys(("k1", "k2", "p1", "p2"), 0.0)
    change(folder, 1, camera_model="OPENCV_FISHEYE", **zero)
    refuse(folder, "cannot be mixed")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"file_path": 3}, ["file_path"]),
        ({"file_path": "../outside.png"}, ["leads out"]),
        ({"file_path": "/etc/passwd.png"}, ["leads out"]),
        ({"file_path": "images/\0.png"}, ["file_path"]),
        ({"transform_matrix": None}, ["transform_matrix", "4x4"]),
        ({"transform_matrix": [[1, 2], [3]]}, ["transform_matrix", "numbers"]),
        ({"transform_matrix": np.diag([1.0, 1, 2, 1]).tolist()}, ["transform_matrix", "rotation"]),
        ({"mask_path": 3}, ["mask_path", "name of a picture"]),
        ({"mask_path": "../outside.png"}, ["mask_path", "leads out"]),
    ],
)
def test_frames(folder, changes, parts):
    write_picture(folder.parent / "outside.png", noise(0, 8, 6))
    change(folder, 2, **changes)
    refuse(folder, "frame 2", *parts)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"frames": []}, ["`frames` is empty"]),
        ({"frames": {}}, ["`frames`"]),
        ({"frames": [3]}, ["frame 0", "file_path"]),
        ({"applied_transform": "none"}, ["applied_transform", "numbers"]),
        ({"applied_transform": [[1, 0], [0, 1]]}, ["applied_transform", "3x4"]),
        ({"train_filenames": 3}, ["train_filenames", "list of names"]),
        ({"train_filenames": []}, ["train_filenames", "empty"]),
        ({"train_filenames": ["images/z.png"]}, ["train_filenames", "'images/z.png'"]),
        ({"test_filenames": ["images/a.png"]}, ["no `train_filenames`", "test_filenames"]),
    ],
)
def test_listings(folder, changes, parts):
    change(folder, None, **changes)
    refuse(folder, *parts)


def test_splits_that_are_not_there(folder):
    refuse(folder, "'holdout'", "train, val, test", split="holdout")
    change(folder, None, frames=GOOD["frames"][:1])
    refuse(folder, "leave none", split="train")
    with pytest.raises(ValueError, match="hold_every"):
        sg.load_transforms(folder, hold_every=1)


def test_missing_folder_and_picture(folder, tmp_path):
    with pytest.raises(FileError, match="no folder"):
        sg.load_transforms(tmp_path / "nowhere")
    (folder / "images" / "c.png").unlink()
    with pytest.raises(FileError, match="c.png"):
        sg.load_transforms(folder, "val", hold_every=2)


# --- Any key, any rubbish

RUBBISH = [None, True, -1, 0, 1e300, 10**400, math.nan, "x", "", [], [[]], {}, {"a": 1}, [1] * 4]


@pytest.mark.parametrize("frame", [None, 1], ids=["listing", "frame"])
def test_rubbish_is_refused_or_harmless(folder, frame, monkeypatch):
    """Whatever is wrong is a `FileError`; cameras are not made, which would take long."""
    made = sg.load_transforms(folder).cameras
    monkeypatch.setattr(_listed, "make_cameras", lambda *_: made)
    part = GOOD if frame is None else GOOD["frames"][frame]
    keys = [*part, "k3", "k4", "camera_angle_x", "train_filenames", "mask_path", "is_fisheye"]
    refused = 0
    for key in keys:
        for value in RUBBISH:
            listing = copy.deepcopy(GOOD)
            (listing if frame is None else listing["frames"][frame])[key] = value
            (folder / "transforms.json").write_text(json.dumps(listing))
            try:
                sg.load_transforms(folder)
            except FileError as error:
                refused += 1
                assert str(folder) in str(error)
    assert refused > 0.4 * len(keys) * len(RUBBISH)


@pytest.mark.parametrize("length", [0, 1, 40, 200, 400])
def test_truncated_listing(folder, length):
    path = folder / "transforms.json"
    path.write_text(path.read_text()[:length])
    refuse(folder)
