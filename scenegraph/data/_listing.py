"""JSON listings of pictures: frames with a file and a pose, checked one by one."""

import math
import pathlib
from typing import Any, NamedTuple

import numpy as np

from ..io import as_pose, FileError, read_json


PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")


class Frame(NamedTuple):
    """One picture of a listing: its name there, its file, and its pose, world from camera."""

    name: str
    picture: pathlib.Path
    pose: np.ndarray


def read_blender_listing(path: pathlib.Path) -> tuple[float, list[Frame]]:
    """Reads a `transforms_{split}.json`: the horizontal angle of view in radians, and frames."""
    listing = read_frames_listing(path)
    fov_x = listing.get("camera_angle_x")
    if isinstance(fov_x, bool) or not isinstance(fov_x, int | float) or not 0 < fov_x < math.pi:
        raise FileError(f"{path}: `camera_angle_x` must lie between 0 and pi; got {fov_x!r}.")
    frames = [read_frame(path, index, frame) for index, frame in enumerate(listing["frames"])]
    return float(fov_x), frames


def read_frames_listing(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON file with a list of at least one frame; the frames are not checked."""
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}; pass one with a {path.name}.")
    listing = read_json(path)
    if not isinstance(listing, dict) or not isinstance(listing.get("frames"), list):
        raise FileError(f"{path}: `frames` must be a list of cameras.")
    if not listing["frames"]:
        raise FileError(f"{path}: `frames` is empty; at least one picture is needed.")
    return listing


def read_frame(
    path: pathlib.Path, index: int, frame: Any, root: pathlib.Path | None = None
) -> Frame:
    """Checks and converts one frame of a listing, whose pictures are in its folder, or `root`."""
    root = path.parent if root is None else root
    where = f"{path}: frame {index}"
    if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
        raise FileError(f"{where} has no `file_path`.")
    name, matrix = frame["file_path"], frame.get("transform_matrix")
    picture = find_inside(root, where, f"`file_path` {name!r}", name)
    if pathlib.PurePath(name).is_absolute():  # Names are those inside the folder.
        name = picture.resolve().relative_to(root.resolve()).as_posix()
    return Frame(name, picture, as_pose(matrix, f"{where}: `transform_matrix`"))


def picture_path(path: pathlib.Path, where: str, name: str) -> pathlib.Path:
    """Finds the file of a picture; only files inside the data folder are ever opened."""
    return find_inside(path.parent, where, f"`file_path` {name!r}", name)


def find_inside(folder: pathlib.Path, where: str, what: str, name: str) -> pathlib.Path:
    """Finds the file of a picture in a folder, of which it must not lead out."""
    # Data sets are downloaded: a listing must not make the loader read any file of the machine.
    folder = folder.resolve()
    try:
        picture = with_ending(folder / name)
        inside = picture.resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a name with a zero
        raise FileError(f"{where}: {what} names no file ({error}).") from error
    if not inside:
        raise FileError(
            f"{where}: {what} leads out of the data folder {folder}; refused. Put the pictures "
            "into it, and name them relative to it."
        )
    return picture


def with_ending(picture: pathlib.Path) -> pathlib.Path:
    """Completes a name without the ending of a picture, by that of the file that is there."""
    if picture.suffix.lower() in PICTURES:
        return picture
    # A name without one is a PNG's where nothing is there.
    endings = [*PICTURES, *(ending.upper() for ending in PICTURES)]
    named = [picture.with_name(picture.name + ending) for ending in endings]
    return next((file for file in named if file.is_file()), named[0])
