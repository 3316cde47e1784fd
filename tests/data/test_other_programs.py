"""Captures as other programs write them: lenses, folders, names, kinds of pictures, masks, keys."""

import dataclasses
import json
import math
import shutil

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import scenegraph as sg
from scenegraph.data import convert_colmap, find_format, find_splits, load_colmap
from scenegraph.data._masks import _all_in_parts
from scenegraph.io import FileError
from support.capture_folders import (
    arc,
    colmap,
    F,
    H,
    listing,
    look,
    pictures,
    plain,
    POINT,
    poses_bounds,
    projected,
    save,
    W,
)


RING = arc(6)
ALL = {"held_out": ["5"]}


def seen(views: sg.Views, frame: int = 0, point=POINT) -> np.ndarray:
    return np.asarray(views.camera(frame).project(jnp.asarray(point, jnp.float32)))


def level(views: sg.Views, frame: int = 0) -> int:
    """The grey of a picture's first pixel."""
    return int(np.asarray(views.pixels)[views.part(frame)][0, 0])


# --- Lenses: one rule for all listings


ANGLE = 2 * math.atan(W / 2 / F)
BLENDERS = {"camera_angle_x": ANGLE, "fl_x": F, "fl_y": F, "w": W, "h": H}


@pytest.mark.parametrize("name", ["transforms_train.json", "transforms.json"])
@pytest.mark.parametrize(
    ("head", "frame", "focal", "centre"),
    [
        ({"camera_angle_x": ANGLE}, {}, (F, F), (W / 2, H / 2)),
        (BLENDERS | {"cx": W / 2 + 3, "cy": H / 2 - 3}, {}, (F, F), (W / 2 + 3, H / 2 - 3)),
        (BLENDERS | {"camera_angle_x": 0.7, "fl_x": 40, "fl_y": 40}, {}, (40, 40), (10, 8)),
        (BLENDERS, {"fl_x": 2 * F, "fl_y": 2 * F}, (2 * F, 2 * F), (W / 2, H / 2)),
        (BLENDERS, {"camera_angle_x": 2 * math.atan(W / 2 / 60)}, (60, 60), (W / 2, H / 2)),
        ({"camera_angle_x": ANGLE, "camera_angle_y": 0.3}, {"fl_x": 50}, (50, 50), (10, 8)),
        ({"fl_x": F, "fl_y": F}, {"fl_y": 45}, (F, 45), (W / 2, H / 2)),
        ({"fl_x": F}, {"cx": 7.0}, (F, F), (7, H / 2)),
    ],
)
def test_lenses(tmp_path, name, head, frame, focal, centre):
    pictures(tmp_path, 6)
    listing(tmp_path, name, head, RING, frame=lambda index: frame)
    views = sg.load_data(tmp_path, **({} if "train" in name else ALL))
    np.testing.assert_allclose(seen(views), projected(RING[0], focal, centre), atol=2e-3)


def test_distortion_of_a_blender_listing(tmp_path):
    pictures(tmp_path, 6)
    listing(tmp_path, "transforms_train.json", BLENDERS | {"k1": 0.2}, RING)
    x, y = (projected(RING[0], (F, F), (W / 2, H / 2)) - [W / 2, H / 2]) / F
    bent = np.array([x, y]) * (1 + 0.2 * (x * x + y * y)) * F + [W / 2, H / 2]
    np.testing.assert_allclose(seen(sg.load_data(tmp_path)), bent, atol=2e-3)


