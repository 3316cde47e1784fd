"""COLMAP's files: its own read right, in both encodings; cut or altered ones refused."""

import pathlib

import numpy as np
import pytest

from scenegraph.io import FileError, read_colmap
from support.colmap_folder import (
    CAMERAS,
    copy_golden,
    golden_pixels,
    IMAGES,
    MODEL,
    POINTS,
    write_binary,
    WRITERS,
)
from support.helpers import assert_close


encodings = pytest.mark.parametrize("encoding", WRITERS)


def refuse(folder: pathlib.Path, *parts: str) -> None:
    with pytest.raises(FileError) as caught:
        read_colmap(folder)
    assert all(part in str(caught.value) for part in parts), caught.value


@encodings
def test_what_is_written_is_read(tmp_path, encoding):
    model = read_colmap(WRITERS[encoding](tmp_path, *MODEL))
    camera = model.cameras[3]
    assert camera[:3] == ("OPENCV", 32, 24)
    assert list(camera.parameters) == "fx fy cx cy k1 k2 p1 p2".split()
    assert list(camera.parameters.values()) == CAMERAS[0][4]
    for image, (number, rotation, translation, lens, name, seen) in zip(
        model.images, IMAGES, strict=True
    ):
        assert (image.number, image.name, image.camera) == (number, name, lens)
        assert_close(image.rotation, rotation, 1e-15)
        assert_close(image.translation, translation, 1e-15)
        np.testing.assert_array_equal(image.places, np.reshape([x[:2] for x in seen], (-1, 2)))
        assert list(image.points) == [x[2] for x in seen]
    assert_close(model.points, [point[1] for point in POINTS], 1e-15)
    np.testing.assert_array_equal(model.colors, [point[2] for point in POINTS])
    assert list(model.numbers) == [point[0] for point in POINTS]


@encodings
def test_colmaps_own_files(tmp_path, encoding):
    model = read_colmap(copy_golden(tmp_path, encoding))
    assert len(model.cameras) == len(model.images) == 12 and model.points.shape == (12, 3)
    assert model.cameras[16].model == "FULL_OPENCV"
    assert model.cameras[16].parameters["k6"] == 0.004
    assert [image.number for image in model.images] == list(range(30, 18, -1))
    assert model.images[6].name == "full_opencv.png"
    for image in model.images:
        order = np.argsort(image.points)
        np.testing.assert_array_equal(image.places[order], golden_pixels()[image.name])
        assert sorted(image.points) == sorted(model.numbers)


@encodings
def test_points_may_be_missing(tmp_path, encoding):
    WRITERS[encoding](tmp_path, *MODEL)
    next(tmp_path.glob("points3D.*")).unlink()
    assert read_colmap(tmp_path).points.shape == (0, 3)


def test_binary_goes_before_text(tmp_path):
    write_binary(tmp_path, *MODEL)
    (tmp_path / "cameras.txt").write_text("rubbish")
    assert read_colmap(tmp_path).cameras[3].width == 32


def test_nothing_there(tmp_path):
    refuse(tmp_path, "cameras.bin or cameras.txt", "sparse/0")
    write_binary(tmp_path, *MODEL)
    (tmp_path / "images.bin").unlink()
    refuse(tmp_path, "images.bin")


# --- Cut and altered files


@pytest.mark.parametrize("name", ["cameras", "images", "points3D"])
def test_binary_files_cut_anywhere(tmp_path, name):
    path = write_binary(tmp_path, *MODEL) / f"{name}.bin"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refuse(tmp_path, path.name, "cut")
    path.write_bytes(whole + b"\0")
    refuse(tmp_path, path.name, "left after its last entry")


@pytest.mark.parametrize("name", ["cameras", "images", "points3D"])
def test_binary_files_with_any_byte_altered(tmp_path, name):
    """They are read, or refused; nothing else happens, and no memory is asked for."""
    path = write_binary(tmp_path, *MODEL) / f"{name}.bin"
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        for value in (0x00, 0x7F, 0xFF):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                read_colmap(tmp_path)
            except FileError as error:
                refused += 1
                assert str(tmp_path) in str(error)
    assert refused > 10


