"""JSON, pictures and films."""

import struct
import warnings
from zlib import compress, crc32

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image as PillowImage, ImageCms

from scenegraph.io import (
    _pictures,
    FileError,
    read_json,
    read_picture,
    write_animation,
    write_json,
    write_picture,
)
from support.helpers import assert_close


def random_picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


# --- JSON


def test_json_there_and_back(tmp_path):
    value = {"name": "ä", "numbers": [1, 2.5, None, True]}
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json") == value
    assert [file.name for file in tmp_path.iterdir()] == ["file.json"]


def test_json_with_a_byte_order_mark(tmp_path):
    (tmp_path / "file.json").write_text('{"a": "ä"}', encoding="utf-8-sig")
    assert read_json(tmp_path / "file.json") == {"a": "ä"}


def test_json_error_tells_the_line(tmp_path):
    (tmp_path / "file.json").write_text('{\n "a": 1,\n "b" 2\n}')
    with pytest.raises(FileError, match=r"file.json is not valid JSON \(line 3\)"):
        read_json(tmp_path / "file.json")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 100_000, b"9" * 5000])
def test_json_that_is_rubbish(tmp_path, content):
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(FileError, match="file.json is not JSON text"):
        read_json(tmp_path / "file.json")


def test_json_that_is_missing_or_a_folder(tmp_path):
    with pytest.raises(FileError, match="cannot read .*none.json: No such file"):
        read_json(tmp_path / "none.json")
    with pytest.raises(FileError, match="is a folder"):
        read_json(tmp_path)


# --- Pictures


@pytest.mark.parametrize("channels", [3, 4])
def test_png_there_and_back(tmp_path, channels):
    picture = random_picture(5, 7, channels)
    write_picture(tmp_path / "a.png", picture)
    np.testing.assert_array_equal(read_picture(tmp_path / "a.png"), picture)


def test_grey_pictures_become_colour(tmp_path):
    grey = random_picture(5, 7, 2)
    PillowImage.fromarray(grey[..., 0]).save(tmp_path / "grey.png")
    PillowImage.fromarray(grey, "LA").save(tmp_path / "with_alpha.png")
    color = np.repeat(grey[..., :1], 3, axis=-1)
    np.testing.assert_array_equal(read_picture(tmp_path / "grey.png"), color)
    both = np.concatenate([color, grey[..., 1:]], axis=-1)
    np.testing.assert_array_equal(read_picture(tmp_path / "with_alpha.png"), both)


def test_palette_pictures_become_colour(tmp_path):
    picture = np.zeros((4, 4, 3), np.uint8)
    picture[:2] = [250, 0, 10]
    PillowImage.fromarray(picture).quantize(4).save(tmp_path / "palette.png")
    np.testing.assert_array_equal(read_picture(tmp_path / "palette.png")[..., :3], picture)


def as_rgba(picture: np.ndarray) -> np.ndarray:
    opaque = np.full((*picture.shape[:2], 1), 255, np.uint8)
    return picture if picture.shape[-1] == 4 else np.concatenate([picture, opaque], axis=-1)


def tiles(*colors) -> np.ndarray:
    """A picture of few colours, in blocks that JPEG keeps apart."""
    return np.repeat(np.repeat(np.array([colors], np.uint8), 16, axis=0), 16, axis=1)


OPAQUE = tiles([200, 100, 50], [0, 0, 0], [255, 255, 255], [10, 40, 220])
GREY = tiles([200, 200, 200], [0, 0, 0], [255, 255, 255], [90, 90, 90])
HOLED = tiles([200, 100, 50, 255], [0, 0, 255, 0], [255, 255, 255, 255], [10, 40, 220, 255])


def twin(picture: np.ndarray) -> PillowImage.Image:
    return PillowImage.fromarray(picture)


