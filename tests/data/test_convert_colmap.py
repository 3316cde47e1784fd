"""From COLMAP to cameras: they see points where COLMAP does, and the world the right way up."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import convert_colmap
from scenegraph.fields import GaussianBlob
from scenegraph.io import FileError, read_colmap, read_json, write_picture
from support.colmap_folder import (
    CAMERAS,
    copy_golden,
    golden_pixels,
    IMAGES,
    MODEL,
    write_binary,
    WRITERS,
)
from support.helpers import assert_close


TURN = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])


def write_pictures(folder: pathlib.Path, names, size=(32, 24)) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        write_picture(folder / name, np.zeros((size[1], size[0], 3), np.uint8))
    return folder


@pytest.fixture
def sparse(tmp_path) -> pathlib.Path:
    """The naive model; its pictures are in `tmp_path / "data" / "images"`."""
    write_pictures(tmp_path / "data" / "images", ["a.png", "b c.png"])
    return write_binary(tmp_path / "sparse", *MODEL)


# --- Against COLMAP


@pytest.mark.slow
@pytest.mark.parametrize("keep_world", [False, True])
@pytest.mark.parametrize("encoding", WRITERS)
def test_points_are_seen_where_colmap_sees_them(tmp_path, encoding, keep_world):
    sparse, data = copy_golden(tmp_path / "sparse", encoding), tmp_path / "data"
    pixels = golden_pixels()
    write_pictures(data / "images", pixels, (200, 150))
    listing = read_json(convert_colmap(sparse, data, keep_world=keep_world))
    points = read_colmap(sparse).points @ (np.eye(3) if keep_world else TURN.T)
    kinds = {frame["camera_model"]: None for frame in listing["frames"]}
    assert set(kinds) == {"OPENCV", "FULL_OPENCV", "OPENCV_FISHEYE", "EQUIRECTANGULAR"}
    for group in ({"OPENCV", "FULL_OPENCV"}, {"OPENCV_FISHEYE"}, {"EQUIRECTANGULAR"}):
        frames = [frame for frame in listing["frames"] if frame["camera_model"] in group]
        names = {"all_filenames": [frame["file_path"] for frame in frames]}
        (data / "part.json").write_text(json.dumps(listing | names | {"frames": frames}))
        views = sg.load_transforms(data / "part.json", "all")
        for index, name in enumerate(views.names):
            seen = [views.camera(index).project(jnp.asarray(p, jnp.float32)) for p in points]
            assert_close(seen, pixels[name.removeprefix("images/")], 0, 1e-4)


# --- The listing


def test_one_lens_stands_before_all_frames(sparse, tmp_path):
    path = convert_colmap(sparse, tmp_path / "data")
    listing = read_json(path)
    lens = dict(fl_x=30.0, fl_y=28.0, cx=15.5, cy=12.5, k1=-0.1, k2=0.02, p1=0.003, p2=-0.002)
    assert path == tmp_path / "data" / "transforms.json"
    assert {key: listing[key] for key in lens} == lens
    assert (listing["camera_model"], listing["w"], listing["h"]) == ("OPENCV", 32, 24)
    assert listing["applied_transform"] == [[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0]]
    assert [frame["file_path"] for frame in listing["frames"]] == ["images/b c.png", "images/a.png"]
    assert [frame["colmap_im_id"] for frame in listing["frames"]] == [7, 2]
    assert "fl_x" not in listing["frames"][0]


def test_poses_as_nerfstudio_writes_them(sparse, tmp_path):
    """The quaternion (0.6, 0, 0.8, 0) turns about y: cosine -0.28, sine 0.96."""
    frame = read_json(convert_colmap(sparse, tmp_path / "data"))["frames"][1]
    camera_from_world = np.eye(4)
    camera_from_world[:3, :3] = [[-0.28, 0, 0.96], [0, 1, 0], [-0.96, 0, -0.28]]
    camera_from_world[:3, 3] = IMAGES[1][2]
    expected = np.linalg.inv(camera_from_world)
    expected[0:3, 1:3] *= -1
    expected = expected[[0, 2, 1, 3], :]
    expected[2, :] *= -1
    assert_close(np.array(frame["transform_matrix"]), expected, 0, 1e-12)


def test_points_are_written_as_ply(sparse, tmp_path):
    listing = read_json(convert_colmap(sparse, tmp_path / "data"))
    lines = (tmp_path / "data" / listing["ply_file_path"]).read_text().splitlines()
    assert lines[:3] == ["ply", "format ascii 1.0", "element vertex 2"]
    assert lines[lines.index("end_header") + 1 :] == [
        "0.1 -0.3 -0.2 10 20 255",
        "1 0.5 2 0 128 1",
    ]


def test_listing_of_another_name_and_pictures_elsewhere_below(sparse, tmp_path):
    write_pictures(tmp_path / "data" / "small" / "jpg", ["a.png", "b c.png"])
    folder = tmp_path / "data" / "small" / "jpg"
    path = convert_colmap(sparse, tmp_path / "data" / "mine.json", images=folder)
    assert read_json(path)["frames"][1]["file_path"] == "small/jpg/a.png"
    assert sg.load_transforms(path, "val").names == ("small/jpg/a.png",)


# --- What is refused


@pytest.mark.parametrize("model", ["FOV", "EUCM"])
def test_lenses_without_counterpart(tmp_path, model):
    write_pictures(tmp_path / "data" / "images", ["a.png", "b c.png"])
    camera = (3, model, 32, 24, [30.0, 28.0, 15.5, 12.5, 0.9, 1.0][: 5 + (model == "EUCM")])
    sparse = write_binary(tmp_path / "sparse", [camera], *MODEL[1:])
    with pytest.raises(FileError, match=f"camera 3 is of the model {model}.*image_undistorter"):
        convert_colmap(sparse, tmp_path / "data")


def test_lenses_that_no_picture_has_do_not_matter(tmp_path):
    write_pictures(tmp_path / "data" / "images", ["a.png", "b c.png"])
    cameras = [*CAMERAS, (5, "FOV", 32, 24, [30.0, 28.0, 15.5, 12.5, 0.9])]
    convert_colmap(write_binary(tmp_path / "sparse", cameras, *MODEL[1:]), tmp_path / "data")


def test_pictures_that_are_not_there(sparse, tmp_path):
    (tmp_path / "data" / "images" / "a.png").unlink()
    with pytest.raises(FileError, match="1 of 2 pictures are not in .*images, such as 'a.png'"):
        convert_colmap(sparse, tmp_path / "data")


@pytest.mark.parametrize("name", ["../../outside.png", "{root}/outside.png"])
def test_pictures_outside(sparse, tmp_path, name):
    write_pictures(tmp_path, ["outside.png"])
    images = [(*IMAGES[0][:4], name.format(root=tmp_path), [])]
    with pytest.raises(FileError, match="outside.png lies outside of .*data"):
        convert_colmap(write_binary(sparse, CAMERAS, images, []), tmp_path / "data")


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 5000])
def test_names_that_no_picture_has(sparse, tmp_path, name):
    images = [(*IMAGES[0][:4], name, [])]
    with pytest.raises(FileError, match="1 of 1 pictures are not in"):
        convert_colmap(write_binary(sparse, CAMERAS, images, []), tmp_path / "data")


def test_no_pictures_at_all(sparse, tmp_path):
    with pytest.raises(FileError, match="holds no image"):
        convert_colmap(write_binary(sparse, CAMERAS, [], []), tmp_path / "data")


def test_nothing_is_overwritten(sparse, tmp_path):
    convert_colmap(sparse, tmp_path / "data")
    with pytest.raises(FileError, match="transforms.json is there already"):
        convert_colmap(sparse, tmp_path / "data")


# --- From a scene to COLMAP and back


def blob(center, rgb) -> sg.Volume:
    return sg.Volume(GaussianBlob(center, 0.3, 30.0, rgb))


@pytest.mark.slow
def test_what_is_up_stays_up(tmp_path):
    """A red ball above a green one is photographed; COLMAP's world has y down; back in a scene,
    red is above green, and cameras see the scene as it was."""
    red, green = blob([0.0, 0.0, 0.5], [0.9, 0.1, 0.1]), blob([0.3, 0.0, -0.5], [0.1, 0.9, 0.1])
    scene = sg.Scene(
        sg.Group(red=red, green=green), background=[0, 0, 0], integrator=sg.Hierarchical((24,))
    )
    images = []
    (tmp_path / "data" / "images").mkdir(parents=True)
    for index, eye in enumerate([[2.5, 0.3, 0.4], [-1.0, 2.2, -0.5]]):
        pose = sg.Pose.look_at(eye, [0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
        bends = dict(k1=-0.1, k2=0.02, p1=0.003, p2=-0.002, near=0.5, far=5.0)
        camera = sg.OpenCVCamera(pose, [30.0, 28.0], 32, 24, principal_point=[15.5, 12.5], **bends)
        picture = np.asarray(sg.render(scene, camera).rgb)
        picture = np.round(255 * np.clip(picture, 0, 1)).astype(np.uint8)
        write_picture(tmp_path / "data" / "images" / f"{index}.png", picture)
        images.append((index + 1, *as_colmap(pose), 3, f"{index}.png", []))
    write_binary(tmp_path / "sparse", CAMERAS, images, [])
    convert_colmap(tmp_path / "sparse", tmp_path / "data")
    views = sg.load_transforms(tmp_path / "data", "train", near=0.5, far=5.0)
    seen = sg.render(scene, views.camera(0)).rgb
    assert float(sg.psnr(seen, views.image(0).rgb)) > 45
    rows = np.arange(24)[:, None]
    heights = [float(jnp.sum(rows * seen[..., c]) / jnp.sum(seen[..., c])) for c in (0, 1)]
    assert heights[0] < heights[1] - 5


def as_colmap(pose: sg.Pose) -> tuple[list[float], list[float]]:
    """Quaternion and translation of camera from world, both as COLMAP has them."""
    world_from_camera = TURN.T @ np.asarray(pose.linear(), float) * [1, -1, -1]
    rotation = world_from_camera.T
    w = 0.5 * np.sqrt(max(1 + np.trace(rotation), 0))
    skew = rotation - rotation.T
    quaternion = [w, *(np.array([skew[2, 1], skew[0, 2], skew[1, 0]]) / (4 * w))]
    return quaternion, (-rotation @ TURN.T @ np.asarray(pose.offset(), float)).tolist()
