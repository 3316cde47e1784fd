"""The format of nerfstudio and instant-ngp: one `transforms.json` for all pictures and lenses."""

import os
import pathlib
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..io import are_usable, as_matrix, FileError
from ._bounds import depth_range
from ._lenses import camera_kind, Lens, make_cameras, read_lens
from ._listing import Frame, read_frame, read_frames_listing
from ._loading import assemble_views, choose_frames, gather_pictures, Loading, LoadOptions
from ._views import Views


TRANSFORMS_LISTING = "transforms.json"
_SPLITS = ("train", "val", "test")
_NAMES = "_filenames"


class _View(NamedTuple):
    frame: Frame
    lens: Lens

    @property
    def name(self) -> str:
        return _normalised(self.frame.name)


def load_transforms(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    hold_every: int = 8,
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
    - `options`: the keywords of `LoadOptions`.

    **Returns:**

    The pictures, which may differ in size, with their cameras: `PerspectiveCamera` if no lens of
    the file distorts, else `OpenCVCamera`, `FisheyeCamera` or `PanoramaCamera`.

    **Errors:**

    `FileError` for anything missing, malformed or not supported; the message names the file, the
    frame and the key. `ValueError` for `hold_every` below two.

    **Source:** `nerfstudio_dataparser.py` of nerfstudio; `nerf_loader.cu` of instant-ngp.
    """
    path, loading = transforms_path(folder), Loading(**options)
    listing = read_frames_listing(path)
    views = _read_views(path, listing)
    chosen = _split_views(path, listing, views, split, hold_every)
    files = [view.frame.picture for view in chosen]
    pixels, full = gather_pictures(files, loading, loading.downscale, one_size=False)
    lenses = [view.lens.pixels(*map(int, size)) for view, size in zip(chosen, full, strict=True)]
    sizes = full // loading.downscale
    cameras = make_cameras(
        camera_kind([view.lens for view in views]),
        [view.lens for view in chosen],
        np.stack([view.frame.pose for view in chosen]),
        np.stack(lenses) / loading.downscale,
        (int(sizes[0, 0]), int(sizes[0, 1])),
        depth_range(np.stack([view.frame.pose for view in views]), loading.near, loading.far),
    )
    names = [view.frame.name for view in chosen]
    return assemble_views(loading, pixels, cameras, sizes, names)


def transforms_path(folder: str | os.PathLike) -> pathlib.Path:
    """Returns the path of a data folder's `transforms.json`, or a JSON file's own."""
    path = pathlib.Path(folder)
    return path if path.suffix == ".json" else path / TRANSFORMS_LISTING


def transforms_splits(folder: str | os.PathLike) -> tuple[str, ...]:
    """Lists the splits of a data set: those that its file names, else train, val and test."""
    keys = _split_keys(read_frames_listing(transforms_path(folder)))
    return tuple(key.removesuffix(_NAMES) for key in keys) or _SPLITS


def _split_keys(listing: dict[str, Any]) -> list[str]:
    return [key for key in listing if key.endswith(_NAMES)]


def _normalised(name: str) -> str:
    """Normalises a path: `./images/a.png` is `images/a.png`."""
    return pathlib.PurePosixPath(name).as_posix()


def _read_views(path: pathlib.Path, listing: dict[str, Any]) -> list[_View]:
    """Reads all frames of a listing, sorted by the names of the pictures."""
    # Sorted, because splits by `hold_every` are by name.
    _check_applied_transform(path, listing.get("applied_transform"))
    read = lambda index, frame: _read_view(path, listing, index, frame)
    views = [read(index, frame) for index, frame in enumerate(listing["frames"])]
    return sorted(views, key=lambda view: view.name)


def _check_applied_transform(path: pathlib.Path, value: Any) -> None:
    # The transform is in the poses already: it is checked, and not applied.
    if value is None:
        return
    where = f"{path}: `applied_transform`"
    matrix = as_matrix(value, where)
    if matrix.shape not in ((3, 4), (4, 4)) or not are_usable(matrix):
        raise FileError(f"{where} must be 3x4 and finite; its shape is {matrix.shape}.")


def _read_view(path: pathlib.Path, listing: dict[str, Any], index: int, frame: Any) -> _View:
    read, where = read_frame(path, index, frame), f"{path}: frame {index}"
    if frame.get("mask_path") is not None:
        raise FileError(
            f"{where}: `mask_path` is not supported. Remove it to use whole pictures, or make "
            "masked pixels transparent."
        )
    return _View(read, read_lens(where, listing, frame))


def _split_views(
    path: pathlib.Path, listing: dict[str, Any], views: list[_View], split: str, hold_every: int
) -> list[_View]:
    """Returns the views of one split."""
    indices = choose_frames(len(views), hold_every, training=split == "train")
    if _split_keys(listing):
        return _views_by_name(path, listing, views, split + _NAMES)
    if split not in _SPLITS:
        raise FileError(
            f"{path} names no pictures of the split {split!r}; there are {', '.join(_SPLITS)}."
        )
    if not indices:
        raise FileError(f"{path}: its {len(views)} frames leave none for the split {split!r}.")
    return [views[index] for index in indices]


def _views_by_name(
    path: pathlib.Path, listing: dict[str, Any], views: list[_View], key: str
) -> list[_View]:
    if key not in listing:
        raise FileError(f"{path} has no `{key}`; there are: {', '.join(_split_keys(listing))}.")
    names = listing[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileError(f"{path}: `{key}` must be a list of names.")
    if not names:
        raise FileError(f"{path}: `{key}` is empty; at least one picture is needed.")
    wanted = {_normalised(name) for name in names}
    unknown = sorted(wanted - {view.name for view in views})
    if unknown:
        raise FileError(f"{path}: `{key}` names {unknown[0]!r}, which no frame has.")
    return [view for view in views if view.name in wanted]
