"""JSON, pictures and films."""

import imageio.v3 as iio
import numpy as np
import pytest
from PIL import Image as PillowImage

from scenegraph.io import (
    FileError,
    read_json,
    read_picture,
    write_animation,
    write_json,
    write_picture,
)


def random_picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


# --- JSON


def test_json_there_and_back(tmp_path):
    value = {"name": "ä", "numbers": [1, 2.5, None, True]}
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json") == value
    assert [file.name for file in tmp_path.iterdir()] == ["file.json"]


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
    with pytest.raises(FileError, match="cannot read"):
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


def test_picture_that_is_missing_damaged_or_deep(tmp_path):
    with pytest.raises(FileError, match="no picture .*none.png"):
        read_picture(tmp_path / "none.png")
    (tmp_path / "text.png").write_text("not a picture")
    with pytest.raises(FileError, match="text.png: it is damaged"):
        read_picture(tmp_path / "text.png")
    write_picture(tmp_path / "deep.png", np.zeros((4, 4), np.uint16))
    with pytest.raises(FileError, match="deep.png has .*16 pixels; only 8-bit"):
        read_picture(tmp_path / "deep.png")


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
