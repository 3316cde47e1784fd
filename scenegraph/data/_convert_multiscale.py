"""The conversion of Blender data to the multiscale format: every picture at several sizes."""

import contextlib
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..cameras import PerspectiveCamera
from ..images import shrink
from ..io import FileError, read_picture, read_picture_header, write_json, write_picture
from ._lenses import camera_kind
from ._listed import ListedView
from ._listed_frames import read_listed_frames
from ._listing import Frame, read_frames_listing


MULTISCALE_LISTING = "metadata.json"
_SPLITS = ("train", "val", "test")


def convert_multiscale(
    source: str | os.PathLike,
    out: str | os.PathLike,
    levels: int = 4,
    *,
    straight_alpha: bool = False,
    near: float = 2.0,
    far: float = 6.0,
    progress: Callable[[int, int], Any] | None = None,
) -> None:
    """Writes a Blender data set at several sizes, each half of the one before.

    The folder has the layout and the `metadata.json` of the published multiscale data, so that
    other loaders of it read it too. `metadata.json` is written last. With `straight_alpha`, colours
    are averaged without weighting them by opacity, and truncated to bytes instead of rounded, which
    is bit for bit what `convert_blender_data.py` of the published mip-NeRF code does.
    """
    source, out = pathlib.Path(source), pathlib.Path(out)
    if levels < 1 or not 0 <= near < far:
        raise ValueError(
            f"`levels` is at least 1, and 0 <= near < far; got {levels}, {near}, {far}."
        )
    splits = [split for split in _SPLITS if _listing_path(source, split).exists()] or ["train"]
    listings = {split: _read_views(_listing_path(source, split)) for split in splits}
    if out.exists() and any(out.iterdir()):
        raise FileError(f"{out} is not empty; choose a new folder to convert to.")
    total, done, metadata = sum(map(len, listings.values())), 0, {}
    with _new_folder(out) as folder:
        for split, views in listings.items():
            rows, frames = [], [view.frame for view in views]
            for index, sizes in enumerate(
                _write_pictures(folder, split, frames, levels, straight_alpha)
            ):
                rows += _metadata(split, index, views[index], sizes, (near, far))
                done += 1
                if progress is not None:
                    progress(done, total)
            metadata[split] = {key: [row[key] for row in rows] for key in rows[0]}
        # Last, so that a folder with a listing is whole.
        write_json(folder / MULTISCALE_LISTING, metadata)


def _read_views(path: pathlib.Path) -> list[ListedView]:
    """Reads the frames of a listing, whose lenses the format must have: pinholes."""
    found = read_listed_frames(path, read_frames_listing(path), masks=False, skip=False)
    header = read_picture_header(found.views[0].frame.picture)
    size = float(header.width), float(header.height)
    if camera_kind([view.lens for view in found.views], size) is not PerspectiveCamera:
        raise FileError(
            f"{path}: multiscale data have lenses without distortion, and with square pixels; "
            "fit these pictures as they are."
        )
    return found.views


def _listing_path(source: pathlib.Path, split: str) -> pathlib.Path:
    return source / f"transforms_{split}.json"


@contextlib.contextmanager
def _new_folder(out: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a new folder, which becomes `out` when all has gone well, or else vanishes."""
    folder = out.with_name(f"{out.name}.part-{os.getpid()}")
    folder.mkdir(parents=True)
    try:
        yield folder
        os.replace(folder, out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def picture_name(split: str, index: int, level: int) -> str:
    """Returns a picture's path in the data folder; it is halved `level` times."""
    return f"images_{split}/{index:03d}_d{level}.png"


def _write_pictures(
    folder: pathlib.Path, split: str, frames: list[Frame], levels: int, straight_alpha: bool
) -> Iterator[list[tuple[int, int]]]:
    """Writes every picture at all sizes; yields widths and heights, picture by picture."""
    (folder / f"images_{split}").mkdir()

    def write(index: int) -> list[tuple[int, int]]:
        sizes = []
        for level, rgba in enumerate(_pyramid(frames[index], levels, straight_alpha)):
            # The published converter truncates; its parity mode must not round.
            scaled = 255 * rgba if straight_alpha else np.round(255 * np.clip(rgba, 0, 1))
            write_picture(folder / picture_name(split, index, level), scaled.astype(np.uint8))
            sizes.append((rgba.shape[1], rgba.shape[0]))
        return sizes

    with ThreadPoolExecutor() as pool:
        yield from pool.map(write, range(len(frames)))


def _pyramid(frame: Frame, levels: int, straight_alpha: bool) -> Iterator[np.ndarray]:
    """Yields a picture, its half, the half of that, in single precision: nothing is rounded."""
    rgba = read_picture(frame.picture).astype(np.float32) / np.float32(255)
    height, width = rgba.shape[:2]
    if height % 2 ** (levels - 1) or width % 2 ** (levels - 1):
        raise ValueError(
            f"{frame.picture} has {width}x{height} pixels, which cannot be halved {levels - 1} "
            "times; choose fewer levels."
        )
    yield rgba
    for _ in range(levels - 1):
        rgba = shrink(rgba, 2, straight_alpha=straight_alpha)
        yield rgba


def _metadata(
    split: str,
    index: int,
    view: ListedView,
    sizes: list[tuple[int, int]],
    limits: tuple[float, float],
) -> list[dict[str, Any]]:
    """Makes the rows of `metadata.json` of one picture, size by size."""
    # Focal length and centre are halved at every level; a pixel of level l stands for 4^l pixels
    # of the largest picture.
    focal, _, x, y = view.lens.pixels(*sizes[0], resized=True).tolist()
    return [
        {
            "file_path": picture_name(split, index, level),
            "cam2world": view.frame.pose.tolist(),
            "width": width,
            "height": height,
            "focal": focal / 2**level,
            "label": level,
            "near": float(limits[0]),
            "far": float(limits[1]),
            "lossmult": 4.0**level,
            "pix2cam": _pixel_to_camera(focal, x, y, 2.0**level),
        }
        for level, (width, height) in enumerate(sizes)
    ]


def _pixel_to_camera(focal: float, x: float, y: float, smaller: float) -> list[list[float]]:
    # x = (u - c_x) / f, y = -(v - c_y) / f, z = -1
    focal, x, y = focal / smaller, x / smaller, y / smaller
    return [
        [1 / focal, 0.0, -x / focal],
        [0.0, -1 / focal, y / focal],
        [0.0, 0.0, -1.0],
    ]