def test_pictures_smaller_than_a_blender_listing_says(tmp_path):
    pictures(tmp_path, 6, height=H // 2, width=W // 2)
    listing(tmp_path, "transforms_train.json", BLENDERS, RING)
    expected = projected(RING[0], (F / 2, F / 2), (W / 4, H / 4))
    np.testing.assert_allclose(seen(sg.load_data(tmp_path)), expected, atol=2e-3)


# --- `poses_bounds.npy`


def uneven(count: int = 12) -> list:
    angles = 2 * math.pi * np.arange(count) / count
    return [
        look((4 * math.cos(a) + 0.1 * math.sin(7 * a), 4 * math.sin(a), 1 + 0.4 * math.sin(3 * a)))
        for a in angles
    ]


AROUND = {"ring": arc(12), "level ring": arc(12, height=0.0), "uneven": uneven()}
AROUND["arc"] = arc(12, 120.0)


@pytest.mark.parametrize("poses", AROUND.values(), ids=AROUND)
def test_cameras_around_the_scene_are_not_bent(tmp_path, poses):
    """The COLMAP model beside is read, or the table as it is; one line says which."""
    pictures(tmp_path, 12)
    poses_bounds(tmp_path, poses)
    views = sg.load_data(tmp_path)
    assert isinstance(views.camera(0), sg.PerspectiveCamera)
    (note,) = views.notes
    assert "poses_bounds.npy" in note and "no NDC" in note and "--ndc" in note
    # The distances of cameras are those of the table, all scaled alike: 3/4 of 2.8 is one.
    places = np.array([np.asarray(views.camera(i).pose.offset()) for i in range(2)])
    true = np.linalg.norm(poses[1][:3, 3] - poses[2][:3, 3]) / (0.75 * 2.8)
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(true, rel=1e-4)
    colmap(tmp_path, poses)
    views = sg.load_data(tmp_path)
    (note,) = views.notes
    assert str(tmp_path / "sparse/0") in note and "--ndc" in note and views.points is not None
    # All is as from the model alone, so that it is fitted as well.
    alone = load_colmap(tmp_path)
    assert alone.notes == () and eqx.tree_equal(dataclasses.replace(views, notes=()), alone)
    assert isinstance(sg.load_data(tmp_path, ndc=False).camera(0), sg.PerspectiveCamera)


def test_what_is_asked_for_decides(tmp_path):
    pictures(tmp_path, 12)
    poses_bounds(tmp_path, AROUND["arc"])
    colmap(tmp_path, AROUND["arc"])
    assert isinstance(sg.load_data(tmp_path, ndc=True).camera(0), sg.cameras.NDCCamera)
    assert sg.load_data(tmp_path, spherify=True).points is None
    poses_bounds(tmp_path, AROUND["level ring"])
    with pytest.raises(FileError, match="all directions.*--ndc"):
        sg.load_data(tmp_path, ndc=True)


def test_forward_cameras_stay_bent(tmp_path):
    poses = [look((0.1 * i, 0.05 * i * (-1) ** i, 4.0), (0, 1, 0)) for i in range(8)]
    pictures(tmp_path, 8)
    poses_bounds(tmp_path, poses)
    views = sg.load_data(tmp_path)
    assert isinstance(views.camera(0), sg.cameras.NDCCamera) and views.notes == ()
    assert isinstance(sg.load_data(tmp_path, ndc=False).camera(0), sg.PerspectiveCamera)


# --- Which files are read


@pytest.mark.parametrize("name", ["24", "20240131", "colmap", "sparse", "0"])
def test_names_of_folders_mean_nothing(tmp_path, name):
    """Neither those of the capture, nor what lies in the folder above it."""
    folder = tmp_path / "dtu" / name
    pictures(folder, 6)
    colmap(folder, RING)
    for index in range(6):
        save(tmp_path / "dtu" / "images" / f"{index}.png", np.full((H, W, 3), 200, np.uint8))
    for given in (folder, folder / "sparse" / "0"):
        views = sg.load_data(given, **ALL)
        assert views.frames == 5 and level(views) == 20 and views.notes == ()
    shutil.rmtree(folder / "images")
    with pytest.raises(FileError, match="none of its 6 pictures"):
        sg.load_data(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("transforms_undistorted.json", None),
        ("transforms_backup.json", None),
        ("metadata.json", {"w": W, "h": H, "fps": 30, "poses": []}),
        ("metadata.json", {"train": [1, 2], "name": "mine"}),
        ("transforms_train.json", {"w": W}),
        ("poses_bounds.npy", "not an array"),
    ],
)
def test_other_files_beside_a_listing(tmp_path, name, content):
    pictures(tmp_path, 6)
    path = listing(tmp_path, "transforms.json", {"fl_x": F}, RING)
    (tmp_path / name).write_text(path.read_text() if content is None else json.dumps(content))
    for given in (tmp_path, path):
        assert sg.load_data(given).frames == 5
    assert find_format(tmp_path).name == "nerfstudio"


