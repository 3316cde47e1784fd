"""JSON listings of pictures: frames with a file and a pose, checked one by one."""

import pathlib
import re
from typing import Any, NamedTuple

import numpy as np

from ..io import as_pose, FileError, read_json


# The endings of pictures' names, of all kinds that Pillow decodes to pixels.
PICTURES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".webp",
    ".tif",
    ".tiff",
    ".bmp",
    ".tga",
    ".gif",
    ".ppm",
    ".pgm",
    ".pbm",
    ".pnm",
    ".jp2",
    ".j2k",
    ".jfif",
    ".jpe",
    ".avif",
    ".avifs",
    ".heic",
    ".heif",
    ".dds",
    ".pcx",
    ".sgi",
    ".mpo",
    ".qoi",
    ".dib",
    ".rgb",
    ".xbm",
    ".xpm",
)


# What looks like an ending, of whatever kind: `.exr`, and not the `.5` of `frame.5`.
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}")


class Frame(NamedTuple):
    """One picture of a listing: its name there, its file, and its pose, world from camera."""

    name: str
    picture: pathlib.Path
    pose: np.ndarray


def is_picture(file: pathlib.Path) -> bool:
    """Returns true for names of pictures; not for those that begin with a dot, as macOS's do."""
    return file.suffix.lower() in PICTURES and not file.name.startswith(".")


def portable(name: str) -> str:
    """Returns the name of a file with slashes, as other systems than Windows write it."""
    return name.replace("\\", "/")


def normalised(name: str) -> str:
    """Normalises a path: `./images/a.png` and `images\\a.png` are `images/a.png`."""
    return pathlib.PurePosixPath(portable(name)).as_posix()


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


def is_listing(path: pathlib.Path) -> bool:
    """Returns true for a JSON file with frames that name pictures."""
    try:
        listing = read_json(path)
    except FileError:
        return False
    frames = listing.get("frames") if isinstance(listing, dict) else None
    return isinstance(frames, list) and any(map(_names_picture, frames))


def has_pictures(path: pathlib.Path) -> bool:
    """Returns true if any of the pictures that a listing names is there."""
    if not is_listing(path):
        return False
    names = [frame["file_path"] for frame in read_json(path)["frames"] if _names_picture(frame)]
    return any(_is_there(path.parent, name) for name in names)


def _names_picture(frame: Any) -> bool:
    return isinstance(frame, dict) and isinstance(frame.get("file_path"), str)


def _is_there(folder: pathlib.Path, name: str) -> bool:
    try:
        return find_inside(folder, "", "", name).is_file()
    except (FileError, OSError):
        return False


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
        if not picture.is_file():
            picture = with_ending(folder / portable(name))
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
    if picture.suffix.lower() in PICTURES or picture.is_file():
        return picture
    endings = [*PICTURES, *(ending.upper() for ending in PICTURES)]
    named = [picture.with_name(picture.name + ending) for ending in endings]
    # A name without any ending is a PNG's where nothing is there.
    otherwise = picture if _ENDING.fullmatch(picture.suffix) else named[0]
    return next((file for file in named if file.is_file()), otherwise)
