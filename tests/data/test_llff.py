"""LLFF folders: what comes out of good ones, and what is refused."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import llff_spiral, NDCCamera, recentre_poses, spherified_circle
from scenegraph.data import find_bounds, llff_path, load_llff
from scenegraph.io import FileError, write_picture
from support.helpers import assert_close
from support.llff_folder import facing_poses, inward_poses, write_llff


POSES = facing_poses(9)


@pytest.fixture
def pictures() -> np.ndarray:
    """Nine pictures, 8 pixels wide and 6 high."""
    return np.random.default_rng(0).integers(0, 256, (9, 6, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, pictures) -> pathlib.Path:
    return write_llff(tmp_path / "data", POSES, pictures)


def table_of(folder: pathlib.Path) -> np.ndarray:
    return np.load(folder / "poses_bounds.npy")


# --- Good folders


def test_splits_and_pictures(folder, pictures):
    train, test = (load_llff(folder, split) for split in ("train", "test"))
    assert test.names == ("img_00.png", "img_08.png") and train.frames == 7
    np.testing.assert_array_equal(test.pixels, pictures[[0, 8]].reshape(-1, 3))
    np.testing.assert_array_equal(train.pixels, pictures[1:8].reshape(-1, 3))
    assert load_llff(folder, "test", hold_every=3).names == tuple(
        f"img_{i:02d}.png" for i in (0, 3, 6)
    )


def test_world_is_about_the_average_camera(folder):
    """Up to one rigid motion and one scale, cameras stand as they did."""
    views = load_llff(folder, ndc=False)
    mine = np.stack([views.camera(i).pose.offset() for i in range(7)])
    scale = 1 / (0.75 * 2.0)
    apart = np.linalg.norm(mine[:, None] - mine, axis=-1)
    given = POSES[1:8, :3, 3]
    assert_close(apart, scale * np.linalg.norm(given[:, None] - given, axis=-1), 1e-5)
    both = [load_llff(folder, s, ndc=False) for s in ("train", "test")]
    places = [v.camera(i).pose.offset() for v in both for i in range(v.frames)]
    assert_close(np.mean(places, axis=0), np.zeros(3), 0, 1e-6)
    axes = [v.camera(i).pose.linear()[:, 2] for v in both for i in range(v.frames)]
    assert_close(np.sum(axes, axis=0) / np.linalg.norm(np.sum(axes, axis=0)), [0, 0, 1], 0, 1e-6)
    camera = views.camera(0)
    assert float(camera.focal) == 20 and (camera.width, camera.height) == (8, 6)
    assert_close([camera.near, camera.far], [0.9 * scale * 2.0, 1.1 * scale * 9.8], 1e-6)


def test_bent_rays_see_what_the_plain_ones_see(folder):
    plain, bent = load_llff(folder, ndc=False), load_llff(folder)
    one, other = plain.camera(2), bent.camera(2)
    assert isinstance(other, NDCCamera) and not other.published
    pixel = jnp.array([3.5, 1.5])
    world = one.ray(pixel).at(4.0)
    x, y, z = world
    frustum = 2 * 20 / np.array([8, 6])
    place = jnp.stack([-frustum[0] * x / z, -frustum[1] * y / z, 1 + 2 / z])
    assert_close(other.project(place), pixel, 1e-4)
    assert_close(other.ray(pixel).view, one.ray(pixel).view, 1e-6)


def test_smaller_pictures_have_their_folder_or_are_made(tmp_path, pictures):
    big = np.random.default_rng(1).integers(0, 256, (9, 12, 16, 3), dtype=np.uint8)
    folder = write_llff(tmp_path / "data", POSES, big)
    made = load_llff(folder, downscale=2)
    means = big[1:8].reshape(7, 6, 2, 8, 2, 3).mean((2, 4)) / 255
    assert_close(made.pixels, means.reshape(-1, 3), 1e-6)
    (folder / "images_2").mkdir()
    for index, picture in enumerate(pictures):
        write_picture(folder / "images_2" / f"small_{index}.JPG", picture)
    found = load_llff(folder, downscale=2)
    assert found.names[0] == "small_1.JPG" and found.pixels.dtype == jnp.uint8
    for a, b in zip(jax.tree.leaves(made.cameras), jax.tree.leaves(found.cameras), strict=True):
        assert_close(a, b)
    assert float(made.camera(0).camera.focal) == 10


def test_inward_cameras_stand_about_the_unit_sphere(tmp_path, pictures):
    folder = write_llff(tmp_path / "ring", inward_poses(9), pictures)
    both = [load_llff(folder, s, spherify=True) for s in ("train", "test")]
    cameras = [v.camera(i) for v in both for i in range(v.frames)]
    places = np.stack([camera.pose.offset() for camera in cameras])
    assert np.mean(np.sum(places**2, axis=1)) == pytest.approx(1, rel=1e-5)
    for camera in cameras:  # All look at the origin, and z is up.
        assert_close(camera.project(jnp.zeros(3)), [4, 3], 0, 1e-3)
    assert np.all(places[:, 2] > 0.2)
    film = llff_path(folder, 12, spherify=True)
    assert_close([camera.pose.offset()[2] for camera in film], np.full(12, places[:, 2].mean()))
    for camera in film:
        assert_close(camera.project(jnp.zeros(3)), [4, 3], 0, 1e-3)
        above = camera.project(jnp.array([0.0, 0.0, 0.2]))
        assert above[1] < 2.9 and abs(above[0] - 4) < 1e-3


def test_box_of_bent_cameras_holds_all_that_they_see(folder):
    views = load_llff(folder)
    lower, upper = find_bounds(views)
    for frame in (0, 6):
        for corner in ([0, 0], [8, 0], [0, 6], [8, 6]):
            ray = views.camera(frame).ray(jnp.asarray(corner, jnp.float32))
            for t in (0.0, 0.5, 1.0):
                assert np.all(lower <= ray.at(t)) and np.all(ray.at(t) <= upper)
    assert_close([lower[2], upper[2]], [-1, 1], 1e-3)


# --- Films


def test_spiral_looks_at_one_point_and_returns():
    poses = recentre_poses(POSES)
    path = llff_spiral(poses, np.tile([2.0, 9.0], (9, 1)), 16)
    assert path.shape == (16, 4, 4)
    np.testing.assert_allclose(
        path[:, :3, :3] @ path[:, :3, :3].swapaxes(1, 2), np.eye(3)[None].repeat(16, 0), atol=1e-12
    )
    # The point is 1 / (1/4 / (0.9 near) + 3/4 / (5 far)) before the average camera.
    distance = 1 / (0.25 / 1.8 + 0.75 / 45)
    towards = np.array([0, 0, -distance]) - path[:, :3, 3]
    across = np.cross(towards, path[:, :3, 2])
    assert np.max(np.abs(across)) < 1e-12
    # Two turns: half way round it is where it began, but for the slower swing along the axis.
    reach = np.percentile(np.abs(poses[:, :3, 3]), 90, axis=0)
    angles = 4 * np.pi * np.arange(16) / 16
    expected = reach * np.stack([np.cos(angles), -np.sin(angles), -np.sin(angles / 2)], axis=1)
    assert_close(path[:, :3, 3], expected, 1e-12, 1e-12)


def test_circle_is_closed_only_if_asked():
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, :3, 3] = [[1, 0, 0.5], [0, 1, 0.5], [-1, 0, 0.5]]
    path, closed = spherified_circle(poses, 8), spherified_circle(poses, 9, closed=True)
    assert_close(closed[:8], path, 1e-12, 1e-12)
    assert_close(closed[8], closed[0], 1e-12, 1e-12)
    angles = np.pi / 4 * np.arange(8)
    assert_close(path[:, 0, 3], np.cos(angles), 0, 1e-12)
    assert_close(path[:, 2, 3], np.full(8, 0.5), 0, 1e-12)


def test_paths_without_frames(folder):
    for arguments in ({}, {"spherify": True}):
        with pytest.raises(ValueError, match="at least one frame; got 0"):
            llff_path(folder, 0, **arguments)


# --- What is refused


def refuse(folder: pathlib.Path, *parts: str, **options) -> None:
    with pytest.raises(FileError) as caught:
        load_llff(folder, **options)
    for part in parts:
        assert part in str(caught.value)


def test_no_folder_and_no_listing(tmp_path):
    refuse(tmp_path / "missing", "missing", "there is no folder")
    refuse(tmp_path, "poses_bounds.npy")


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_truncated_listing(folder, kept):
    path = folder / "poses_bounds.npy"
    path.write_bytes(path.read_bytes()[:kept])
    refuse(folder, "poses_bounds.npy", "damaged")


def test_objects_are_never_unpickled(folder):
    ran = folder / "ran"

    class Trap:
        def __reduce__(self):
            return pathlib.Path.touch, (ran,)

    np.save(folder / "poses_bounds.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    refuse(folder, "poses_bounds.npy")
    assert not ran.exists()


def test_archive_in_the_place_of_the_listing(folder):
    with (folder / "poses_bounds.npy").open("wb") as file:
        np.savez(file, table=np.zeros((9, 17)))
    refuse(folder, "poses_bounds.npy", "damaged")


def test_header_that_claims_more_than_there_is(folder):
    path = folder / "poses_bounds.npy"
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 17)}
        np.lib.format.write_array_header_1_0(file, header)
    refuse(folder, "poses_bounds.npy", "damaged")


@pytest.mark.parametrize(
    "table, reason",
    [
        (np.zeros((0, 17)), "17 numbers"),
        (np.zeros((9, 15)), "17 numbers"),
        (np.zeros(17), "17 numbers"),
        (np.zeros((9, 17), complex), "real numbers"),
        (np.full((9, 17), "x"), "real numbers"),
        (np.zeros((9, 17)), "depths must be positive"),
    ],
)
def test_table_of_another_kind(folder, table, reason):
    np.save(folder / "poses_bounds.npy", table)
    refuse(folder, "poses_bounds.npy", reason)


@pytest.mark.parametrize(
    "column, value, reason",
    [
        (3, np.nan, "not finite"),
        (16, np.inf, "not finite"),
        (15, -1.0, "depths must be positive"),
        (15, 50.0, "the near one less than the far one"),
        (14, 0.0, "above zero"),
        (14, 21.0, "one size and focal length"),
        (4, 7.0, "one size and focal length"),
        (0, 3.0, "picture 4: the 3x3 part"),
    ],
)
def test_entry_that_makes_no_sense(folder, column, value, reason):
    table = table_of(folder)
    table[4, column] = value
    np.save(folder / "poses_bounds.npy", table)
    refuse(folder, "poses_bounds.npy", reason)


def test_more_poses_than_pictures(folder):
    (folder / "images" / "img_05.png").unlink()
    refuse(folder, "images", "has 8 pictures", "9 poses")


def test_no_pictures_of_that_size(tmp_path, pictures):
    folder = write_llff(tmp_path / "data", POSES, pictures, factor=4)
    assert load_llff(folder, downscale=4).frames == 7
    refuse(folder, "images_2", "images_4", "--downscale", downscale=2)
    refuse(folder, "no folder images", "images_4", "--downscale")


def test_pictures_of_another_size_than_the_listing_says(tmp_path, pictures):
    folder = write_llff(tmp_path / "data", POSES, pictures, factor=4, name="images_2")
    refuse(folder, "img_01.png", "8x6", "16x12", downscale=2)


def test_pictures_of_different_shapes(folder):
    write_picture(folder / "images" / "img_05.png", np.zeros((6, 9, 3), np.uint8))
    refuse(folder, "img_05.png", "(6, 9, 3)", "img_01.png")


def test_symbolic_link_out_of_the_folder(folder):
    write_picture(folder.parent / "outside.png", np.zeros((6, 8, 3), np.uint8))
    (folder / "images" / "img_05.png").unlink()
    (folder / "images" / "img_05.png").symlink_to(folder.parent / "outside.png")
    refuse(folder, "img_05.png", "leads out")


def test_splits_that_are_not_there(folder):
    refuse(folder, "no split 'val'", "train and test", split="val")
    with pytest.raises(ValueError, match="at least 2"):
        load_llff(folder, hold_every=1)


def test_one_picture_leaves_none_to_train_on(tmp_path, pictures):
    folder = write_llff(tmp_path / "data", POSES[:1], pictures[:1])
    assert load_llff(folder, "test", ndc=False).frames == 1
    refuse(folder, "leave none for the split 'train'")


def test_views_of_the_library(folder):
    """What is loaded can be rendered and compared."""
    views = load_llff(folder, "test")
    fog = sg.fields.ConstantFog(0.5, [0.2, 0.3, 0.4])
    scene = sg.Scene(sg.Group(fog=sg.Volume(fog, bounds=None)), background=[0.0, 0.0, 0.0])
    image = sg.render(scene, views.camera(0))
    # Along a bent ray from 0 to 1: as much fog as the ray is long.
    lengths = [
        jnp.linalg.norm(views.camera(0).ray(jnp.array([x + 0.5, 2.5])).direction) for x in (0, 7)
    ]
    assert_close(image.alpha[2, jnp.array([0, 7])], 1 - np.exp(-0.5 * np.array(lengths)), 1e-4)