def test_a_listing_of_another_name_and_one_beside_splits(tmp_path):
    pictures(tmp_path, 6)
    both = listing(tmp_path, "transforms.json", {"fl_x": F}, RING)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING[:3])
    assert sg.load_data(tmp_path).frames == 3 and sg.load_data(both).frames == 5
    other = listing(tmp_path, "mine.json", {"fl_x": F}, RING[:4])
    assert sg.load_data(other, held_out=["0"]).frames == 3


def test_a_model_beside_another_programs_listing(tmp_path):
    pictures(tmp_path, 6)
    colmap(tmp_path, RING)
    (tmp_path / "transforms.json").write_text('{"cameras": []}')
    assert find_format(tmp_path).name == "COLMAP" and sg.load_data(tmp_path).frames == 5


def test_splits_whose_pictures_were_never_rendered(tmp_path):
    pictures(tmp_path, 6)
    head = {"camera_angle_x": ANGLE}
    listing(tmp_path, "transforms_train.json", head, RING)
    listing(tmp_path, "transforms_test.json", head, RING, path="./test/r_{}")
    assert find_splits(tmp_path) == ("train",)
    (note,) = sg.load_data(tmp_path).notes
    assert note.startswith("transforms_test.json is left out: none of its pictures")
    assert sg.load_data(tmp_path, skip_missing=True).notes == (note,)
    save(tmp_path / "test" / "r_3.png", plain(0))
    assert find_splits(tmp_path) == ("test", "train")
    with pytest.raises(FileError, match="5 of 6 picture files.*--skip-missing"):
        sg.load_data(tmp_path, "test")
    assert sg.load_data(tmp_path, "test", skip_missing=True).frames == 1


# --- Names


@pytest.mark.parametrize(
    ("name", "path"),
    [("transforms.json", "images\\{}.png"), ("transforms_train.json", ".\\images\\{}")],
)
def test_names_with_backslashes(tmp_path, name, path):
    pictures(tmp_path, 6)
    save(tmp_path / "m" / "3.png", np.zeros((H, W), np.uint8))
    head = {"fl_x": F, "test_filenames": ["images\\1.png"]}
    head["train_filenames"] = [f"images/{i}.png" for i in (0, 2, 3, 4, 5)]
    frame = lambda index: {"mask_path": "m\\3.png"} if index == 3 else {}
    listing(tmp_path, name, head, RING, path, frame)
    views = sg.load_data(tmp_path)
    assert views.frames == (5 if name == "transforms.json" else 6)
    assert float(jnp.mean(views.weights)) == pytest.approx(1 - 1 / views.frames)


def test_backslashes_in_models_and_conversions(tmp_path):
    pictures(tmp_path, 6, "images/left")
    colmap(tmp_path, RING, name="left\\{}.png")
    save(tmp_path / "masks" / "left" / "1.png", np.zeros((H, W), np.uint8))
    views = sg.load_data(tmp_path, held_out=["left/0.png"])
    assert views.frames == 5 and float(jnp.mean(views.weights)) == pytest.approx(0.8)
    convert_colmap(tmp_path / "sparse/0", tmp_path)
    assert sg.load_data(tmp_path / "transforms.json").frames == 5


def test_a_backslash_that_is_part_of_a_name(tmp_path):
    save(tmp_path / "images\\0.png", plain(4))
    pictures(tmp_path, 6)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING, "images\\{}.png")
    assert level(sg.load_data(tmp_path)) == 100


