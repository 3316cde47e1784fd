"""What listings of pictures have in common: frames with a file and a pose, checked one by one."""

import math
import pathlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..images import shrink
from ..io import FileError, read_json, read_picture


PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")


class Frame(NamedTuple):
    """One picture of a listing.

    **Arguments:**

    - `name`: as the listing has it.
    - `picture`: its file.
    - `pose`: world from camera, 4x4, float64.
    """

    name: str
    picture: pathlib.Path
    pose: np.ndarray


def read_blender_listing(path: pathlib.Path) -> tuple[float, list[Frame]]:
    """Reads a `transforms_{split}.json`.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    The horizontal angle of view in radians, and the frames.

    **Errors:**

    `FileError` that names the file and the frame.
    """
    listing = read_frames_listing(path)
    fov_x = listing.get("camera_angle_x")
    if isinstance(fov_x, bool) or not isinstance(fov_x, int | float) or not 0 < fov_x < math.pi:
        raise FileError(f"{path}: `camera_angle_x` must lie between 0 and pi; got {fov_x!r}.")
    frames = [read_frame(path, index, frame) for index, frame in enumerate(listing["frames"])]
    return float(fov_x), frames


def read_frames_listing(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON file with a list of frames; what they are is not checked.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    What it holds; `frames` is a list of at least one.

    **Errors:**

    `FileError` that names the file.
    """
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}; pass one with a {path.name}.")
    listing = read_json(path)
    if not isinstance(listing, dict) or not isinstance(listing.get("frames"), list):
        raise FileError(f"{path}: `frames` must be a list of cameras.")
    if not listing["frames"]:
        raise FileError(f"{path}: `frames` is empty; at least one picture is needed.")
    return listing


def read_frame(path: pathlib.Path, index: int, frame: Any) -> Frame:
    """Picture and pose of one frame of a listing.

    **Arguments:**

    - `path`: of the listing.
    - `index`: of the frame, for messages.
    - `frame`: what the listing says.

    **Returns:**

    The frame.

    **Errors:**

    `FileError` that names the file and the frame.
    """
    where = f"{path}: frame {index}"
    if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
        raise FileError(f"{where} has no `file_path`.")
    name, matrix = frame["file_path"], frame.get("transform_matrix")
    return Frame(name, picture_path(path, where, name), as_pose(where, "transform_matrix", matrix))


def picture_path(path: pathlib.Path, where: str, name: str) -> pathlib.Path:
    """The file of a picture; only files inside the data folder are ever opened.

    **Arguments:**

    - `path`: of the listing.
    - `where`: the listing and the frame, for messages.
    - `name`: as the listing has it, relative to the listing's folder; without an ending it is a
      PNG.

    **Returns:**

    The path.

    **Errors:**

    `FileError` for a name that leads out of the folder, or that no file can have.
    """
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


def as_pose(where: str, key: str, value: Any) -> np.ndarray:
    """A pose that a listing gives as a matrix.

    **Arguments:**

    - `where`: the listing and the frame, for messages.
    - `key`: what the listing calls it.
    - `value`: world from camera, 4x4.

    **Returns:**

    The matrix, float64.

    **Errors:**

    `FileError` for anything but a rotation and a shift.
    """
    try:
        pose = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where}: `{key}` is not a matrix of numbers.") from error
    if pose.shape != (4, 4):
        raise FileError(f"{where}: `{key}` must be 4x4; its shape is {pose.shape}.")
    rotation = pose[:3, :3]
    if not np.isfinite(pose).all():
        raise FileError(f"{where}: `{key}` has numbers that are not finite.")
    if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3) or np.linalg.det(rotation) < 0:
        raise FileError(f"{where}: the 3x3 part of `{key}` is not a rotation.")
    return pose


def read_pictures(files: list[pathlib.Path]) -> list[np.ndarray]:
    """Reads pictures, several at a time.

    **Arguments:**

    - `files`: their paths.

    **Returns:**

    Arrays of bytes.

    **Errors:**

    `FileError` for one that is missing or damaged, or that has not as many channels as the first.
    """
    with ThreadPoolExecutor() as pool:
        pictures = list(pool.map(read_picture, files))
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape[2] != pictures[0].shape[2]:
            raise FileError(
                f"{file} has shape {picture.shape} (height, width, channels); the first picture, "
                f"{files[0]}, has {pictures[0].shape}. All must have as many channels."
            )
    return pictures


def check_alike(files: list[pathlib.Path], pictures: list[np.ndarray]) -> None:
    """Refuses pictures of different sizes.

    **Arguments:**

    - `files`: their paths.
    - `pictures`: what they hold.

    **Errors:**

    `FileError` that names the first picture of another size.
    """
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape != pictures[0].shape:
            raise FileError(
                f"{file} has shape {picture.shape} (height, width, channels); the first picture, "
                f"{files[0]}, has {pictures[0].shape}. All must be alike."
            )


def shrink_pictures(
    pictures: list[np.ndarray], factor: int, *, straight_alpha: bool
) -> list[np.ndarray]:
    """Averages pictures over blocks, several at a time.

    **Arguments:**

    - `pictures`: of bytes.
    - `factor`: pixels a side of the blocks; 1 gives the pictures back.
    - `straight_alpha`: average colours without weighting them by opacity. Keyword only argument.

    **Returns:**

    Bytes, or floating numbers between 0 and 1.
    """
    if factor == 1:
        return pictures

    def one(picture: np.ndarray) -> np.ndarray:
        scaled = picture.astype(np.float32) / np.float32(255)
        return shrink(scaled, factor, straight_alpha=straight_alpha)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(one, pictures))
