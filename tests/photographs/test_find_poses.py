"""Poses of photographs: found, with reasons for those that are not."""

import json
import pathlib
import shutil

import jax
import numpy as np
import pytest
from PIL import Image as PillowImage, ImageFilter

import scenegraph as sg
from scenegraph.cameras import pose_matrix
from scenegraph.data import needs_poses
from scenegraph.io import FileError, MissingExtra, read_colmap
from scenegraph.pixels import known_cameras
from support.photographs import (
    around,
    boxes_on_table,
    look_at,
    noise,
    photograph,
    pose_errors,
    Rectangle,
    write_photographs,
)


pytest.importorskip("pycolmap", reason="finding poses needs the extra photos")

NAME = "früh am Morgen/foto {}.jpg"


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    """Twelve photographs of boxes on a table, and the poses they were taken from."""
    folder = tmp_path_factory.mktemp("boxes")
    return folder, write_photographs(folder, around(12, turns=0.4), width=360, height=270)


@pytest.fixture(scope="module")
def mixed(boxes, tmp_path_factory):
    """The photographs under odd names, one of them turned by EXIF, and bad ones among them."""
    source, poses = boxes
    folder = tmp_path_factory.mktemp("mine") / "meine Bilder"
    named = {}
    for number, (name, pose) in enumerate(poses.items()):
        target = folder / NAME.format(number)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target)
        named[target.relative_to(folder).as_posix()] = pose
    turned = folder / NAME.format(3)
    exif = PillowImage.Exif()
    exif[0x0112] = 6  # a quarter turn to the right makes it upright
    with PillowImage.open(turned) as picture:
        picture.transpose(PillowImage.Transpose.ROTATE_90).save(turned, exif=exif, quality=92)
    shutil.copyfile(source / "005.jpg", folder / "twice.jpg")
    PillowImage.new("RGB", (360, 270)).save(folder / "black.jpg")
    with PillowImage.open(source / "006.jpg") as picture:
        picture.filter(ImageFilter.GaussianBlur(12)).save(folder / "blurred.jpg")
    (folder / "broken.jpg").write_bytes((source / "007.jpg").read_bytes()[:200])
    (folder / "._hidden.jpg").write_bytes(b"what macOS writes")
    before = _state(folder)
    out = tmp_path_factory.mktemp("out") / "capture"
    stages = []
    found = sg.data.find_poses(folder, out, progress=lambda *stage: stages.append(stage))
    assert _state(folder) == before
    return folder, named, found, stages


def _state(folder):
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return [(file, file.stat().st_mtime_ns, file.read_bytes()) for file in files]


def _found_poses(folder: pathlib.Path) -> dict[str, np.ndarray]:
    listing = json.loads((folder / "transforms.json").read_text())
    return {
        frame["file_path"].removeprefix("images/"): np.array(frame["transform_matrix"])
        for frame in listing["frames"]
    }


def test_good_photographs_are_placed(mixed):
    _, named, found, _ = mixed
    assert sorted(found.placed) == sorted(named)
    errors = pose_errors(_found_poses(found.folder), named)
    assert np.median(errors[:, 0]) < 0.01 and np.median(errors[:, 1]) < 0.5
    assert found.reprojection_error < 1 and found.models == (12,)
    # The true focal length is the width.
    assert all(abs(lens.focal - 360) < 8 for lens in found.lenses)


def test_others_have_a_reason(mixed):
    reasons = {one.name: one.why for one in mixed[2].unplaced}
    assert sorted(reasons) == ["black.jpg", "blurred.jpg", "broken.jpg", "twice.jpg"]
    assert "empty" in reasons["black.jpg"] and "blurred" in reasons["blurred.jpg"]
    assert "damaged" in reasons["broken.jpg"]
    assert reasons["twice.jpg"] == f"the same picture as {NAME.format(5)}"


def test_progress_names_stages_in_order(mixed):
    stages = list(dict.fromkeys(stage for stage, _, _ in mixed[3]))
    wanted = ["reading pictures", "finding features", "matching pairs", "placing pictures"]
    assert [stage for stage in stages if stage in wanted] == wanted
    assert all(0 <= done <= total for _, done, total in mixed[3])


def test_a_capture_is_read_as_it_is(mixed):
    _, named, found, _ = mixed
    views = sg.load_data(found.folder)
    assert views.frames + sg.load_data(found.folder, "test").frames == len(named)
    assert views.sightings is not None and views.points is not None
    listed = sg.load_transforms(found.folder / "transforms.json")
    assert listed.names == tuple(f"images/{name}" for name in views.names)
    matrices = jax.jit(jax.vmap(pose_matrix))
    poses = [np.asarray(matrices(known_cameras(one))) for one in (views, listed)]
    np.testing.assert_allclose(*poses, atol=1e-5)
    for name in ("cameras.png", "poses.md"):
        assert (found.folder / name).stat().st_size > 0
    with PillowImage.open(found.folder / "images" / NAME.format(3)) as picture:
        assert picture.size == (360, 270) and not picture.getexif().get(0x0112)