@pytest.mark.parametrize("ending", ["tga", "gif", "ppm", "jp2", "bmp", "jfif", "avif", "webp"])
def test_kinds_of_pictures(tmp_path, ending):
    for index in range(6):
        place = tmp_path / "images" / f"{index}.{ending}"
        place.parent.mkdir(exist_ok=True)
        kind = {"jp2": "JPEG2000", "jfif": "JPEG"}.get(ending)
        Image.fromarray(plain(index)).save(place, format=kind)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING, f"images/{{}}.{ending}")
    views = sg.load_data(tmp_path)
    assert views.frames == 6 and abs(level(views, 3) - 80) <= 2


def test_missing_pictures_have_their_own_names(tmp_path):
    pictures(tmp_path, 5)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING[:5])
    text = (tmp_path / "transforms_train.json").read_text()
    (tmp_path / "transforms_train.json").write_text(text.replace("3.png", "3.exr"))
    with pytest.raises(FileError) as caught:
        sg.load_data(tmp_path)
    assert "3.exr" in str(caught.value) and "3.exr.png" not in str(caught.value)


def test_dot_files(tmp_path):
    """Beside LLFF's pictures, which have no names in the table, and among masks."""
    pictures(tmp_path, 8)
    poses_bounds(tmp_path, [look((0.1 * i, 0.02 * i * i, 4.0), (0, 1, 0)) for i in range(8)])
    for place in ("images", "masks"):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "._3.png").write_bytes(b"\0\5\x16\7")
        (tmp_path / place / ".DS_Store").write_bytes(b"\0")
    save(tmp_path / "masks" / "3.png", np.zeros((H, W), np.uint8))
    views = sg.load_data(tmp_path)
    assert views.frames == 7 and float(jnp.mean(views.weights)) == pytest.approx(6 / 7)


def test_pictures_of_llff_that_are_there_twice(tmp_path):
    """In two formats, as conversions from HEIC leave them; each has all pictures, or one has."""
    pictures(tmp_path, 8)
    poses_bounds(tmp_path, [look((0.1 * i, 0.02 * i * i, 4.0), (0, 1, 0)) for i in range(8)])
    (tmp_path / "images" / "3.heic").write_bytes(b"\0")
    assert sg.load_data(tmp_path).frames == 7


# --- Masks


def test_parts_of_an_axis():
    """By a plain loop, also where parts share what they touch."""
    rng = np.random.default_rng(0)
    for size, parts in ((50, 13), (34, 9), (12, 4), (7, 7)):
        counts = rng.random((size, 3)) > 0.2
        for part in range(parts):
            touched = [
                i
                for i in range(size)
                if i + 1 > part * size / parts and i < (part + 1) * size / parts
            ]
            expected = counts[touched].all(axis=0)
            np.testing.assert_array_equal(_all_in_parts(counts, parts)[part], expected)


@pytest.mark.parametrize("own", [False, True], ids=["masks", "masks_4"])
def test_masks_of_pictures_whose_sizes_are_rounded(tmp_path, own):
    """34 x 50 pixels become 9 x 13: the mask is black to the left of column 25, or of 3 in 13."""
    pictures(tmp_path, 6, height=34, width=50)
    pictures(tmp_path, 6, "images_4", height=9, width=13)
    colmap(tmp_path, RING, camera="PINHOLE 50 34 75 75 25 17")
    for index in range(6):
        half = np.tile(np.where(np.arange(50) >= 25, 255, 0).astype(np.uint8), (34, 1))
        save(tmp_path / "masks" / f"{index}.png", half)
        if own:
            few = np.tile(np.where(np.arange(13) >= 3, 255, 0).astype(np.uint8), (9, 1))
            save(tmp_path / "masks_4" / f"{index}.png", few)
    views = sg.load_data(tmp_path, downscale=4)
    columns = np.asarray(views.weights).reshape(5, 9, 13)
    # Column 6 of 13 begins at 23.1 of 50.
    first = 3 if own else 7
    np.testing.assert_array_equal(columns, np.broadcast_to(np.arange(13) >= first, (5, 9, 13)))


