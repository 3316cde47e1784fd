"""The format of nerfstudio and instant-ngp: one `transforms.json` for all pictures and lenses."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from ..io import are_usable, as_matrix, as_pose, FileError
from ..models import read_points
from ..pixels import Views
from ._lenses import read_lens
from ._listed import ListedView, load_listed, normalised, Shrinking
from ._listing import find_inside, read_frame, read_frames_listing
from ._loading import Loading, LoadOptions
from ._masks import find_masks
from ._splits import choose_frames, require_rest


TRANSFORMS_LISTING = "transforms.json"
# The key of the folder of the pictures, where that is not the listing's own.
PICTURES_FOLDER = "pictures_folder"
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
    listing, odd_poses = _leave_out_poses(path, read_frames_listing(path), loading.skip_missing)
    views, odd_masks = _read_views(path, listing, loading.masks)
    chosen = _split_views(path, listing, views, split, hold_every, held_out)
    points, odd_points = _read_points(path, listing.get("ply_file_path"))
    notes = (*odd_poses, *odd_masks, *odd_points)
    return load_listed(views, chosen, loading, Shrinking(loading.downscale), points, notes)


def transforms_path(folder: str | os.PathLike) -> pathlib.Path:
    """Returns the path of a data folder's `transforms.json`, or a JSON file's own."""
    path = pathlib.Path(folder)
    return path if path.suffix == ".json" else path / TRANSFORMS_LISTING


def transforms_splits(folder: str | os.PathLike) -> tuple[str, ...]:
    """Lists the splits of a data set: those that its file names, else train, val and test."""
    keys = _split_keys(read_frames_listing(transforms_path(folder)))
    return tuple(key.removesuffix(_NAMES) for key in keys) or LISTED_SPLITS


def _split_keys(listing: dict[str, Any]) -> list[str]:
    return [key for key in listing if key.endswith(_NAMES)]


def _leave_out_poses(
    path: pathlib.Path, listing: dict[str, Any], skip: bool
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns a listing with `None` in place of frames whose poses cannot be; says which, too."""
    frames, odd = list(listing["frames"]), {}
    for index, frame in enumerate(frames):
        if isinstance(frame, dict):
            try:
                as_pose(frame.get("transform_matrix"), f"frame {index}: `transform_matrix`")
            except FileError as error:
                odd[index] = str(error).removesuffix(".")
    if not odd:
        return listing, ()
    listed = "; ".join(odd.values())
    if not skip or len(odd) == len(frames):
        raise FileError(
            f"{path}: {len(odd)} of {len(frames)} frames have no usable pose: {listed}. Correct "
            "them, or leave them out with --skip-missing (`skip_missing=True`)."
        )
    names = [frames[index].get("file_path") for index in odd]
    splits = {key: _without(listing[key], names) for key in _split_keys(listing)}
    frames = [None if index in odd else frame for index, frame in enumerate(frames)]
    note = f"{len(odd)} of {len(frames)} frames are left out, for want of a usable pose: {listed}"
    return listing | splits | {"frames": frames}, (note,)


def _without(names: Any, others: list[Any]) -> Any:
    """Returns a list without some names, however they are written; anything else as it is."""
    plain = {normalised(name) for name in others if isinstance(name, str)}
    if not isinstance(names, list):
        return names
    return [x for x in names if not isinstance(x, str) or normalised(x) not in plain]


def _read_views(
    path: pathlib.Path, listing: dict[str, Any], masks: bool
) -> tuple[list[ListedView], tuple[str, ...]]:
    """Reads all frames of a listing, sorted by the names of the pictures."""
    # Sorted, because splits by `hold_every` are by name.
    _check_applied_transform(path, listing.get("applied_transform"))
    root = _pictures_root(path, listing)
    read = lambda index, frame: _read_view(path, root, listing, index, frame)
    frames = enumerate(listing["frames"])
    views = [read(index, frame) for index, frame in frames if frame is not None]
    views = sorted(views, key=lambda view: view.name)
    if not masks:
        return [view._replace(mask=None) for view in views], ()
    if any(view.mask for view in views):
        return views, ()
    # By the files' names: those of the listing may have no ending.
    folders = [pathlib.PurePosixPath(view.name).parent for view in views]
    files = [view.frame.picture.name for view in views]
    named = [(place / file).as_posix() for place, file in zip(folders, files, strict=True)]
    beside, odd = find_masks(root, named)
    return [view._replace(mask=mask) for view, mask in zip(views, beside, strict=True)], odd


def _pictures_root(path: pathlib.Path, listing: dict[str, Any]) -> pathlib.Path:
    """Returns the folder of which the pictures must not lead out."""
    name = listing.get(PICTURES_FOLDER)
    if name is None:
        return path.parent
    where = f"{path}: `{PICTURES_FOLDER}`"
    if not isinstance(name, str) or not name or "\0" in name:
        raise FileError(f"{where} must be the name of a folder; got {name!r}.")
    root = path.parent / name
    if not root.is_dir():
        raise FileError(f"{where}: there is no folder {name}; name the one where they are now.")
    return root


def _check_applied_transform(path: pathlib.Path, value: Any) -> None:
    # The transform is in the poses already: it is checked, and not applied.
    if value is None:
        return
    where = f"{path}: `applied_transform`"
    matrix = as_matrix(value, where)
    if matrix.shape not in ((3, 4), (4, 4)) or not are_usable(matrix):
        raise FileError(f"{where} must be 3x4 and finite; its shape is {matrix.shape}.")


def _read_view(
    path: pathlib.Path, root: pathlib.Path, listing: dict[str, Any], index: int, frame: Any
) -> ListedView:
    read, where = read_frame(path, index, frame, root), f"{path}: frame {index}"
    name, mask = frame.get("mask_path"), None
    if name is not None:
        if not isinstance(name, str) or not name:
            raise FileError(f"{where}: `mask_path` must be the name of a picture; got {name!r}.")
        mask = find_inside(root, where, f"`mask_path` {name!r}", name)
    return ListedView(read, read_lens(where, listing, frame), mask)


def _read_points(path: pathlib.Path, name: Any) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Reads the points of a listing; those that cannot be read are not needed, and said."""
    if name is None:
        return None, ()
    where = f"{path}: `ply_file_path`"
    if not isinstance(name, str):
        raise FileError(f"{where} must be the name of a file; got {name!r}.")
    try:
        file = (path.parent / name).resolve()
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
    if _split_keys(listing) and not held_out:
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
        raise FileError(f"{path} has no `{key}`; there are: {', '.join(_split_keys(listing))}.")
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
