"""Frames of videos: of each stretch the sharpest, none twice, turned as the file says."""

import pathlib
import subprocess

import numpy as np
import pytest
from PIL import Image as PillowImage

import scenegraph as sg
from scenegraph.io import FileError
from scenegraph.photographs._video import choose_sharpest, extract_frames
from support.photographs import around, pose_errors, write_photographs


ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="videos need the extra video")


def test_the_sharpest_of_each_stretch():
    sharpness = np.array([1.0, 3, 2, 5, 4, 6])
    moved = np.ones(6, bool)
    assert choose_sharpest(sharpness, moved, 3) == [1, 3, 5]
    assert choose_sharpest(sharpness, moved, 10) == [0, 1, 2, 3, 4, 5]


def test_no_frame_twice():
    sharpness = np.array([1.0, 2, 5, 4, 3, 3])
    moved = np.array([True, False, True, False, True, False])
    assert choose_sharpest(sharpness, moved, 10) == [1, 2, 4]


def make_video(pictures: pathlib.Path, video: pathlib.Path, *options: str) -> None:
    """A video of 24 frames a second that shows each picture for two frames."""
    program = ffmpeg.get_ffmpeg_exe()
    listed = ["-framerate", "12", "-i", str(pictures / "%03d.jpg"), "-r", "24"]
    plain = video.with_name(f"plain {video.name}")
    quiet = [program, "-loglevel", "error", "-y"]
    code = ["-c:v", "libx264", "-crf", "12", "-pix_fmt", "yuv420p"]
    subprocess.run([*quiet, *listed, *code, str(plain)], check=True)
    subprocess.run([*quiet, *options, "-i", str(plain), "-c", "copy", str(video)], check=True)
    plain.unlink()


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    """Photographs and poses, and a video of them that is stored on its side."""
    folder = tmp_path_factory.mktemp("video")
    poses = write_photographs(folder / "photos", around(12, turns=0.4), width=360, height=270)
    sideways = folder / "sideways"
    sideways.mkdir()
    for name in poses:
        with PillowImage.open(folder / "photos" / name) as picture:
            picture.transpose(PillowImage.Transpose.ROTATE_90).save(sideways / name, quality=95)
    video = folder / "mein Film ü.mp4"
    make_video(sideways, video, "-display_rotation", "-90")
    return video, poses


def test_frames_are_upright_and_different(turned, tmp_path):
    video, poses = turned
    files = extract_frames(video, tmp_path / "frames", 100, lambda *stage: None)
    assert len(files) == len(poses)
    for file, name in zip(files, poses, strict=True):
        with PillowImage.open(file) as frame, PillowImage.open(video.parent / "photos" / name) as o:
            assert frame.size == o.size == (360, 270)
            difference = np.asarray(frame, float) - np.asarray(o, float)
        assert np.abs(difference).mean() < 6


def test_fewer_frames(turned, tmp_path):
    files = extract_frames(turned[0], tmp_path / "frames", 5, lambda *stage: None)
    assert len(files) == 5 and len({file.read_bytes() for file in files}) == 5


def test_poses_of_a_video(turned, tmp_path):
    pytest.importorskip("pycolmap", reason="finding poses needs the extra photos")
    video, poses = turned
    before = sorted(video.parent.iterdir())
    found = sg.data.find_poses(video, tmp_path / "out")
    assert len(found.placed) == len(poses)
    listing = sg.load_transforms(found.folder / "transforms.json")
    assert listing.frames < len(poses) and sorted(video.parent.iterdir()) == before
    import json

    frames = json.loads((found.folder / "transforms.json").read_text())["frames"]
    frames.sort(key=lambda frame: frame["file_path"])
    named = dict(zip(poses, (np.array(x["transform_matrix"]) for x in frames), strict=True))
    errors = pose_errors(named, poses)
    assert np.median(errors[:, 0]) < 0.01 and np.median(errors[:, 1]) < 0.5


@pytest.mark.parametrize("content", [b"", b"no video" * 100])
def test_a_video_of_no_frames(content, tmp_path):
    pytest.importorskip("pycolmap", reason="finding poses needs the extra photos")
    video = tmp_path / "empty.mp4"
    video.write_bytes(content)
    with pytest.raises(FileError, match="has no frames that can be decoded"):
        sg.data.find_poses(video, tmp_path / "out")
    assert not (tmp_path / "out").exists()
