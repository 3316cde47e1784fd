"""Captures far from the origin of their world: places keep their precision, and are given back."""

import json

import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import read_camera_path
from scenegraph.data import save_transforms
from scenegraph.data._bounds import choose_origin
from scenegraph.meshing import export_scene
from support.capture_folders import arc, colmap, F, H, listing, pictures, W


def far(poses, offset):
    moved = [pose.copy() for pose in poses]
    for pose in moved:
        pose[:3, 3] += offset
    return moved


def places(views: sg.Views) -> np.ndarray:
    """Where cameras are, in the data's world, in double precision."""
    own = [np.asarray(views.camera(i).pose.offset(), float) for i in range(views.frames)]
    return np.array(own) + views.origin


OFFSETS = [0.0, 1e5, 5e6]
RING = arc(8)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", ["transforms.json", "transforms_train.json"])
def test_places_of_listings(tmp_path, name, offset):
    pictures(tmp_path, 8)
    poses = far(RING, [offset, 0.7 * offset, 0])
    listing(tmp_path, name, {"fl_x": F}, poses)
    views = sg.load_data(tmp_path)
    true = np.array([pose[:3, 3] for pose in poses])[8 - views.frames :]
    # Without an offset of its own, a place at 5e6 would be rounded to 0.5.
    assert np.max(np.abs(places(views) - true)) < 1e-6
    assert np.max(np.abs(np.asarray(views.camera(0).pose.offset()))) < 10
    assert len(views.notes) == (offset > 0) and bool(np.any(views.origin)) == (offset > 0)


@pytest.mark.parametrize("offset", OFFSETS)
def test_places_and_points_of_a_model(tmp_path, offset):
    """COLMAP's world is turned by the loader: (x, y, z) to (x, z, -y)."""
    pictures(tmp_path, 8)
    shift = np.array([offset, 0.7 * offset, -0.3 * offset])
    poses = far(RING, shift)
    colmap(tmp_path, poses)
    model = tmp_path / "sparse/0/points3D.txt"
    near = np.array([[0.0, 0, 0], [0.3, 0.2, 0.1]])
    rows = [f"{i} {' '.join(map(repr, map(float, p + shift)))} 9 9 9 1" for i, p in enumerate(near)]
    model.write_text("\n".join(rows) + "\n")
    views = sg.load_data(tmp_path)
    turned = lambda x: np.stack([x[:, 0], x[:, 2], -x[:, 1]], axis=1)
    true = np.array([pose[:3, 3] for pose in poses])[1:]
    # The file's own translations are products with 5e6: they are rounded to 1e-9 of that.
    assert np.max(np.abs(places(views) - turned(true))) < 1e-6 + 1e-14 * offset
    points = np.asarray(views.points, float) + views.origin
    assert np.max(np.abs(points - turned(near + shift))) < 1e-6 + 1e-14 * offset


def test_splits_of_their_own_files_have_one_origin(tmp_path):
    pictures(tmp_path, 8)
    poses = far(RING, [3e5, 4e5, 10.0])
    listing(tmp_path, "transforms_train.json", {"fl_x": F}, poses[:5])
    listing(tmp_path, "transforms_test.json", {"fl_x": F}, poses[5:], path="images/{}.png")
    train, test = (sg.load_data(tmp_path, split) for split in ("train", "test"))
    assert train.origin == test.origin and any(train.origin)
    assert np.max(np.abs(places(test) - [pose[:3, 3] for pose in poses[5:]])) < 1e-6


def test_where_the_origin_moves():
    ring = np.array([pose[:3, 3] for pose in RING])
    assert not np.any(choose_origin(ring)) and not np.any(choose_origin(ring + 200.0))
    assert not np.any(choose_origin(np.full((3, 3), 1e6)))  # one place, and no distance
    moved = choose_origin(ring + 1e4)
    assert np.max(np.abs(moved - 1e4)) < 8
    lost = np.concatenate([ring + 1e4, np.zeros((1, 3))])  # one was not found
    assert np.max(np.abs(choose_origin(lost) - 1e4)) < 8
    tiny = choose_origin(1e-3 * ring + 10)
    assert np.max(np.abs(tiny - 10)) < 8e-3 and np.any(tiny)


def test_cameras_are_given_back(tmp_path):
    pictures(tmp_path / "data", 8)
    poses = far(RING, [5e6, 3e6, 0])
    listing(tmp_path / "data", "transforms.json", {"fl_x": F}, poses)
    views = sg.load_data(tmp_path / "data")
    path = save_transforms(tmp_path / "found.json", {"train": views}, tmp_path / "data")
    written = [frame["transform_matrix"] for frame in json.loads(path.read_text())["frames"]]
    true = np.array(poses)[1:, :3, 3]
    assert np.max(np.abs(np.array(written)[:, :3, 3] - true)) < 1e-6


def test_paths_of_films_are_in_the_world_of_the_data(tmp_path):
    path, origin = tmp_path / "path.json", (5e6, 3e6, 0.0)
    path.write_text(json.dumps([pose.tolist() for pose in far(RING, origin)]))
    camera = sg.PerspectiveCamera(sg.Pose(RING[0]), F, W, H)
    cameras = read_camera_path(path, camera, origin).cameras
    for camera, pose in zip(cameras, RING, strict=True):
        np.testing.assert_allclose(camera.pose.offset(), pose[:3, 3], atol=1e-6)


def test_meshes_are_given_back(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    scene = sg.Scene(sg.Group(ball=sg.Surface(sg.Sphere([1.0, 2, 3], 0.5), [0.5, 0.5, 0.5])))
    origin = np.array([5e6, 3e6, 0.25])
    for name in ("a.ply", "a.glb"):
        export_scene(scene, tmp_path / name, origin=origin.tolist(), z_up=False)
        loaded = trimesh.load(tmp_path / name)
        vertices = loaded.to_geometry().vertices if name == "a.glb" else loaded.vertices
        distance = np.linalg.norm(vertices - origin - [1, 2, 3], axis=1)
        assert np.max(np.abs(distance - 0.5)) < 1e-5
    export_scene(scene, tmp_path / "up.glb", origin=origin.tolist(), z_up=True)
    middle = trimesh.load(tmp_path / "up.glb").to_geometry().vertices.mean(axis=0)
    assert np.max(np.abs(middle - [5e6 + 1, 3.25, -3e6 - 2])) < 1e-2
