"""Captures as they come: missing and damaged files, EXIF orientations, masks, names, splits."""

import json
import pathlib
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import scenegraph as sg
from scenegraph.data import load_colmap, RayBatches
from scenegraph.io import FileError, write_picture
from scenegraph.pixels import pixels_through
from support.blender_folder import write_ball
from support.helpers import assert_close
from support.transforms_folder import frames, LENS, NAMES, noise, POSES, write_transforms


PLAIN = dict(camera_model="PINHOLE", fl_x=9.0, fl_y=9.0, cx=4.0, cy=3.0, w=8, h=6)


def listing(count: int = 10, **more) -> dict:
    return PLAIN | {"frames": frames(count)} | more


def load(folder, split="train", **options) -> sg.Views:
    return sg.load_data(folder, split, **options)


def letters(views: sg.Views) -> str:
    return "".join(pathlib.PurePosixPath(name).stem for name in views.names)


# --- Missing and damaged files


@pytest.fixture
def spoilt(tmp_path) -> pathlib.Path:
    """Ten pictures, of which c and e are missing and g is damaged; a and i are held out."""
    folder = write_transforms(tmp_path, listing())
    for name in ("c", "e"):
        (folder / "images" / f"{name}.png").unlink()
    data = (folder / "images" / "g.png").read_bytes()
    (folder / "images" / "g.png").write_bytes(data[: len(data) * 2 // 3])
    return folder


def test_all_files_are_counted_and_named_at_once(spoilt):
    for split in ("train", "test"):
        with pytest.raises(FileError) as caught:
            load(spoilt, split)
        text = str(caught.value)
        assert "3 of 10 picture files cannot be read" in text and str(spoilt) in text
        assert "2 missing: c.png, e.png; 1 damaged: g.png" in text and "--skip-missing" in text
        (spoilt / "images" / "a.png").touch()  # The pictures of `test` are there.
        if split == "train":
            write_picture(spoilt / "images" / "a.png", noise(1, 8, 6))


def test_skipping_keeps_pictures_with_their_cameras(spoilt, tmp_path):
    whole = tmp_path / "whole"
    expected = load(write_transforms(whole, listing()))
    found = load(spoilt, skip_missing=True)
    assert letters(expected) == "bcdefghj" and letters(found) == "bdfhj"
    for index, place in enumerate([0, 2, 4, 6, 7]):
        np.testing.assert_array_equal(found.image(index).rgb, expected.image(place).rgb)
        poses = [np.asarray(x.pose.offset()) for x in (found.camera(index), expected.camera(place))]
        np.testing.assert_array_equal(*poses)
    (note,) = found.notes
    assert note.startswith("3 of 8 pictures are left out: 3 of 10") and "g.png" in note
    assert load(spoilt, "test", skip_missing=True).notes == ()


def test_a_split_of_which_nothing_is_left(spoilt):
    for name in ("a", "i"):
        (spoilt / "images" / f"{name}.png").unlink()
    with pytest.raises(FileError, match="5 of 10 .* No picture is left"):
        load(spoilt, "test", skip_missing=True)


@pytest.mark.parametrize("split_lists", [False, True])
def test_frames_whose_poses_cannot_be(tmp_path, split_lists):
    about = listing()
    for index, change in ((2, {"transform_matrix": (2 * np.eye(4)).tolist()}), (5, {})):
        del about["frames"][index]["transform_matrix"]
        about["frames"][index].update(change)
    if split_lists:
        names = [f"./{frame['file_path']}" for frame in about["frames"]]
        about |= {"train_filenames": names[1:], "val_filenames": names[:1]}
    folder = write_transforms(tmp_path, about)
    with pytest.raises(FileError) as caught:
        load(folder)
    text = str(caught.value)
    assert "2 of 10 frames have no usable pose: frame 2: " in text and "not a rotation; " in text
    assert "frame 5: `transform_matrix`" in text and "--skip-missing" in text
    found = load(folder, skip_missing=True)
    assert "2 of 10 frames are left out" in found.notes[0] and "frame 5" in found.notes[0]
    names = [frame["file_path"] for frame in about["frames"]]
    kept = [name for i, name in enumerate(sorted(names)) if name not in (names[2], names[5])]
    # Every eighth of those that are left is held out, unless lists say which.
    assert list(found.names) == ([x for x in kept if x != names[0]] if split_lists else kept[1:])
    for index, name in enumerate(found.names):
        own = np.array(about["frames"][names.index(name)]["transform_matrix"])
        assert_close(found.camera(index).pose.linear(), own[:3, :3], 0, 1e-6)


def test_no_frame_with_a_pose_is_left(tmp_path):
    about = listing()
    for frame in about["frames"]:
        frame["transform_matrix"] = np.zeros((4, 4)).tolist()
    with pytest.raises(FileError, match="10 of 10 frames have no usable pose"):
        load(write_transforms(tmp_path, about), skip_missing=True)


def test_skipping_in_other_formats(tmp_path):
    folder = write_ball(tmp_path, {"train": 4})
    (folder / "train" / "r_2.png").unlink()
    with pytest.raises(FileError, match="1 of 4 .*r_2.png.*--skip-missing"):
        load(folder)
    found = load(folder, skip_missing=True)
    assert [name[-1] for name in found.names] == ["0", "1", "3"] and "1 of 4" in found.notes[0]


def test_pictures_that_differ_are_no_missing_ones(tmp_path):
    folder = write_transforms(tmp_path, listing(3))
    write_picture(folder / "images" / "c.png", noise(0, 8, 6, 4))
    with pytest.raises(FileError, match="as many channels"):
        load(folder, skip_missing=True, held_out=["a"])


# --- EXIF orientations


def write_turned(folder: pathlib.Path, orientation: int, **lens) -> pathlib.Path:
    """Pictures of 8 x 6 pixels as they are stored, with an EXIF orientation."""
    write_transforms(folder, listing(3, **lens))
    exif = Image.Exif()
    exif[0x0112] = orientation
    for index, frame in enumerate(frames(3)):
        Image.fromarray(noise(index, 8, 6)).save(folder / frame["file_path"], exif=exif)
    return folder


def test_cameras_of_upright_pictures_turn_them(tmp_path):
    folder = write_turned(tmp_path, 6, w=6, h=8, cx=3.0, cy=4.0)
    views = load(folder, held_out=["a"])
    assert (int(views.widths[0]), int(views.heights[0])) == (6, 8)
    expected = np.rot90(noise(0, 8, 6), -1) / 255  # a quarter turn clockwise
    np.testing.assert_allclose(views.image(1).rgb, expected, atol=1e-6)
    (note,) = views.notes
    assert note.startswith("2 pictures are turned upright")
    half = load(folder, held_out=["a"], downscale=2).image(1).rgb
    blocks = expected.reshape(4, 2, 3, 2, 3).mean(axis=(1, 3))
    np.testing.assert_allclose(half, blocks, atol=1e-6)


@pytest.mark.parametrize(
    ("orientation", "lens", "said"),
    [
        (6, {}, "as they are stored"),
        (3, {}, "no size shows"),
        (6, dict(w=None, h=None), "no size shows"),
        (1, {}, None),
    ],
)
def test_what_is_not_turned_is_said(tmp_path, orientation, lens, said):
    views = load(write_turned(tmp_path, orientation, **lens), held_out=["a"])
    np.testing.assert_allclose(views.image(1).rgb, noise(0, 8, 6) / 255, atol=1e-6)
    assert (len(views.notes) == 0) if said is None else (said in views.notes[0])


# --- Masks


def write_masks(folder: pathlib.Path, pattern: str, size=(8, 6)) -> np.ndarray:
    """Masks of all pictures but the last, which leave out the two columns on the left."""
    mask = np.full((size[1], size[0]), 255, np.uint8)
    mask[:, : size[0] // 4] = 0
    for name in NAMES[:-1]:
        path = folder / pattern.format(pathlib.PurePosixPath(name).stem)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask).save(path)
    return mask[:6, :8] > 0


@pytest.mark.parametrize(
    "pattern", ["masks/{}.png", "masks/{}.png.png", "masks/images/{}.jpg", "mask/{}.bmp"]
)
def test_masks_beside_the_pictures(tmp_path, pattern):
    folder = write_transforms(tmp_path, listing())
    mask = write_masks(folder, pattern)
    views = load(folder)
    weights = np.asarray(views.weights).reshape(8, 6, 8)
    assert weights[-1].all() and all(np.array_equal(x, mask) for x in weights[:-1])
    share = 100 * 7 * 12 / (8 * 48)
    assert views.notes == (f"masks of 7 of 8 pictures leave out {share:.1f} % of all pixels",)
    assert load(folder, masks=False).weights is None


def test_masks_that_frames_name(tmp_path):
    named = [frame | {"mask_path": f"own/{index}.png"} for index, frame in enumerate(frames(3))]
    folder = write_transforms(tmp_path, PLAIN | {"frames": named})
    (folder / "own").mkdir()
    masks = np.random.default_rng(0).integers(0, 2, (3, 12, 16), np.uint8) * 255
    for index, mask in enumerate(masks):
        write_picture(folder / "own" / f"{index}.png", np.repeat(mask[..., None], 3, axis=-1))
    views = load(folder, hold_every=2)
    # A pixel counts if all four of the mask, which is twice as large, do.
    whole = masks.reshape(3, 6, 2, 8, 2).min(axis=(2, 4)) > 0
    np.testing.assert_array_equal(np.asarray(views.weights).reshape(6, 8), whole[2])


def test_masked_pixels_have_no_weight_in_batches(tmp_path):
    folder = write_transforms(tmp_path, listing())
    mask = write_masks(folder, "masks/{}.png")
    views = load(folder)
    batches = RayBatches(views, 512)
    batch, drawn = batches.batch(0, 3), batches.draw(0, 3)
    column, row = np.asarray(drawn.place).T
    expected = np.where(np.asarray(drawn.frame) == 7, True, mask[row, column])
    np.testing.assert_array_equal(batch.lossmult, expected.astype(np.float32))


def test_masked_pixels_are_not_listed(tmp_path):
    """Pixels of batches that meet a box about everything are those that count."""
    folder = write_transforms(tmp_path, listing())
    write_masks(folder, "masks/{}.png")
    views = load(folder)
    listed = np.asarray(pixels_through(views, np.full(3, -50.0), np.full(3, 50.0)).indices)
    np.testing.assert_array_equal(listed, np.flatnonzero(np.asarray(views.weights)))


def test_bad_masks(tmp_path):
    folder = write_transforms(tmp_path, listing())
    write_masks(folder, "masks/{}.png", (7, 6))
    with pytest.raises(FileError, match="the mask .*7x6 pixels, and its picture 8x6.*--no-masks"):
        load(folder)
    for name in NAMES:
        write_picture(folder / name.replace("images", "masks"), np.zeros((6, 8, 3), np.uint8))
    with pytest.raises(FileError, match="leave out every pixel.*--no-masks"):
        load(folder)
    shutil.rmtree(folder / "masks")
    (folder / "masks").mkdir()
    write_picture(folder / "masks" / "other.png", np.zeros((6, 8, 3), np.uint8))
    views = load(folder)
    assert views.weights is None and "has no mask of any picture" in views.notes[0]


# --- Names and files


@pytest.mark.parametrize("ending", [".png", ".jpg", ".JPG", ".jpeg", ".webp"])
def test_names_without_ending(tmp_path, ending):
    folder = write_transforms(tmp_path, listing(2))
    for name in NAMES[:2]:
        pixels = Image.open(folder / name)
        (folder / name).unlink()
        pixels.save((folder / name).with_suffix(ending))
    bare = [frame | {"file_path": frame["file_path"][:-4]} for frame in frames(2)]
    (folder / "transforms.json").write_text(json.dumps(PLAIN | {"frames": bare}))
    assert load(folder).names == ("images/c",)


def test_absolute_paths_inside_a_mark_and_the_file_itself(tmp_path):
    folder = write_transforms(tmp_path / "data", listing(10))
    given = [frame | {"file_path": str(folder / frame["file_path"])} for frame in frames(10)]
    text = json.dumps(PLAIN | {"frames": given})
    (folder / "transforms.json").write_text(text, encoding="utf-8-sig")
    assert load(folder / "transforms.json").names == tuple(
        sorted(NAMES)[i] for i in (1, 2, 3, 4, 5, 6, 7, 9)
    )


# --- Splits


@pytest.mark.parametrize(
    ("held_out", "expected"),
    [
        ([3, 0], "ad"),
        (["3", "7"], "dh"),
        (["b", "images/c.png", "j.png"], "bcj"),
        (["./images/a.png"], None),
        (["10"], None),
        ([-1], None),
    ],
)
def test_held_out_by_number_or_name(tmp_path, held_out, expected):
    folder = write_transforms(tmp_path, listing())
    if expected is None:
        with pytest.raises(FileError, match="transforms.json.* from 0 to 9; correct --held-out"):
            load(folder, held_out=held_out)
        return
    assert letters(load(folder, "test", held_out=held_out)) == expected
    rest = "".join(x for x in "abcdefghij" if x not in expected)
    assert letters(load(folder, held_out=held_out)) == rest


def test_numbers_as_names_go_first(tmp_path):
    renamed = [
        frame | {"file_path": f"images/{9 - i:03d}.png"} for i, frame in enumerate(frames(5))
    ]
    folder = write_transforms(tmp_path, PLAIN | {"frames": renamed})
    assert letters(load(folder, "test", held_out=["007", "2"])) == "007"


def test_held_out_goes_before_the_lists_of_the_file(tmp_path):
    lists = {"train_filenames": NAMES[:9], "test_filenames": NAMES[9:10]}
    folder = write_transforms(tmp_path, listing(**lists))
    assert letters(load(folder, "test")) == "j"
    assert letters(load(folder, "test", held_out=["b"])) == "b"


def test_all_held_out(tmp_path):
    folder = write_transforms(tmp_path, listing(2))
    with pytest.raises(FileError, match="leave none for the split 'train'.*--held-out"):
        load(folder, held_out=[0, 1])


# --- Lenses


@pytest.mark.parametrize(
    ("model", "changes", "share"),
    [
        # r (1 - k r^2) turns back at r = 1 / sqrt(3 k), where it is 2/3 of that.
        ("RADIAL", dict(k1=-3.0), True),
        ("RADIAL", dict(k1=-0.05), False),
        ("OPENCV_FISHEYE", dict(k1=-2.0), True),
        ("OPENCV_FISHEYE", dict(k1=-0.01), False),
        ("FULL_OPENCV", dict(k4=90.0), True),
        ("OPENCV", dict(k3=-1e6), True),
    ],
)
def test_coefficients_that_fold_the_picture_over(tmp_path, model, changes, share):
    folder = write_transforms(tmp_path, listing(3, camera_model=model, **changes))
    if not share:
        assert load(folder, hold_every=2).frames == 1
        return
    name = next(iter(changes))
    with pytest.raises(FileError, match=f"transforms.json: frame .*{name}.* fold the picture over"):
        load(folder, hold_every=2)


def test_the_fold_is_where_the_formula_turns():
    """r (1 - k r^2) has its maximum 2/3 / sqrt(3 k); the pixels beyond are counted one by one."""
    from scenegraph.data._folds import folded_share

    k, focal = 0.9, 40.0
    x, y = np.meshgrid(np.arange(640) + 0.5 - 320, np.arange(480) + 0.5 - 240)
    expected = np.mean(np.hypot(x, y) / focal > 2 / 3 / np.sqrt(3 * k))
    found = folded_share("RADIAL", {"k1": -k}, np.array([focal, focal, 320.0, 240.0]), (640, 480))
    assert abs(found - expected) < 0.01 and 0.5 < expected < 1


def test_points_of_the_listing(tmp_path):
    folder = write_transforms(tmp_path, listing(3, ply_file_path="points.ply"))
    views = load(folder, hold_every=2)
    assert views.points is None and "ply_file_path" in views.notes[0]
    points = [(1.0, 2.0, 3.0), (0.5, -1.0, 4.0)]
    rows = "\n".join(" ".join(map(str, point)) for point in points)
    axes = "\n".join(f"property float {axis}" for axis in "xyz")
    head = f"ply\nformat ascii 1.0\nelement vertex 2\n{axes}\nend_header\n"
    (folder / "points.ply").write_text(head + rows + "\n")
    views = load(folder, hold_every=2)
    np.testing.assert_allclose(views.points, points)
    assert views.notes == ()
    (folder / "points.ply").write_text(head[:40])
    assert "not used" in load(folder, hold_every=2).notes[0]


def test_nothing_is_loaded_where_no_model_is(tmp_path):
    with pytest.raises(FileError, match="no COLMAP model"):
        load_colmap(tmp_path)


def test_poses_are_those_of_the_listing(tmp_path):
    views = load(write_transforms(tmp_path, LENS | {"frames": frames(10)}))
    place = NAMES.index("images/b.png")
    np.testing.assert_allclose(views.camera(0).pose.offset(), POSES[place][:3, 3], atol=1e-6)
    assert jnp.all(views.lossmult == 1)