def test_rays_begin_half_way_to_what_is_nearest(mixed):
    views = sg.load_data(mixed[2].folder)
    rays = views.rays(views.sightings.pixel)
    away = np.linalg.norm(views.sightings.point - rays.origin, axis=-1)
    depths = away / np.linalg.norm(rays.direction, axis=-1)
    near = float(rays.near[0])
    assert 0.3 * np.min(depths) < near < 0.6 * np.percentile(depths, 2)
    given = sg.load_data(mixed[2].folder, near=0.25 * near)
    assert float(given.camera(0).near) == pytest.approx(0.25 * near)


def test_z_points_up(mixed):
    _, named, found, _ = mixed
    poses = _found_poses(found.folder)
    # Both worlds have the cameras' upward axes on average.
    rows = [(poses[name][:3, 1] @ [0, 0, 1], named[name][2, 1]) for name in named]
    np.testing.assert_allclose(*np.transpose(rows), atol=0.03)


def test_up_as_given(mixed, tmp_path):
    folder, _, found, _ = mixed
    again = tmp_path / "again"
    shutil.copytree(found.folder, again)
    turned = sg.data.find_poses(folder, again, up=(1.0, 0.0, 0.0))
    before, after = (_found_poses(one.folder) for one in (found, turned))
    name = NAME.format(0)
    # What was x is z now.
    np.testing.assert_allclose(after[name][2, :3], before[name][0, :3], atol=1e-3)


def test_a_second_call_goes_on(mixed):
    folder, _, found, _ = mixed
    stages = []
    again = sg.data.find_poses(folder, found.folder, progress=lambda *x: stages.append(x[0]))
    assert again == found and not stages


def test_moved_photographs_are_noticed(mixed, tmp_path):
    folder, named, found, _ = mixed
    fewer, out = tmp_path / "fewer", tmp_path / "out"
    shutil.copytree(folder, fewer)
    shutil.copytree(found.folder, out)
    (fewer / NAME.format(11)).unlink()
    stages = []
    again = sg.data.find_poses(fewer, out, progress=lambda *x: stages.append(x))
    assert NAME.format(11) not in again.placed and len(again.placed) == 11
    assert any("moved away" in note and NAME.format(11) in note for note in again.notes)
    assert not (out / "images" / NAME.format(11)).exists()
    # Features and matches of the others are not found again.
    assert ("finding features", 13, 13) not in stages


@pytest.mark.slow
def test_opacity_and_several_sizes(boxes, tmp_path):
    source, poses = boxes
    photos = tmp_path / "renders"
    photos.mkdir()
    scene = boxes_on_table()
    for number, pose in enumerate(poses.values()):
        width, height = (480, 360) if number % 2 else (300, 400)
        picture = photograph(scene, pose, width, height, 420.0)
        alpha = np.where((picture == (168, 176, 190)).all(axis=-1), 0, 255).astype(np.uint8)
        PillowImage.fromarray(np.dstack([picture, alpha])).save(photos / f"r_{number}.png")
    found = sg.data.find_poses(photos, tmp_path / "out", size=480)
    assert len(found.placed) >= 10 and len(found.lenses) == 2
    assert {(lens.width, lens.height) for lens in found.lenses} == {(480, 360), (300, 400)}
    assert sg.load_data(found.folder).pixels.shape[1] == 4


# --- What ends in a message