def test_masks_of_another_shape_are_refused(tmp_path):
    pictures(tmp_path, 6)
    colmap(tmp_path, RING)
    save(tmp_path / "masks" / "1.png", np.full((W, 2 * H), 255, np.uint8))
    with pytest.raises(FileError, match="of the same shape"):
        sg.load_data(tmp_path)


# --- instant-ngp's keys and files


def test_dynamic_masks(tmp_path):
    """What is not black in them is left out; they are named after the pictures."""
    pictures(tmp_path, 6)
    listing(tmp_path, "transforms.json", {"fl_x": F}, RING)
    for index in range(6):
        mask = np.tile(np.where(np.arange(W) >= 15, 30, 0).astype(np.uint8), (H, 1))
        save(tmp_path / "images" / f"dynamic_mask_{index}.png", mask)
    views = sg.load_data(tmp_path)
    expected = np.broadcast_to(np.arange(W) < 15, (5, H, W))
    np.testing.assert_array_equal(np.asarray(views.weights).reshape(5, H, W), expected)
    save(tmp_path / "masks" / "1.png", np.full((H, W), 255, np.uint8))
    assert any("dynamic_mask_0.png are ignored" in note for note in sg.load_data(tmp_path).notes)


@pytest.mark.parametrize(
    ("head", "frame", "word"),
    [
        ({"black_transparent": True}, {}, "`black_transparent`"),
        ({"white_transparent": 1}, {}, "`white_transparent`"),
        ({"mask_color": [0, 255, 0]}, {}, "`mask_color`"),
        ({"n_frames": 3}, {}, "all 6 frames are read"),
        ({}, {"transform_matrix_start": np.eye(4).tolist()}, "`transform_matrix_start`"),
        ({}, {"transform_matrix_end": np.eye(4).tolist()}, "`transform_matrix_end`"),
    ],
)
@pytest.mark.parametrize("name", ["transforms_train.json", "transforms.json"])
def test_keys_that_are_not_applied_are_named(tmp_path, name, head, frame, word):
    pictures(tmp_path, 6)
    listing(tmp_path, name, {"fl_x": F, **head}, RING, frame=lambda index: frame)
    assert any(word in note for note in sg.load_data(tmp_path).notes)


def test_times_and_opacities_are_named(tmp_path):
    pictures(tmp_path, 6)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING, frame=lambda i: {"time": i / 5})
    save(tmp_path / "images" / "2.png.alpha.png", np.zeros((H, W), np.uint8))
    times, opacities = sg.load_data(tmp_path).notes
    assert "`time`, from 0 to 1" in times and "2.png.alpha.png" in opacities
    off = {"black_transparent": False, "n_frames": 6}
    listing(
        tmp_path, "transforms_train.json", {"fl_x": F, **off}, RING, frame=lambda i: {"time": 0}
    )
    (tmp_path / "images" / "2.png.alpha.png").unlink()
    assert sg.load_data(tmp_path).notes == ()


# --- What is said of odd captures


def test_a_picture_that_is_named_twice(tmp_path):
    pictures(tmp_path, 6)
    path = listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING)
    path.write_text(path.read_text().replace("4.png", "3.png"))
    (note,) = sg.load_data(tmp_path).notes
    assert "1 pictures are named more than once" in note and "3.png" in note


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"near": 5.0, "far": 1.0}, "`near` must be less than `far`"),
        ({"near": math.nan}, "`near` must be between"),
        ({"far": math.inf}, "`far` must be between"),
        ({"near": -1.0}, "`near` must be between"),
    ],
)
def test_ends_of_rays_that_cannot_be(tmp_path, options, words):
    pictures(tmp_path, 6)
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, RING)
    with pytest.raises(ValueError, match=words):
        sg.load_data(tmp_path, **options)
