"""The format of nerfstudio and instant-ngp: one `transforms.json` for all pictures and lenses."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from ..io import FileError
from ..models import read_points
from ..pixels import Views
from ._listed import ListedView, load_listed, Shrinking
from ._listed_frames import read_listed_frames, split_keys, without_names
from ._listing import normalised, portable, read_frames_listing
from ._loading import Loading, LoadOptions
from ._splits import choose_frames, require_rest


TRANSFORMS_LISTING = "transforms.json"
LISTED_SPLITS = ("train", "val", "test")
_NAMES = "_filenames"


def load_transforms(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    hold_every: int = 8,
    held_out: Sequence[str | int] = (),
    **options: Unpack[LoadOptions],
) -> Views:
    """Loads one split of a data set in the format of nerfstudio and instant-ngp.

    Cameras and world are those of the file: nothing is turned, shifted or scaled. (nerfstudio
    itself does so after reading.) `applied_transform` says what was done to them before the file
    was written; it is in the poses already.

    **Arguments:**

    - `folder`: the folder of `transforms.json`; or the path of a JSON file of another name.
    - `split`: the name of a split: where the file has `train_filenames` or the like, any that it
      has. Else the pictures are sorted by name: `val` and `test` are both every eighth, beginning
      with the first, and `train` is the others.
    - `hold_every`: another number than eight. Keyword only argument.
    - `held_out`: the pictures of `val` and `test` instead, whatever the file says, by names or by
      numbers in the order of names. Keyword only argument.
    - `options`: the keywords of `LoadOptions`.

    **Returns:**

    The pictures, which may differ in size, with their cameras: `PerspectiveCamera` if no lens of
    the file distorts, else `OpenCVCamera`, `FisheyeCamera` or `PanoramaCamera`. Masks (`mask_path`,
    or a folder `masks`) are the weights of pixels, and the points of `ply_file_path` are there.

    **Errors:**

    `FileError` for anything missing, malformed or not supported; the message names the file, the
    frame and the key. `ValueError` for `hold_every` below two.

    **Source:** `nerfstudio_dataparser.py` of nerfstudio; `nerf_loader.cu` of instant-ngp.
    """
    path, loading = transforms_path(folder), Loading(**options)
    listing = read_frames_listing(path)
    found = read_listed_frames(path, listing, masks=loading.masks, skip=loading.skip_missing)
    # Sorted, because splits by `hold_every` are by name.
    views = sorted(found.views, key=lambda view: view.name)
    listing |= {key: without_names(listing[key], found.left_out) for key in split_keys(listing)}
    chosen = _split_views(path, listing, views, split, hold_every, held_out)
    points, odd_points = _read_points(path, listing.get("ply_file_path"))
    notes = (*found.notes, *odd_points)
    return load_listed(views, chosen, loading, Shrinking(loading.downscale), points, notes)


def transforms_path(folder: str | os.PathLike) -> pathlib.Path:
    """Returns the path of a data folder's `transforms.json`, or a JSON file's own."""
    path = pathlib.Path(folder)
    named = path.suffix == ".json" and not path.is_dir()
    return path if named else path / TRANSFORMS_LISTING


def transforms_splits(folder: str | os.PathLike) -> tuple[str, ...]:
    """Lists the splits of a data set: those that its file names, else train, val and test."""
    keys = split_keys(read_frames_listing(transforms_path(folder)))
    return tuple(key.removesuffix(_NAMES) for key in keys) or LISTED_SPLITS


def _read_points(path: pathlib.Path, name: Any) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Reads the points of a listing; those that cannot be read are not needed, and said."""
    if name is None:
        return None, ()
    where = f"{path}: `ply_file_path`"
    if not isinstance(name, str):
        raise FileError(f"{where} must be the name of a file; got {name!r}.")
    try:
        there = path.parent / name
        file = (there if there.is_file() else path.parent / portable(name)).resolve()
        inside = file.is_relative_to(path.parent.resolve())
        points = read_points(file) if inside else None
    except (OSError, RuntimeError, ValueError) as error:  # also `FileError`
        return None, (f"{where}: the points are not used ({error})",)
    if not inside:
        return None, (f"{where}: {name!r} leads out of the data folder; the points are not used",)
    return points, ()


def _split_views(
    path: pathlib.Path,
    listing: dict[str, Any],
    views: list[ListedView],
    split: str,
    hold_every: int,
    held_out: Sequence[str | int],
) -> list[ListedView]:
    """Returns the views of one split."""
    require_rest(hold_every)
    if split_keys(listing) and not held_out:
        return _views_by_name(path, listing, views, split + _NAMES)
    if split not in LISTED_SPLITS:
        raise FileError(
            f"{path} names no pictures of the split {split!r}; there are "
            f"{', '.join(LISTED_SPLITS)}."
        )
    names = [view.name for view in views]
    return [views[i] for i in choose_frames(path, names, split, hold_every, held_out)]


def _views_by_name(
    path: pathlib.Path, listing: dict[str, Any], views: list[ListedView], key: str
) -> list[ListedView]:
    if key not in listing:
        raise FileError(f"{path} has no `{key}`; there are: {', '.join(split_keys(listing))}.")
    names = listing[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileError(f"{path}: `{key}` must be a list of names.")
    if not names:
        raise FileError(f"{path}: `{key}` is empty; at least one picture is needed.")
    wanted = {normalised(name) for name in names}
    unknown = sorted(wanted - {view.name for view in views})
    if unknown:
        raise FileError(f"{path}: `{key}` names {unknown[0]!r}, which no frame has.")
    return [view for view in views if view.name in wanted]