def test_text_files_with_a_byte_order_mark(tmp_path):
    folder = WRITERS["text"](tmp_path, *MODEL)
    expected = read_colmap(folder)
    for path in folder.glob("*.txt"):
        path.write_text(path.read_text(), encoding="utf-8-sig")
    found = read_colmap(folder)
    assert found.cameras == expected.cameras and len(found.images) == len(expected.images)


@pytest.mark.parametrize("name", ["cameras", "images", "points3D"])
def test_text_files_cut_anywhere(tmp_path, name):
    """A number that is cut may still be one; a line that lacks some is refused."""
    path = WRITERS["text"](tmp_path, *MODEL) / f"{name}.txt"
    whole, refused = path.read_text(), 0
    for length in range(len(whole)):
        path.write_text(whole[:length])
        try:
            read_colmap(tmp_path)
        except FileError as error:
            refused += 1
            assert path.suffix in str(error)
    assert refused > 20


LINES = {
    "cameras": [
        ("3 OPENCV 32 24 1 2 3", "line 1: 3 numbers where 8"),
        ("3 PINHOLE 32 24 1 2 3 4 5", "more|fewer"),
        ("3 LENTICULAR 32 24 1 2", "unknown model 'LENTICULAR'"),
        ("3", "line 1"),
        ("x PINHOLE 32 24 1 2 3 4", "malformed"),
        ("3 PINHOLE 32 0 1 2 3 4", "32x0"),
        ("3 PINHOLE 32 24 1 2 nan 4", "not finite"),
        ("3 PINHOLE 32 24 1 2 3 4\n3 PINHOLE 32 24 1 2 3 4", "two cameras with the id 3"),
    ],
    "images": [
        ("1 1 0 0 0 0 0 1 3", "line 1"),
        ("1 1 0 0 0 0 0 one 3 a.png\n", "malformed"),
        ("1 0 0 0 0 0 0 1 3 a.png\n", "an impossible pose"),
        ("1 1 0 0 0 0 inf 1 3 a.png\n", "an impossible pose"),
        ("1 1 0 0 0 0 0 1 8 a.png\n\n", "'a.png' has an unknown camera"),
        ("1 1 0 0 0 0 0 1 3 a.png", "cut"),
        ("1 1 0 0 0 0 0 1 3 a.png\n1.5 2.5", "line 2: 2 numbers, which are no triples"),
        ("1 1 0 0 0 0 0 1 3 a.png\n1.5 2.5 four", "line 2 is malformed"),
    ],
    "points3D": [
        ("1 0 0 0 1 2", "line 1"),
        ("1 0 0 0 1 2 256 0.5", "between 0 and 255"),
        ("1 0 0 nan 1 2 3 0.5", "not finite"),
        ("1 0 0 z 1 2 3 0.5", "malformed"),
    ],
}


@pytest.mark.parametrize(
    ("name", "text", "reason"), [(name, *case) for name, cases in LINES.items() for case in cases]
)
def test_malformed_lines(tmp_path, name, text, reason):
    WRITERS["text"](tmp_path, *MODEL)
    (tmp_path / f"{name}.txt").write_text(text)
    with pytest.raises(FileError, match=reason):
        read_colmap(tmp_path)


def test_unknown_model_number(tmp_path):
    refuse(write_binary(tmp_path, [(3, 99, 8, 8, [1.0])], *MODEL[1:]), "unknown model 99")


def test_files_that_are_no_text(tmp_path):
    WRITERS["text"](tmp_path, *MODEL)
    (tmp_path / "cameras.txt").write_bytes(b"\xff\xfe\x00\x01")
    refuse(tmp_path, "cameras.txt")