@pytest.mark.parametrize(
    "name, picture, expected, tolerance",
    [
        ("black.png", twin(GREY).convert("1", dither=0), np.where(GREY > 127, 255, 0), 0),
        ("grey.png", twin(GREY).convert("L"), GREY, 0),
        ("palette.png", twin(OPAQUE).convert("P", palette=1, colors=8), OPAQUE, 0),
        ("print.tif", twin(OPAQUE).convert("CMYK"), OPAQUE, 0),
        ("print.jpg", twin(OPAQUE).convert("CMYK"), OPAQUE, 3),
        ("video.jpg", twin(OPAQUE).convert("YCbCr"), OPAQUE, 3),
        ("video.tif", twin(OPAQUE).convert("YCbCr"), OPAQUE, 2),
        ("lab.tif", None, OPAQUE, 15),
        ("deep.png", twin(GREY[..., 0].astype(np.uint16) * 257), GREY, 0),
        ("deep.tif", twin(GREY[..., 0].astype(np.uint16) * 257), GREY, 0),
        ("holed.png", twin(HOLED), HOLED, 0),
        ("holed.tif", twin(HOLED), HOLED, 0),
    ],
)
def test_pictures_of_every_mode_are_their_rgb_twins(tmp_path, name, picture, expected, tolerance):
    if picture is None:  # Pillow converts to LAB by profiles alone.
        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        change = ImageCms.buildTransform(srgb, lab, "RGB", "LAB")
        picture = ImageCms.applyTransform(twin(OPAQUE), change)
    picture.save(
        tmp_path / name, **({"quality": 98, "subsampling": 0} if name.endswith("jpg") else {})
    )
    found = read_picture(tmp_path / name)
    assert found.dtype == np.uint8
    assert_close(found.astype(int), expected.astype(int), 0, tolerance)


@pytest.mark.parametrize("transparency", [1, bytes([255, 0, 128])])
def test_palette_keeps_its_transparency(tmp_path, transparency):
    indices = np.array([[0, 1, 2, 0]], np.uint8)
    palette = PillowImage.new("P", (4, 1))
    palette.putdata(indices[0].tolist())
    palette.putpalette([200, 100, 50, 0, 0, 255, 10, 40, 220])
    palette.save(tmp_path / "a.png", transparency=transparency)
    colors = np.array([[200, 100, 50], [0, 0, 255], [10, 40, 220]])[indices]
    alphas = np.array([255, 0, 128 if isinstance(transparency, bytes) else 255])[indices]
    np.testing.assert_array_equal(
        read_picture(tmp_path / "a.png"), np.concatenate([colors, alphas[..., None]], axis=-1)
    )


