"""The multiscale format: what the converter writes, what the loader reads, and what it refuses."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import convert_multiscale, load_multiscale
from scenegraph.io import FileError, read_json, read_picture, write_picture
from support.blender_folder import eyes, FOV_X, look_at, write_split
from support.helpers import assert_close


POSES = [look_at(eye) for eye in eyes(3)]


@pytest.fixture
def pictures() -> np.ndarray:
    """Three RGBA pictures, 12 pixels wide and 8 high."""
    return np.random.default_rng(0).integers(0, 256, (3, 8, 12, 4), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, pictures) -> pathlib.Path:
    """A good multiscale folder with three sizes: 12x8, 6x4 and 3x2 pixels."""
    write_split(tmp_path / "blender", "train", pictures, POSES)
    convert_multiscale(tmp_path / "blender", tmp_path / "data", 3)
    return tmp_path / "data"


# --- Conversion


def block_means(rgba: np.ndarray, size: int) -> np.ndarray:
    """Colours weighted by opacity, over blocks of the full picture: a plain loop."""
    height, width = rgba.shape[0] // size, rgba.shape[1] // size
    result = np.zeros((height, width, 4))
    for row in range(height):
        for column in range(width):
            block = rgba[row * size :, column * size :][:size, :size].reshape(-1, 4) / 255
            color = block[:, 3] @ block[:, :3] / max(block[:, 3].sum(), 1e-12)
            result[row, column] = *color, block[:, 3].mean()
    return result


def test_every_size_is_the_mean_of_the_full_picture(folder, pictures):
    for index, picture in enumerate(pictures):
        for level in range(3):
            mine = read_picture(folder / "images_train" / f"{index:03d}_d{level}.png")
            expected = picture if level == 0 else 255 * block_means(picture, 2**level)
            assert_close(mine, expected, 0, 0.5 + 1e-3)


def test_straight_alpha_cuts_what_bytes_cannot_hold(tmp_path, pictures):
    write_split(tmp_path / "blender", "train", pictures, POSES)
    convert_multiscale(tmp_path / "blender", tmp_path / "data", 2, straight_alpha=True)
    mine = read_picture(tmp_path / "data" / "images_train" / "001_d1.png")
    mean = pictures[1].reshape(4, 2, 6, 2, 4).mean((1, 3))
    assert np.all(mine <= mean) and np.all(mine > mean - 1 - 1e-3) and np.any(mine < mean - 0.5)


def test_metadata(folder):
    train = read_json(folder / "metadata.json")["train"]
    assert {len(column) for column in train.values()} == {9}
    assert train["file_path"][4] == "images_train/001_d1.png"
    assert (train["width"][4], train["height"][4], train["label"][4]) == (6, 4, 1)
    assert (train["near"][4], train["far"][4], train["lossmult"][4]) == (2, 6, 4)
    assert train["focal"][4] == pytest.approx(3 / np.tan(FOV_X / 2))
    assert_close(train["cam2world"][4], POSES[1], 1e-12)
    corner = np.array(train["pix2cam"][4]) @ [6, 4, 1]
    assert_close(corner, [3 / train["focal"][4], -2 / train["focal"][4], -1], 1e-12)


def test_pictures_without_opacity_and_other_limits(tmp_path, pictures):
    write_split(tmp_path / "blender", "train", pictures[..., :3], POSES)
    write_split(tmp_path / "blender", "test", pictures[:1, ..., :3], POSES[:1])
    seen = []
    convert_multiscale(
        tmp_path / "blender",
        tmp_path / "data",
        2,
        near=1.0,
        far=3.5,
        progress=lambda *counts: seen.append(counts),
    )
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert list(read_json(tmp_path / "data" / "metadata.json")) == ["train", "test"]
    views = load_multiscale(tmp_path / "data", "test")
    assert (float(views.camera(1).near), float(views.camera(1).far)) == (1.0, 3.5)
    mean = pictures[0, ..., :3].reshape(4, 2, 6, 2, 3).mean((1, 3))
    assert_close(255 * views.image(1).rgb, mean, 0, 0.5 + 1e-3)


@pytest.mark.slow
def test_one_level_is_the_source(tmp_path, pictures):
    write_split(tmp_path / "blender", "train", pictures, POSES)
    convert_multiscale(tmp_path / "blender", tmp_path / "data", 1)
    mine = load_multiscale(tmp_path / "data")
    theirs = sg.load_blender(tmp_path / "blender", near=2.0, far=6.0)
    np.testing.assert_array_equal(mine.pixels, theirs.pixels)
    for a, b in zip(*(pair(views) for views in (mine, theirs)), strict=True):
        assert_close(a, b, 1e-6)


def pair(views):
    rays = views.rays(jnp.arange(60, 90))
    return rays.origin, rays.direction, rays.radius, rays.near, rays.far


def test_folder_with_something_in_it(tmp_path, pictures):
    write_split(tmp_path / "blender", "train", pictures, POSES)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("precious")
    with pytest.raises(FileError, match="out is not empty"):
        convert_multiscale(tmp_path / "blender", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("levels, reason", [(4, "12x8 pixels.*halved 3 times"), (0, "`levels`")])
def test_sizes_that_cannot_be(tmp_path, pictures, levels, reason):
    write_split(tmp_path / "blender", "train", pictures, POSES)
    with pytest.raises(ValueError, match=reason):
        convert_multiscale(tmp_path / "blender", tmp_path / "out", levels)
    assert [path.name for path in tmp_path.iterdir()] == ["blender"]


def test_failed_conversion_leaves_nothing_behind(tmp_path, pictures):
    write_split(tmp_path / "blender", "train", pictures, POSES)
    (tmp_path / "blender" / "train" / "r_2.png").write_text("no picture")
    with pytest.raises(FileError, match="r_2.png"):
        convert_multiscale(tmp_path / "blender", tmp_path / "out", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["blender"]


def test_source_without_a_listing(tmp_path):
    (tmp_path / "blender").mkdir()
    with pytest.raises(FileError, match="transforms_train.json"):
        convert_multiscale(tmp_path / "blender", tmp_path / "out")


# --- Loading


def test_cameras_and_weights_of_every_size(folder):
    views = load_multiscale(folder)
    assert views.frames == 9 and views.pixels.dtype == jnp.uint8
    np.testing.assert_array_equal(views.widths, [12, 6, 3] * 3)
    np.testing.assert_array_equal(views.lossmult, [1, 4, 16] * 3)
    # Corners of the pictures are seen along the same lines, whatever the size.
    for frame in range(9):
        camera, first = views.camera(frame), views.camera(3 * (frame // 3))
        scale = 2 ** (frame % 3)
        corner = jnp.array([3.0, 2.0])
        mine, whole = camera.ray(corner), first.ray(scale * corner)
        assert_close(mine.direction, whole.direction, 1e-6)
        assert_close(mine.radius, scale * whole.radius, 1e-6)


def test_downscaling(folder, pictures):
    views = load_multiscale(folder, downscale=2, near=1.0)
    np.testing.assert_array_equal(views.widths, [6, 3, 1] * 3)
    assert_close(views.camera(0).focal, 3 / np.tan(FOV_X / 2), 1e-6)
    assert_close(views.rgba(jnp.arange(24)).reshape(4, 6, 4), block_means(pictures[0], 2), 1e-6)
    assert (float(views.camera(0).near), float(views.camera(0).far)) == (1.0, 6.0)


# --- What is refused


def refuse(folder: pathlib.Path, *parts: str, split: str = "train") -> None:
    with pytest.raises(FileError) as caught:
        load_multiscale(folder, split)
    for part in parts:
        assert part in str(caught.value)


def change(folder: pathlib.Path, name: str, index: int, value) -> None:
    """Changes one entry of the listing."""
    listing = read_json(folder / "metadata.json")
    listing["train"][name][index] = value
    (folder / "metadata.json").write_text(json.dumps(listing))


def test_no_folder_and_no_listing(tmp_path):
    refuse(tmp_path / "missing", "missing", "there is no folder")
    refuse(tmp_path, "metadata.json")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[" * 100_000, b"[]", b"3", b"null"])
def test_listing_of_rubbish(folder, content):
    (folder / "metadata.json").write_bytes(content)
    refuse(folder, "metadata.json")


def test_split_that_is_not_there(folder):
    refuse(folder, "metadata.json", "no split 'test'", "there are: train", split="test")


NAMES = ["file_path", "cam2world", "pix2cam", "width", "height", "near", "far", "lossmult"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["missing", "short", "number"])
def test_column_that_is_missing_or_short(folder, name, how):
    listing = read_json(folder / "metadata.json")
    column = listing["train"].pop(name)
    if how != "missing":
        listing["train"][name] = column[:-1] if how == "short" else 3
    (folder / "metadata.json").write_text(json.dumps(listing))
    refuse(folder, "metadata.json", *(["entries"] if how == "short" else [f"`{name}`"]))


def test_no_pictures(folder):
    empty = {name: [] for name in NAMES}
    (folder / "metadata.json").write_text(json.dumps({"train": empty}))
    refuse(folder, "metadata.json", "is empty")


@pytest.mark.parametrize(
    "name, value",
    [
        ("near", float("nan")),
        ("far", float("inf")),
        ("near", -1.0),
        ("near", "2"),
        ("near", True),
        ("lossmult", None),
        ("lossmult", -4),
        ("lossmult", 10**400),
        ("width", 6.5),
        ("width", 0),
        ("height", -4),
        ("height", 2**40),
        ("file_path", 7),
    ],
)
def test_entry_that_makes_no_sense(folder, name, value):
    change(folder, name, 4, value)
    refuse(folder, "metadata.json", f"`train.{name}`")


@pytest.mark.parametrize(
    "pose, reason",
    [
        (None, "must be 4x4"),
        ("identity", "not a matrix of numbers"),
        (np.eye(3).tolist(), "its shape is (3, 3)"),
        (np.full((4, 4), np.nan).tolist(), "not finite"),
        (np.diag([2.0, 2.0, 2.0, 1.0]).tolist(), "not a rotation"),
    ],
)
def test_matrix_that_is_no_pose(folder, pose, reason):
    change(folder, "cam2world", 4, pose)
    refuse(folder, "metadata.json: train picture 4", "`cam2world`", reason)


@pytest.mark.parametrize(
    "lens",
    [
        None,
        "lens",
        [[1, 0], [0]],
        np.eye(3).tolist(),
        np.full((3, 3), np.nan).tolist(),
        [[0.1, 0, -0.3], [0, -0.2, 0.2], [0, 0, -1]],
        [[0.1, 0.05, -0.3], [0, -0.1, 0.2], [0, 0, -1]],
        [[-0.1, 0, 0.3], [0, 0.1, 0.2], [0, 0, -1]],
        [[0, 0, 0], [0, 0, 0], [0, 0, -1]],
    ],
)
def test_matrix_that_is_no_lens(folder, lens):
    change(folder, "pix2cam", 4, lens)
    refuse(folder, "metadata.json: train picture 4", "`pix2cam`")


@pytest.mark.parametrize("name", ["../outside.png", "images_train/../../outside.png", "/etc/hosts"])
def test_picture_outside_the_folder(folder, name):
    write_picture(folder.parent / "outside.png", np.zeros((4, 6, 4), np.uint8))
    change(folder, "file_path", 4, name)
    refuse(folder, "metadata.json", "train picture 4", name, "leads out")


def test_picture_of_another_size(folder):
    change(folder, "width", 4, 7)
    refuse(folder, "001_d1.png", "6x4 pixels", "metadata.json says 7x4")


def test_pictures_of_different_kinds(folder):
    write_picture(folder / "images_train" / "001_d1.png", np.zeros((4, 6, 3), np.uint8))
    refuse(folder, "001_d1.png", "000_d0.png", "channels")


@pytest.mark.parametrize("content", [b"", b"<html>404</html>"])
def test_damaged_picture(folder, content):
    (folder / "images_train" / "002_d2.png").write_bytes(content)
    refuse(folder, "002_d2.png", "damaged")
