"""The multiscale format of the mip-NeRF paper: `metadata.json`, pictures of several sizes."""

import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array
from ..cameras import PerspectiveCamera
from ..io import are_usable, as_pose, FileError, LARGEST, read_json
from ..transforms import Pose
from ._backdrops import AbstractBackdrop, Solid
from ._convert_multiscale import MULTISCALE_LISTING
from ._listing import gather_pictures, picture_path
from ._views import Views


_NUMBERS = ("width", "height", "near", "far", "lossmult")


def load_multiscale(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    downscale: int = 1,
    near: float | None = None,
    far: float | None = None,
    backdrop: AbstractBackdrop | None = None,
    straight_alpha: bool = False,
    memory_map: bool | None = None,
) -> Views:
    """Loads one split of a multiscale data set: every picture has its own size and focal length.

    **Arguments:**

    - `folder`: with `metadata.json`; `scenegraph convert multiscale` makes one of Blender data.
    - `split`: `train`, `val`, `test`, or any other that the file has.
    - `downscale`: pictures are averaged over blocks of this many pixels a side. Keyword only, as
      is all that follows.
    - `near`, `far`: of the cameras; by default those of the file.
    - `backdrop`: what RGBA pictures are put on; white by default.
    - `straight_alpha`, `memory_map`: as in `load_blender`.

    **Returns:**

    The pictures with their cameras, in the order of the file; `lossmult` is the file's: how many
    pixels of the largest picture one of this picture stands for.

    **Errors:**

    `FileError` for anything missing or malformed; the message names the file.

    **Source:** the class `Multicam` of the published mip-NeRF code.
    """
    listing = pathlib.Path(folder) / MULTISCALE_LISTING
    columns = _read_listing(listing, split)
    files, poses, lenses = _each(listing, split, columns)
    numbers = {name: _numbers(listing, split, name, columns[name]) for name in _NUMBERS}
    pixels, sizes = gather_pictures(
        files, downscale, straight_alpha=straight_alpha, memory_map=memory_map, one_size=False
    )
    _check_sizes(listing, files, sizes, numbers)
    sizes = sizes // downscale
    width, height = map(int, sizes[0])
    near_far = [
        numbers[name] if given is None else np.full(len(files), given)
        for name, given in {"near": near, "far": far}.items()
    ]
    return Views(
        pixels,
        _cameras(width, height, poses, lenses / downscale, *near_far),
        jnp.asarray(sizes[:, 0]),
        jnp.asarray(sizes[:, 1]),
        numbers["lossmult"].astype(np.float32),
        Solid() if backdrop is None else backdrop,
        tuple(columns["file_path"]),
    )


def _cameras(width: int, height: int, *columns: np.ndarray) -> PerspectiveCamera:
    """Cameras whose poses, lenses, nears and fars are the columns."""

    def camera(pose: Array, lens: Array, near: Array, far: Array) -> PerspectiveCamera:
        focal, middle = lens[0], lens[1:]
        return PerspectiveCamera(
            Pose(pose), focal, width, height, principal_point=middle, near=near, far=far
        )

    return jax.jit(jax.vmap(camera))(*(column.astype(np.float32) for column in columns))


def _each(
    path: pathlib.Path, split: str, columns: dict[str, list]
) -> tuple[list[pathlib.Path], np.ndarray, np.ndarray]:
    """Files, poses and lenses of all pictures."""
    files, poses, lenses = [], [], []
    for index, name in enumerate(columns["file_path"]):
        where = f"{path}: {split} picture {index}"
        files.append(picture_path(path, where, name))
        poses.append(as_pose(columns["cam2world"][index], f"{where}: `cam2world`"))
        lenses.append(_lens(where, columns["pix2cam"][index]))
    return files, np.stack(poses), np.stack(lenses)


def multiscale_splits(path: pathlib.Path) -> tuple[str, ...]:
    """The splits that a listing has."""
    listing = read_json(path)
    if not isinstance(listing, dict):
        raise FileError(f"{path} must hold an object with a split `train`.")
    return tuple(listing)


def _read_listing(path: pathlib.Path, split: str) -> dict[str, list]:
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}; pass a multiscale data folder.")
    known = multiscale_splits(path)
    columns = read_json(path).get(split)
    if not isinstance(columns, dict):
        raise FileError(f"{path} has no split {split!r}; there are: {', '.join(known) or 'none'}.")
    _check_columns(path, split, columns)
    return columns


def _check_columns(path: pathlib.Path, split: str, columns: dict[str, Any]) -> None:
    """All that is needed is there, as lists of one length."""
    names = ("file_path", "cam2world", "pix2cam", *_NUMBERS)
    for name in names:
        if not isinstance(columns.get(name), list):
            raise FileError(f"{path}: `{split}` has no list `{name}`.")
    lengths = {name: len(columns[name]) for name in names}
    if not lengths["file_path"]:
        raise FileError(f"{path}: `{split}` is empty; at least one picture is needed.")
    for name, length in lengths.items():
        if length != lengths["file_path"]:
            raise FileError(
                f"{path}: `{split}` has {lengths['file_path']} pictures, but `{name}` has {length} "
                "entries."
            )
    if not all(isinstance(name, str) for name in columns["file_path"]):
        raise FileError(f"{path}: `{split}.file_path` must hold names of files.")


def _numbers(path: pathlib.Path, split: str, name: str, values: list[Any]) -> np.ndarray:
    """A column of numbers that make sense for what they are."""
    where = f"{path}: `{split}.{name}`"
    plain = all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)
    try:
        numbers = np.asarray(values if plain else None, dtype=np.float64)
    except (TypeError, OverflowError) as error:
        raise FileError(f"{where} must hold numbers.") from error
    if not plain or not are_usable(numbers):
        raise FileError(f"{where} must hold finite numbers, not above {LARGEST:g}.")
    if name in ("width", "height") and not all(x == int(x) and 0 < x < 2**20 for x in numbers):
        raise FileError(f"{where} must hold numbers of pixels.")
    if (numbers < 0).any():
        raise FileError(f"{where} must not be negative; got {numbers.min()}.")
    return numbers


def _lens(where: str, value: Any) -> np.ndarray:
    """Focal length and principal point, which `pix2cam` holds the inverse of."""
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where}: `pix2cam` is not a matrix of numbers.") from error
    if matrix.shape != (3, 3) or not are_usable(matrix):
        raise FileError(f"{where}: `pix2cam` must be 3x3 and finite; got shape {matrix.shape}.")
    scale = matrix[0, 0]
    plain = np.array([[scale, 0, matrix[0, 2]], [0, -scale, matrix[1, 2]], [0, 0, -1]])
    if scale < 1 / LARGEST or not np.allclose(matrix, plain, rtol=1e-5, atol=1e-9):
        raise FileError(
            f"{where}: `pix2cam` must be that of a pinhole with square pixels, "
            "[[1/f, 0, -cx/f], [0, -1/f, cy/f], [0, 0, -1]]."
        )
    return np.array([1, -matrix[0, 2], matrix[1, 2]]) / scale


def _check_sizes(
    path: pathlib.Path,
    files: list[pathlib.Path],
    sizes: np.ndarray,
    numbers: dict[str, np.ndarray],
) -> None:
    expected = np.stack([numbers["width"], numbers["height"]], axis=-1).astype(int)
    for file, size, said in zip(files, sizes, expected, strict=True):
        if (size != said).any():
            raise FileError(
                f"{file} has {size[0]}x{size[1]} pixels; {path} says {said[0]}x{said[1]}."
            )