def png(depth: int, kind: int, width: int, row: bytes, transparent: bytes = b"") -> bytes:
    """A PNG of one row, of depths and kinds that Pillow does not write."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, depth, kind, 0, 0, 0))
    key = chunk(b"tRNS", transparent) if transparent else b""
    rest = chunk(b"IDAT", compress(b"\0" + row)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + key + rest


@pytest.mark.parametrize(
    "content, expected",
    [
        (png(1, 0, 2, b"\x40", b"\0\1"), [[0, 0, 0, 255], [255, 255, 255, 0]]),
        (png(2, 0, 2, b"\x90", b"\0\2"), [[170, 170, 170, 0], [85, 85, 85, 255]]),
        (png(4, 0, 2, b"\x35", b"\0\3"), [[51, 51, 51, 0], [85, 85, 85, 255]]),
        (png(8, 0, 2, b"\3\5", b"\0\3"), [[3, 3, 3, 0], [5, 5, 5, 255]]),
        (png(8, 2, 2, b"\1\2\3\4\5\6", b"\0\1\0\2\0\3"), [[1, 2, 3, 0], [4, 5, 6, 255]]),
        (png(16, 0, 2, b"\3\5\3\6", b"\3\5"), [[3, 3, 3, 0], [3, 3, 3, 255]]),
        (png(16, 2, 1, b"\1\1\x80\x80\xff\xff"), [[1, 128, 255]]),
        (png(16, 4, 2, b"\x20\x20\x80\x80\1\1\0\0"), [[32, 32, 32, 128], [1, 1, 1, 0]]),
        (png(16, 6, 1, b"\1\1\2\2\3\3\4\4"), [[1, 2, 3, 4]]),
    ],
)
def test_depths_and_transparent_colours_of_png(tmp_path, content, expected):
    (tmp_path / "a.png").write_bytes(content)
    np.testing.assert_array_equal(read_picture(tmp_path / "a.png"), [expected])


def test_modes_without_a_file_format():
    """Premultiplied and others, as Pillow may hold them."""
    straight = twin(HOLED)
    for mode in ("RGBa", "RGBA"):
        visible = _pictures._as_color(straight.convert(mode))
        np.testing.assert_array_equal(visible[HOLED[..., 3] > 0], HOLED[HOLED[..., 3] > 0])
    grey = straight.convert("LA")
    for mode in ("LA", "La"):
        np.testing.assert_array_equal(
            _pictures._as_color(grey.convert(mode))[0, 0, [0, 3]], [124, 255]
        )
    assert _pictures._as_color(straight.convert("PA"))[0, 16, 3] == 0
    assert_close(_pictures._as_color(twin(OPAQUE).convert("HSV")).astype(int), OPAQUE, 0, 6)


def test_picture_that_is_missing_or_damaged(tmp_path):
    with pytest.raises(FileError, match="no picture .*none.png"):
        read_picture(tmp_path / "none.png")
    (tmp_path / "text.png").write_text("not a picture")
    with pytest.raises(FileError, match="text.png: it is no picture, or damaged"):
        read_picture(tmp_path / "text.png")


def test_pictures_without_one_meaning_are_refused_with_a_remedy(tmp_path):
    for kind in (np.float32, np.int32):
        PillowImage.fromarray(np.zeros((4, 4), kind)).save(tmp_path / "wide.tif")
        with pytest.raises(FileError, match="wide.tif has 32-bit pixels.* save it with 8 or 16"):
            read_picture(tmp_path / "wide.tif")
    (tmp_path / "key.png").write_bytes(png(16, 2, 1, b"\1\2" * 3, b"\1\2" * 3))
    with pytest.raises(FileError, match="key.png has 16-bit colours .* alpha channel"):
        read_picture(tmp_path / "key.png")
    write_animation(tmp_path / "film.gif", [OPAQUE, HOLED[..., :3] // 2])
    with pytest.raises(FileError, match="film.gif is an animation; save one frame"):
        read_picture(tmp_path / "film.gif")


def test_picture_with_absurd_size_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    write_picture(tmp_path / "large.png", np.zeros((64, 64, 3), np.uint8))
    monkeypatch.setattr(PillowImage, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(FileError, match="large.png claims to be too large"):
        read_picture(tmp_path / "large.png")


@pytest.mark.parametrize("name", ["imageio:chelsea.png", "http://localhost/a.png", "a.zip/b.png"])
def test_names_are_files_and_never_addresses(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="no picture"):
        read_picture(name)


# --- Films


def test_gif_has_all_frames_in_order_and_repeats(tmp_path):
    frames = [np.full((6, 8, 3), level, np.uint8) for level in (0, 100, 200)]
    write_animation(tmp_path / "film.gif", frames, frames_per_second=10.0)
    film = iio.imread(tmp_path / "film.gif")
    assert film.shape == (3, 6, 8, 3)
    np.testing.assert_allclose(film.mean(axis=(1, 2, 3)), [0, 100, 200], atol=2)
    about = iio.immeta(tmp_path / "film.gif")
    assert about["loop"] == 0 and about["duration"] == 100


@pytest.mark.parametrize("speed", [7.0, 24.0, 30.0, 50.0, 60.0])
def test_gifs_keep_their_speed(tmp_path, speed):
    """Hundredths of a second, whose errors do not add up; above 50 a second it is said."""
    frames = [np.full((6, 8, 3), 20 * level, np.uint8) for level in range(12)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        write_animation(tmp_path / "film.gif", frames, frames_per_second=speed)
    assert [str(x.message)[:28] for x in caught] == ["a GIF of 60 frames a second "] * (speed > 50)
    with PillowImage.open(tmp_path / "film.gif") as film:
        ends, total = [], 0
        for index in range(film.n_frames):
            film.seek(index)
            total += film.info.get("duration", 0)
            ends.append(total)
    true = 1000 * np.arange(1, 13) / speed
    assert film.n_frames == 12 and np.max(np.abs(np.array(ends) - true)) <= 5
