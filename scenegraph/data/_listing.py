"""What listings of pictures have in common: frames with a file and a pose, checked one by one."""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

from .._typing import Int
from ..images import shrink
from ..io import as_pose, FileError, read_json, read_picture
from ._pixel_store import gather_pixels, Pixels


PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")


class Frame(NamedTuple):
    """One picture of a listing."""

    name: str
    picture: pathlib.Path
    pose: np.ndarray


def read_blender_listing(path: pathlib.Path) -> tuple[float, list[Frame]]:
    """Reads a `transforms_{split}.json`."""
    listing = read_frames_listing(path)
    fov_x = listing.get("camera_angle_x")
    if isinstance(fov_x, bool) or not isinstance(fov_x, int | float) or not 0 < fov_x < math.pi:
        raise FileError(f"{path}: `camera_angle_x` must lie between 0 and pi; got {fov_x!r}.")
    frames = [read_frame(path, index, frame) for index, frame in enumerate(listing["frames"])]
    return float(fov_x), frames


def read_frames_listing(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON file with a list of frames; what they are is not checked."""
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}; pass one with a {path.name}.")
    listing = read_json(path)
    if not isinstance(listing, dict) or not isinstance(listing.get("frames"), list):
        raise FileError(f"{path}: `frames` must be a list of cameras.")
    if not listing["frames"]:
        raise FileError(f"{path}: `frames` is empty; at least one picture is needed.")
    return listing


def read_frame(path: pathlib.Path, index: int, frame: Any) -> Frame:
    """Picture and pose of one frame of a listing."""
    where = f"{path}: frame {index}"
    if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
        raise FileError(f"{where} has no `file_path`.")
    name, matrix = frame["file_path"], frame.get("transform_matrix")
    return Frame(
        name, picture_path(path, where, name), as_pose(matrix, f"{where}: `transform_matrix`")
    )


def picture_path(path: pathlib.Path, where: str, name: str) -> pathlib.Path:
    """The file of a picture; only files inside the data folder are ever opened."""
    folder = path.parent.resolve()
    picture = folder / name
    if picture.suffix.lower() not in PICTURES:
        picture = picture.with_name(picture.name + ".png")
    try:
        inside = picture.resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a name with a zero
        raise FileError(f"{where}: `file_path` {name!r} names no file ({error}).") from error
    if pathlib.PurePath(name).is_absolute() or not inside:
        raise FileError(f"{where}: `file_path` {name!r} leads out of the data folder; refused.")
    return picture


def gather_pictures(
    files: list[pathlib.Path],
    factor: int,
    *,
    straight_alpha: bool,
    memory_map: bool | None,
    one_size: bool = True,
) -> tuple[Pixels, Int[np.ndarray, "frames 2"]]:
    """Reads pictures into one flat list, averaged over blocks."""

    def shrunk(picture: np.ndarray) -> np.ndarray:
        if factor == 1:
            return picture
        scaled = picture.astype(np.float32) / np.float32(255)
        return shrink(scaled, factor, straight_alpha=straight_alpha)

    pixels, shapes = gather_pixels(
        files,
        lambda index: read_picture(files[index]),
        shrunk,
        settings=f"{factor} {straight_alpha}",
        memory_map=memory_map,
        one_size=one_size,
    )
    return pixels, np.asarray([(width, height) for height, width, _ in shapes])