def test_too_few(boxes, tmp_path):
    photos = tmp_path / "two"
    photos.mkdir()
    for name in ("000.jpg", "001.jpg"):
        shutil.copyfile(boxes[0] / name, photos / name)
    with pytest.raises(FileError, match=r"two holds 2 usable pictures.*need 3"):
        sg.data.find_poses(photos, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_in_common(tmp_path):
    photos = tmp_path / "noise"
    photos.mkdir()
    for number in range(4):
        PillowImage.fromarray(noise(100 + number, 256)).save(photos / f"{number}.png")
    with pytest.raises(FileError, match="have nothing in common"):
        sg.data.find_poses(photos, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["work"]
    with pytest.raises(FileError, match="not found to the end"):
        needs_poses(tmp_path / "out")


def test_empty_pictures(tmp_path):
    photos = tmp_path / "dark"
    photos.mkdir()
    for number in range(3):
        PillowImage.new("RGB", (200 + number, 150)).save(photos / f"{number}.png")
    with pytest.raises(FileError, match="are empty"):
        sg.data.find_poses(photos, tmp_path / "out")


def test_a_turning_camera(tmp_path):
    eye = np.array([0.0, -0.4, 2.2])
    targets = [np.array([np.cos(a), np.sin(a) + 1.5, 0.0]) for a in np.linspace(0, 2, 8)]
    write_photographs(tmp_path / "photos", [look_at(eye, one) for one in targets])
    with pytest.raises(FileError, match="from one place"):
        sg.data.find_poses(tmp_path / "photos", tmp_path / "out")


def turned(part: Rectangle, angle: float) -> Rectangle:
    """A rectangle of half the size, turned about the z axis."""
    c, s = np.cos(angle), np.sin(angle)
    turn = 0.5 * np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return Rectangle(turn @ part.corner, turn @ part.right, turn @ part.up, part.texture)


def test_a_thing_that_turns_before_a_wall(tmp_path):
    """What keeps still does not hide that the thing turns."""
    pose = look_at(np.array([0.0, -4, 2]), np.array([0, 0, 0.3]))
    wall = Rectangle(np.array([-8.0, 4, -3]), 16.0 * np.eye(3)[0], 9.0 * np.eye(3)[2], noise(7))
    photos, true = tmp_path / "photos", {}
    photos.mkdir()
    for number, angle in enumerate(np.linspace(0, 2, 12)):
        parts = [turned(part, angle) for part in boxes_on_table()]
        fine = photograph([*parts, wall], pose, 720, 540, 720.0)
        picture = fine.reshape(270, 2, 360, 2, 3).mean(axis=(1, 3)).astype(np.uint8)
        PillowImage.fromarray(picture).save(photos / f"{number:02d}.png")
        back = np.eye(4)
        back[:2, :2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        true[f"{number:02d}.png"] = back @ pose
    found = sg.data.find_poses(photos, tmp_path / "out")
    assert len(found.placed) == 12
    assert any("the camera keeps still" in note for note in found.notes)
    # Pictures of one circle that show a small thing say little of the focal length and the tilt.
    errors = np.median(pose_errors(_found_poses(found.folder), true), axis=0)
    assert errors[0] < 0.01 and errors[1] < 3


@pytest.mark.slow
def test_two_unconnected_halves(boxes, tmp_path):
    photos = tmp_path / "photos"
    shutil.copytree(boxes[0], photos)
    for number, pose in enumerate(around(7, turns=0.25)):
        picture = photograph(boxes_on_table(seed=500), pose, 360, 270, 360.0)
        PillowImage.fromarray(picture).save(photos / f"other {number}.png")
    found = sg.data.find_poses(photos, tmp_path / "out")
    assert found.models[0] == 12 and len(found.models) == 2
    assert any("unconnected parts, of 12, " in note for note in found.notes)
    assert all("another part" in one.why for one in found.unplaced[: found.models[1]])


def test_without_pycolmap(boxes, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "pycolmap", None)
    with pytest.raises(MissingExtra, match=r"pip install scenegraph\[photos\]"):
        sg.data.find_poses(boxes[0], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_that_lie_in_each_other(boxes, tmp_path):
    with pytest.raises(FileError, match="nothing is written beside"):
        sg.data.find_poses(boxes[0], boxes[0] / "capture")
    with pytest.raises(FileError, match="nothing is written beside"):
        sg.data.find_poses(boxes[0], boxes[0].parent)
    assert not (boxes[0] / "capture").exists()


def test_a_folder_of_something_else(boxes, tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(FileError, match="no capture of an earlier call"):
        sg.data.find_poses(boxes[0], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_arguments_out_of_range(boxes, tmp_path):
    for options, name in (
        ({"size": 10}, "size"),
        ({"frames": 2}, "frames"),
        ({"up": (0, 0, 0)}, "up"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            sg.data.find_poses(boxes[0], tmp_path / "out", **options)
    with pytest.raises(FileError, match="there is no"):
        sg.data.find_poses(tmp_path / "nowhere", tmp_path / "out")


def test_the_model_is_colmaps(mixed):
    model = read_colmap(mixed[2].folder / "sparse" / "0")
    views = sg.load_data(mixed[2].folder)
    assert {image.name for image in model.images} >= set(views.names)
    pycolmap = pytest.importorskip("pycolmap")
    read = pycolmap.Reconstruction(str(mixed[2].folder / "sparse" / "0"))
    assert read.num_reg_images() == 12
