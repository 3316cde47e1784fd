"""The multiscale format of the mip-NeRF paper: `metadata.json`, pictures of several sizes."""

import contextlib
import dataclasses
import os
import pathlib
from typing import Any, Unpack

import jax
import numpy as np

from .._typing import Array
from ..cameras import PerspectiveCamera
from ..io import are_usable, as_matrix, as_pose, FileError, LARGEST, read_json
from ..pixels import Views
from ..transforms import Pose
from ._bounds import choose_origin, note_origin
from ._convert_multiscale import MULTISCALE_LISTING
from ._listing import picture_path
from ._loading import Loading, LoadOptions
from ._pictures import assemble_views, gather_pictures, PictureFile


_NUMBERS = ("width", "height", "near", "far", "lossmult")


def load_multiscale(
    folder: str | os.PathLike, split: str = "train", **options: Unpack[LoadOptions]
) -> Views:
    """Loads one split of a multiscale data set: every picture has its own size and focal length.

    **Arguments:**

    - `folder`: the folder of `metadata.json`; `scenegraph convert multiscale` makes one of Blender
      data.
    - `split`: `train`, `val`, `test`, or any other that the file has.
    - `options`: the keywords of `LoadOptions`; `near` and `far` are by default those of the file.

    **Returns:**

    The pictures with their cameras, in the order of the file; `lossmult` is the file's: the number
    of pixels of the largest picture that one of this picture stands for.

    **Errors:**

    `FileError` for anything missing or malformed; the message names the file.

    **Source:** the class `Multicam` of the published mip-NeRF code.
    """
    listing, loading = pathlib.Path(folder) / MULTISCALE_LISTING, Loading(**options)
    columns = _read_listing(listing, split)
    files, poses, lenses = _read_cameras(listing, split, columns)
    origin = _common_origin(listing, poses)
    poses[:, :3, 3] -= origin
    # All is checked before the first picture is read, which takes longer.
    numbers = {name: _read_numbers(listing, split, name, columns[name]) for name in _NUMBERS}
    if not (numbers["near"] < numbers["far"]).all():
        index = int(np.argmin(numbers["near"] < numbers["far"]))
        raise FileError(f"{listing}: {split} picture {index}: `near` must be less than `far`.")
    sizes = zip(numbers["width"].tolist(), numbers["height"].tolist(), strict=True)
    wanted = [PictureFile(*pair) for pair in zip(files, [None] * len(files), sizes, strict=True)]
    pictures = gather_pictures(wanted, loading, loading.downscale, one_size=False)
    kept = pictures.kept
    files, poses, lenses = [files[index] for index in kept], poses[kept], lenses[kept]
    numbers = {name: column[kept] for name, column in numbers.items()}
    _check_sizes(listing, files, pictures.sizes, numbers)
    sizes = pictures.sizes // loading.downscale
    width, height = map(int, sizes[0])
    limits = [
        numbers[name] if given is None else np.full(len(files), given)
        for name, given in {"near": loading.near, "far": loading.far}.items()
    ]

    def camera(pose: Array, lens: Array, near: Array, far: Array) -> PerspectiveCamera:
        focal, middle = lens[0], lens[1:]
        return PerspectiveCamera(
            Pose(pose), focal, width, height, principal_point=middle, near=near, far=far
        )

    cameras = jax.jit(jax.vmap(camera))(
        *(column.astype(np.float32) for column in (poses, lenses / loading.downscale, *limits))
    )
    names = [columns["file_path"][index] for index in kept]
    pictures = pictures._replace(notes=(*note_origin(listing, origin), *pictures.notes))
    views = assemble_views(loading, pictures, cameras, sizes, names, numbers["lossmult"])
    return dataclasses.replace(views, origin=tuple(origin.tolist()))


def _common_origin(path: pathlib.Path, poses: np.ndarray) -> np.ndarray:
    """Returns the origin for all splits: that of the training pictures, where they can be read."""
    with contextlib.suppress(FileError):
        columns = _read_listing(path, "train")
        poses = np.stack([as_pose(pose, "") for pose in columns["cam2world"]])
    return choose_origin(poses[:, :3, 3])


def _read_cameras(
    path: pathlib.Path, split: str, columns: dict[str, list]
) -> tuple[list[pathlib.Path], np.ndarray, np.ndarray]:
    """Checks and converts files, poses and lenses of all pictures."""
    files, poses, lenses = [], [], []
    for index, name in enumerate(columns["file_path"]):
        where = f"{path}: {split} picture {index}"
        files.append(picture_path(path, where, name))
        poses.append(as_pose(columns["cam2world"][index], f"{where}: `cam2world`"))
        lenses.append(_read_pinhole(where, columns["pix2cam"][index]))
    return files, np.stack(poses), np.stack(lenses)


def multiscale_splits(path: pathlib.Path) -> tuple[str, ...]:
    """Lists the splits of a `metadata.json`."""
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
    """Refuses columns that are missing, or not lists of one length."""
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


def _read_numbers(path: pathlib.Path, split: str, name: str, values: list[Any]) -> np.ndarray:
    """Checks and converts a column of numbers."""
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


def _read_pinhole(where: str, value: Any) -> np.ndarray:
    """Returns focal length and principal point from the `pix2cam` of a pinhole."""
    # pix2cam = [[1/f, 0, -cx/f], [0, -1/f, cy/f], [0, 0, -1]]
    matrix = as_matrix(value, f"{where}: `pix2cam`")
    if matrix.shape != (3, 3) or not are_usable(matrix):
        raise FileError(f"{where}: `pix2cam` must be 3x3 and finite; got shape {matrix.shape}.")
    scale = matrix[0, 0]
    plain = np.array([[scale, 0, matrix[0, 2]], [0, -scale, matrix[1, 2]], [0, 0, -1]])
    if scale < 1 / LARGEST or not np.allclose(matrix, plain, rtol=1e-5, atol=1e-9):
        raise FileError(
            f"{where}: `pix2cam` must be that of a pinhole with square pixels, "
            "[[1/f, 0, -cx/f], [0, -1/f, cy/f], [0, 0, -1]]."
        )
    # (f, cx, cy)
    return np.array([1, -matrix[0, 2], matrix[1, 2]]) / scale


def _check_sizes(
    path: pathlib.Path,
    files: list[pathlib.Path],
    sizes: np.ndarray,
    numbers: dict[str, np.ndarray],
) -> None:
    expected = np.stack([numbers["width"], numbers["height"]], axis=-1).astype(int)
    for file, size, known in zip(files, sizes, expected, strict=True):
        if (size != known).any():
            raise FileError(
                f"{file} has {size[0]}x{size[1]} pixels; {path} says {known[0]}x{known[1]}."
            )
