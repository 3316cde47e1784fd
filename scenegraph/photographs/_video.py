"""The frames of a video that poses are found for: of each stretch the sharpest, and none twice."""

import importlib
import os
import pathlib
import re
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..io import FileError, require_regular, require_video
from ._pictures import measure_sharpness, Progress


VIDEOS = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm", ".mts", ".3gp", ".mpg", ".mpeg", ".ogv")
# Frames are compared at this size, in pixels; two that differ by less, in levels of 255, are one.
_SMALL, _SAME = 320, 0.8
_DURATION = re.compile(r"Duration: (\d+):(\d+):(\d+(?:\.\d+)?)")


class _Scan(NamedTuple):
    """The sharpness of all frames of a video, and whether they differ from those before."""

    sharpness: np.ndarray  # the variance of the Laplacian, `frames`
    moved: np.ndarray  # true for frames that differ from the one before, `frames`


def is_video(path: pathlib.Path) -> bool:
    """Returns true for the name of a video."""
    return path.suffix.lower() in VIDEOS and not path.name.startswith(".")


def list_frame_sizes(video: pathlib.Path) -> list[tuple[int, int]]:
    """Returns the sizes of a video's frames, as many as it says that it has."""
    require_video()
    seconds, rate, size = _probe(video)
    return [size] * max(1, round(seconds * rate))


def extract_frames(
    video: pathlib.Path,
    folder: pathlib.Path,
    count: int,
    progress: Progress,
) -> list[pathlib.Path]:
    """Writes the sharpest frames of a video, upright, into a folder; returns their files.

    The frames that differ from those before are divided into `count` stretches of as many each.
    """
    require_video()
    scan = _scan(video, progress)
    chosen = choose_sharpest(scan.sharpness, scan.moved, count)
    folder.mkdir(parents=True, exist_ok=True)
    # Commas in an expression of ffmpeg have to be escaped.
    terms = "+".join(f"eq(n\\,{frame})" for frame in chosen)
    pattern = folder / "%05d.jpg"
    progress("writing frames", 0, len(chosen))
    _ffmpeg(
        video,
        ["-vf", f"select={terms}", "-fps_mode", "passthrough"],
        ["-q:v", "2", "-start_number", "0", str(pattern)],
    )
    written = sorted(folder.glob("?????.jpg"))
    if len(written) != len(chosen):
        raise FileError(
            f"{video}: {len(written)} of {len(chosen)} frames could be written; is the disk full?"
        )
    progress("writing frames", len(chosen), len(chosen))
    return [
        file.replace(folder / f"frame_{frame:06d}.jpg")
        for file, frame in zip(written, chosen, strict=True)
    ]


def choose_sharpest(sharpness: np.ndarray, moved: np.ndarray, count: int) -> list[int]:
    """Returns the numbers of the sharpest frames of `count` stretches of those that differ.

    Of frames that are alike, the sharpest stands for all.
    """
    # Group g holds frames that differ from those of group g - 1.
    group = np.cumsum(moved) - 1
    best = [
        int(frames[np.argmax(sharpness[frames])])
        for frames in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1)
    ]
    if len(best) <= count:
        return best
    stretches = np.array_split(np.array(best), count)
    return [int(frames[np.argmax(sharpness[frames])]) for frames in stretches]


def _scan(video: pathlib.Path, progress: Progress) -> _Scan:
    """Decodes a video at a small size, and measures all of its frames."""
    seconds, rate, (width, height) = _probe(video)
    scale = min(1.0, _SMALL / max(width, height))
    # A turned frame has its sides exchanged, which the square that both fit in does not show.
    side = max(2, round(scale * max(width, height)))
    size = f"scale={side}:{side}:force_original_aspect_ratio=disable,format=gray"
    total = max(1, round(seconds * rate))
    command = _command(video, ["-vf", size, "-fps_mode", "passthrough"], ["-f", "rawvideo", "-"])
    sharpness, moved, last = [], [], None
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            while len(data := process.stdout.read(side * side)) == side * side:
                frame = np.frombuffer(data, np.uint8).reshape(side, side).astype(np.float32)
                differs = last is None or float(np.abs(frame - last).mean()) > _SAME
                last = frame if differs else last
                sharpness.append(measure_sharpness(frame).laplacian)
                moved.append(differs)
                progress("looking at frames", min(len(moved), total), total)
        finally:
            process.kill()
    if not sharpness:
        raise FileError(f"{video} has no frames that can be decoded; is it damaged, or no video?")
    return _Scan(np.array(sharpness), np.array(moved))


def _probe(video: pathlib.Path) -> tuple[float, float, tuple[int, int]]:
    """Returns a video's duration in seconds, its frames a second, and its size in pixels."""
    require_regular(video)
    done = subprocess.run(
        [_program(), "-hide_banner", "-i", _named(video)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    text = done.stderr.decode(errors="replace")
    line = next((x for x in text.splitlines() if re.search(r"Stream .*Video:", x)), "")
    size = re.search(r"\b(\d{2,5})x(\d{2,5})\b", line)
    if size is None:
        raise FileError(f"{video} has no frames that can be decoded; is it damaged, or no video?")
    duration, rate = _DURATION.search(text), re.search(r"([\d.]+) (?:fps|tbr)", line)
    hours, minutes, rest = map(float, duration.groups()) if duration else (0.0, 0.0, 0.0)
    seconds = 3600 * hours + 60 * minutes + rest
    return seconds, float(rate[1]) if rate else 30.0, (int(size[1]), int(size[2]))


def _program() -> str:
    return importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()


def _named(video: pathlib.Path) -> str:
    # With a scheme, so that no name is taken for one of ffmpeg's protocols or options.
    return f"file:{os.fspath(video)}"


def _command(video: pathlib.Path, filters: Sequence[str], output: Sequence[str]) -> list[str]:
    # ffmpeg turns frames as the file says, unless told not to.
    start = [_program(), "-hide_banner", "-loglevel", "error", "-y", "-i", _named(video)]
    return [*start, "-map", "0:v:0", *filters, *output]


def _ffmpeg(video: pathlib.Path, filters: Sequence[str], output: Sequence[str]) -> None:
    done = subprocess.run(
        _command(video, filters, output),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise FileError(f"cannot extract frames of {video}: {lines[-1]}.")
