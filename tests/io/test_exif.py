"""EXIF orientations, against Pillow's own way of turning pictures."""

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from scenegraph.io import FileError, read_picture, read_picture_header, turn_upright


ORIENTATION = 0x0112


def write_oriented(path, pixels: np.ndarray, orientation: int, **options) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    Image.fromarray(pixels).save(path, exif=exif, **options)


@pytest.mark.parametrize("ending", [".png", ".jpg", ".webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_as_pillow_does(tmp_path, orientation, ending):
    path = tmp_path / f"a{ending}"
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
    write_oriented(path, pixels, orientation)
    assert read_picture_header(path) == (9, 6, orientation)
    with Image.open(path) as picture:
        expected = np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    np.testing.assert_array_equal(turn_upright(read_picture(path), orientation), expected)


@pytest.mark.parametrize("exif", [b"", b"Exif\0\0rubbish", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff"])
def test_damaged_exif_is_none(tmp_path, exif):
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(tmp_path / "a.jpg", exif=exif)
    assert read_picture_header(tmp_path / "a.jpg") == (5, 4, 1)


def test_headers_of_no_picture(tmp_path):
    with pytest.raises(FileError, match="there is no picture"):
        read_picture_header(tmp_path / "none.png")
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(FileError, match="damaged"):
        read_picture_header(tmp_path / "a.png")
    whole = io.BytesIO()
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(whole, "PNG")
    (tmp_path / "b.png").write_bytes(whole.getvalue()[:20])
    with pytest.raises(FileError, match="damaged"):
        read_picture_header(tmp_path / "b.png")
