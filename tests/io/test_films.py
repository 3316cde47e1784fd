"""Moving pictures and files of floating numbers."""

from importlib.util import find_spec

import imageio.v3 as iio
import numpy as np
import pytest

from scenegraph.io import FileError, MissingExtra, write_animation, write_exr, write_float_picture
from scenegraph.io._atomic import atomic_write
from support.helpers import assert_close


RNG = np.random.default_rng(0)
needs_exr = pytest.mark.skipif(not find_spec("OpenEXR"), reason="needs the extra `exr`")
needs_video = pytest.mark.skipif(not find_spec("imageio_ffmpeg"), reason="needs the extra `video`")


def test_numbers_in_a_tiff_file(tmp_path):
    numbers = RNG.normal(size=(3, 5)).astype(np.float32) * 1e3
    write_float_picture(tmp_path / "x.tiff", numbers)
    read = iio.imread(tmp_path / "x.tiff", plugin="pillow")
    assert read.dtype == np.float32 and np.array_equal(read, numbers)


@needs_exr
def test_numbers_in_an_exr_file(tmp_path):
    import OpenEXR

    names = ("R", "G", "B", "Z", "opacity.A", "normal.X")
    channels = {name: RNG.normal(size=(3, 5)).astype(np.float32) * 1e6 for name in names}
    write_exr(tmp_path / "x.exr", channels)
    with OpenEXR.File(str(tmp_path / "x.exr"), separate_channels=True) as file:
        read = {name: channel.pixels for name, channel in file.channels().items()}
    assert read.keys() == channels.keys()
    for name, values in channels.items():
        assert read[name].dtype == np.float32 and np.array_equal(read[name], values)
    assert [path.name for path in tmp_path.iterdir()] == ["x.exr"]


def test_exr_without_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "OpenEXR", None)
    with pytest.raises(MissingExtra, match=r"scenegraph\[exr\]"):
        write_exr(tmp_path / "x.exr", {"R": np.zeros((2, 2))})


def test_mp4_without_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(FileError, match=r"scenegraph\[video\]"):
        write_animation(tmp_path / "x.mp4", [np.zeros((4, 4, 3), np.uint8)])
    assert not list(tmp_path.iterdir())


@needs_video
@pytest.mark.filterwarnings("ignore:os.fork", "ignore:unclosed file:ResourceWarning")
def test_mp4_of_odd_size(tmp_path):
    """Nothing is stretched: a column and a row more, and colours that compression keeps."""
    import imageio_ffmpeg

    frames = [np.zeros((33, 41, 3), np.uint8) for _ in range(4)]
    for number, frame in enumerate(frames):
        frame[:, 10 * number : 10 * number + 10] = [200, 60, 20]
    write_animation(tmp_path / "x.mp4", frames, frames_per_second=12.0)
    film = iio.imread(tmp_path / "x.mp4", plugin="FFMPEG")
    assert film.shape == (4, 34, 42, 3)
    duration = next(imageio_ffmpeg.read_frames(str(tmp_path / "x.mp4")))["duration"]
    assert duration == pytest.approx(4 / 12, abs=0.01)
    for number, frame in enumerate(film):
        assert_close(frame[5:25, 10 * number + 5], np.tile([200, 60, 20], (20, 1)), 0, 25)


def test_what_is_not_finished_is_not_there(tmp_path):
    (tmp_path / "x.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "x.txt") as beside:
        beside.write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]
    assert (tmp_path / "x.txt").read_text() == "old"
