"""COLMAP's reconstructions read as they are: as after conversion, whole or refused."""

import dataclasses
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import _listed, convert_colmap, find_splits, load_colmap
from scenegraph.io import FileError, read_colmap, write_picture
from support.colmap_folder import (
    CAMERAS,
    copy_golden,
    IMAGES,
    MODEL,
    POINTS,
    write_binary,
    WRITERS,
)
from support.transforms_folder import noise


def write_folder(
    folder: pathlib.Path, encoding: str = "binary", sparse: str = "sparse/0", images: str = "images"
) -> pathlib.Path:
    """The naive model of two pictures, of 32 x 24 pixels."""
    write_images(folder / images)
    WRITERS[encoding](folder / sparse, *MODEL)
    return folder


def write_images(
    place: pathlib.Path, width: int = 32, height: int = 24, names=("b c.png", "a.png")
) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(names):
        write_picture(place / name, noise(seed, width, height))


def load(folder, split="train", **options) -> sg.Views:
    return sg.load_data(folder, split, **options)


@pytest.mark.parametrize("encoding", WRITERS)
def test_as_after_conversion(tmp_path, encoding):
    folder = write_folder(tmp_path, encoding)
    direct = load(folder)
    convert_colmap(folder / "sparse" / "0", folder)
    converted = sg.load_transforms(folder)
    assert direct.names == ("b c.png",) and converted.names == ("images/b c.png",)
    # A listing does not say which pixels show which points.
    assert converted.sightings is None
    direct = dataclasses.replace(direct, sightings=None)
    for one, other in zip(*map(jax.tree.leaves, (direct, converted)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    assert find_splits(folder) == ("train", "val", "test")


@pytest.mark.parametrize("sparse", ["sparse/0", "sparse", "colmap/sparse/0", "0", "."])
@pytest.mark.parametrize("images", ["images", "input", "."])
def test_where_model_and_pictures_may_be(tmp_path, sparse, images):
    folder = write_folder(tmp_path / "data", sparse=sparse, images=images)
    expected = np.asarray(load(folder).pixels)
    for place in (folder / sparse, folder / sparse / "cameras.bin"):
        np.testing.assert_array_equal(load(place).pixels, expected)


@pytest.mark.parametrize("downscale", [1, 2, 3])
def test_smaller_copies(tmp_path, downscale):
    """PNGs in `images_2` of pictures that the model calls JPEGs; their sizes are rounded."""
    images = [(*image[:4], image[4].replace(".png", ".JPG"), image[5]) for image in IMAGES]
    write_binary(tmp_path / "sparse", CAMERAS, images, POINTS)
    write_images(tmp_path / "images_2", 16, 12)
    views = load(tmp_path, downscale=downscale)
    factor = 2 if downscale < 3 else 6
    camera = views.camera(0)
    assert (camera.width, camera.height) == (32 // factor, 24 // factor)
    np.testing.assert_allclose(camera.focal, np.array([30.0, 28.0]) / factor, rtol=1e-6)
    np.testing.assert_allclose(camera.principal_point, np.array([15.5, 12.5]) / factor, rtol=1e-6)
    assert "images_2" in views.notes[0]


def test_downscale_takes_the_folder_of_its_size(tmp_path):
    folder = write_folder(tmp_path)
    write_images(tmp_path / "images_4", 8, 6)
    small = load(folder, downscale=4)
    np.testing.assert_allclose(small.image(0).rgb, noise(0, 8, 6) / 255, atol=1e-6)
    half = load(folder, downscale=2)
    blocks = noise(0, 32, 24).reshape(12, 2, 16, 2, 3).mean(axis=(1, 3)) / 255
    np.testing.assert_allclose(half.image(0).rgb, blocks, atol=1e-6)


def test_pictures_of_another_shape(tmp_path):
    write_folder(tmp_path)
    write_images(tmp_path / "images", 24, 24)
    with pytest.raises(FileError, match="cameras.bin: camera 3.*32.*24x24 pixels"):
        load(tmp_path)


def test_masks_as_colmap_has_them(tmp_path):
    folder = write_folder(tmp_path)
    mask = np.zeros((24, 32, 3), np.uint8)
    mask[:, 5:] = 255
    (folder / "masks").mkdir()
    write_picture(folder / "masks" / "b c.png.png", mask)
    np.testing.assert_array_equal(
        np.asarray(load(folder).weights).reshape(24, 32), mask[..., 0] > 0
    )


def test_missing_pictures_are_named(tmp_path):
    folder = write_folder(tmp_path)
    (folder / "images" / "a.png").unlink()
    with pytest.raises(FileError, match="1 of 2 .*a.png.*--skip-missing"):
        load(folder)
    assert load(folder, skip_missing=True).frames == 1
    shutil.rmtree(folder / "images")
    (folder / "images").mkdir()
    with pytest.raises(FileError, match="images.bin: none of its 2 pictures, such as 'a.png'"):
        load(folder)


def test_several_models_are_said(tmp_path):
    folder = write_folder(tmp_path)
    WRITERS["text"](folder / "sparse" / "1", *MODEL)
    (note,) = load(folder).notes
    assert "of 2 of one reconstruction" in note and str(folder / "sparse" / "1") in note
    assert load(folder / "sparse" / "1").notes == ()


@pytest.mark.parametrize(
    ("camera", "parts"),
    [
        ((3, "PINHOLE", 32, 24, [-30.0, 28.0, 15.5, 12.5]), ["cameras.txt: camera 3", "positive"]),
        ((3, "RADIAL", 32, 24, [30.0, 15.5, 12.5, -3.0, 0.0]), ["cameras.txt: camera 3", "fold"]),
        ((3, "FOV", 32, 24, [30.0, 28.0, 15.5, 12.5, 0.9]), ["cameras.txt: camera 3", "FOV"]),
    ],
)
def test_cameras_that_cannot_be(tmp_path, camera, parts):
    write_folder(tmp_path, "text", sparse="sparse")
    WRITERS["text"](tmp_path / "sparse", [camera], *MODEL[1:])
    with pytest.raises(FileError) as caught:
        load(tmp_path)
    assert all(part in str(caught.value) for part in (str(tmp_path), *parts)), caught.value


@pytest.mark.parametrize("name", ["../../outside.png", "/etc/passwd.png", "a\0b.png"])
def test_names_that_lead_out(tmp_path, name):
    folder = write_folder(tmp_path / "data")
    write_picture(tmp_path / "outside.png", noise(0, 32, 24))
    write_binary(folder / "sparse" / "0", CAMERAS, [*IMAGES, (9, *IMAGES[0][1:4], name, [])], [])
    with pytest.raises(FileError, match="images.bin"):
        load(folder)


def test_splits(tmp_path):
    folder = write_folder(tmp_path)
    assert load(folder, "test", held_out=["b c"]).names == ("b c.png",)
    with pytest.raises(FileError, match="no split 'other'"):
        load_colmap(folder, "other")


# --- Damage


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    """A folder whose cameras are not made, which would take long; and how it ends."""
    folder = write_folder(tmp_path)
    views = load(folder)
    monkeypatch.setattr(_listed, "make_cameras", lambda *_: views.cameras)

    def outcome(folder: pathlib.Path) -> bool:
        """Whether it is refused; anything but a `FileError` that names the file is raised."""
        try:
            load(folder)
        except FileError as error:
            assert str(folder) in str(error), error
            return True
        return False

    return folder, outcome


@pytest.mark.parametrize("encoding", WRITERS)
def test_models_cut_after_every_tenth_byte(damaged, encoding):
    folder, outcome = damaged
    shutil.rmtree(folder / "sparse")
    WRITERS[encoding](folder / "sparse", *MODEL)
    for path in sorted((folder / "sparse").iterdir()):
        whole = path.read_bytes()
        for length in range(0, len(whole), 10):
            path.write_bytes(whole[:length])
            assert outcome(folder) or encoding == "text"
        path.write_bytes(whole)
    assert not outcome(folder)


@pytest.mark.parametrize("encoding", WRITERS)
def test_a_thousand_random_corruptions(damaged, encoding):
    """Bytes set at random, ranges deleted, repeated or moved: read, or refused by name."""
    folder, outcome = damaged
    shutil.rmtree(folder / "sparse")
    WRITERS[encoding](folder / "sparse", *MODEL)
    paths = sorted((folder / "sparse").iterdir())
    random, refused = np.random.default_rng(0), 0
    for number in range(500):
        path = paths[number % len(paths)]
        whole = path.read_bytes()
        path.write_bytes(corrupted(whole, random))
        refused += outcome(folder)
        path.write_bytes(whole)
    assert 150 < refused < 500


def corrupted(data: bytes, random: np.random.Generator) -> bytes:
    start = int(random.integers(len(data)))
    length = int(random.integers(1, 9))
    kind = random.integers(4)
    if kind == 0:
        return data[:start] + random.bytes(length) + data[start + length :]
    if kind == 1:
        return data[:start] + data[start + length :]
    if kind == 2:
        return data[: start + length] + data[start:]
    return data[:start] + bytes([data[start] ^ (1 << int(random.integers(8)))]) + data[start + 1 :]


def test_counts_of_more_than_there_is_take_no_memory(tmp_path):
    """A file that claims 2^60 entries is refused by its size."""
    import tracemalloc

    folder = write_folder(tmp_path)
    for name in ("cameras", "images", "points3D"):
        path = folder / "sparse" / "0" / f"{name}.bin"
        whole = path.read_bytes()
        path.write_bytes((2**60).to_bytes(8, "little") + whole[8:])
        tracemalloc.start()
        with pytest.raises(FileError, match=f"{name}.bin is cut"):
            load(folder)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        path.write_bytes(whole)
        assert peak < 4e6


def test_points_are_turned_with_the_world(tmp_path):
    points = load(write_folder(tmp_path)).points
    expected = [[x, z, -y] for _, (x, y, z), *_ in POINTS]
    np.testing.assert_allclose(points, jnp.asarray(expected), atol=1e-6)


@pytest.mark.parametrize("encoding", WRITERS)
@pytest.mark.parametrize("downscale", [1, 3])
def test_pixels_that_show_points(tmp_path, encoding, downscale):
    """One of the two places of the picture shows a point: 4, at (1.5, 2.5)."""
    views = load(write_folder(tmp_path, encoding), downscale=downscale)
    assert views.sightings is not None
    expected = 2 * 32 + 1 if downscale == 1 else 0
    np.testing.assert_array_equal(views.sightings.pixel, [expected])
    x, y, z = POINTS[0][1]
    np.testing.assert_allclose(views.sightings.point, [[x, z, -y]], atol=1e-6)
    assert load(write_folder(tmp_path, encoding), "test").sightings is None


@pytest.mark.parametrize("smaller", [1, 2])
@pytest.mark.parametrize("name", ["simple_pinhole", "simple_radial", "opencv", "opencv_fisheye"])
def test_colmaps_own_points_are_where_its_pixels_look(tmp_path, name, smaller):
    """Also where the pictures have been made smaller."""
    model = read_colmap(copy_golden(tmp_path / "golden", "binary"))
    image = next(image for image in model.images if image.name == f"{name}.png")
    number, width, height = model.cameras[image.camera], 200, 150
    camera = (1, number.model, width, height, list(number.parameters.values()))
    seen = [(*place, point) for place, point in zip(image.places, image.points, strict=True)]
    pose = (list(image.rotation), list(image.translation), 1)
    images = [(1, *pose, "a.png", []), (2, *pose, "b.png", seen)]
    points = zip(model.numbers, model.points, strict=True)
    points = [(int(i), list(place), [0, 0, 0], 0.5, [(2, 0)]) for i, place in points]
    write_binary(tmp_path / "sparse" / "0", [camera], images, points)
    write_images(tmp_path / "images", width // smaller, height // smaller, ["a.png", "b.png"])
    views = load(tmp_path)
    rays = views.rays(views.sightings.pixel)
    away, forward = np.asarray(views.sightings.point - rays.origin), np.asarray(rays.direction)
    lengths = [np.linalg.norm(x, axis=-1) for x in (np.cross(away, forward), away, forward)]
    # The middle of a pixel is at most half a diagonal away from what it shows.
    sine, pixel = lengths[0] / lengths[1] / lengths[2], np.asarray(rays.d_direction)
    across = np.linalg.norm(pixel, axis=2).max(axis=1) / lengths[2]
    assert len(sine) == 12 and (sine <= 0.75 * across).all()
