"""The format of nerfstudio and instant-ngp: one `transforms.json` for all pictures and lenses."""

import os
import pathlib
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..io import are_usable, FileError
from ._backdrops import AbstractBackdrop, Solid
from ._bounds import depth_range
from ._lenses import camera_kind, Lens, make_cameras, read_lens
from ._listing import Frame, gather_pictures, read_frame, read_frames_listing
from ._views import Views


TRANSFORMS_LISTING = "transforms.json"
_SPLITS = ("train", "val", "test")
_NAMES = "_filenames"


class _View(NamedTuple):
    frame: Frame
    lens: Lens

    @property
    def name(self) -> str:
        return _plain(self.frame.name)


def load_transforms(
    folder: str | os.PathLike,
    split: str = "train",
    *,
    downscale: int = 1,
    near: float | None = None,
    far: float | None = None,
    backdrop: AbstractBackdrop | None = None,
    straight_alpha: bool = False,
    memory_map: bool | None = None,
    hold_every: int = 8,
) -> Views:
    """Loads one split of a data set in the format of nerfstudio and instant-ngp.

    Cameras and world are those of the file: nothing is turned, shifted or scaled. (nerfstudio
    itself does so after reading.) `applied_transform` says what was done to them before the file
    was written; it is in the poses already.

    **Arguments:**

    - `folder`: with `transforms.json`; or the path of a JSON file of another name.
    - `split`: where the file has `train_filenames` or the like, any that it has. Else the pictures
      are sorted by name: `val` and `test` are both every eighth, beginning with the first, and
      `train` is the others.
    - `downscale`: pictures are averaged over blocks of this many pixels a side. Keyword only, as
      is all that follows.
    - `near`, `far`: of the cameras, in world units; by default wide about all that the cameras
      look at, for scenes whose volumes have bounds.
    - `backdrop`: what RGBA pictures are put on; white by default.
    - `straight_alpha`, `memory_map`: as in `load_blender`.
    - `hold_every`: for another number than eight.

    **Returns:**

    The pictures, which may differ in size, with their cameras: `PerspectiveCamera` where no lens
    of the file bends, else `OpenCVCamera`, `FisheyeCamera` or `PanoramaCamera`.

    **Errors:**

    `FileError` for anything missing, malformed or not supported; the message names the file, the
    frame and the key. `ValueError` for `hold_every` below two.

    **Source:** `nerfstudio_dataparser.py` of nerfstudio; `nerf_loader.cu` of instant-ngp.
    """
    path = transforms_path(folder)
    listing = read_frames_listing(path)
    views = _read_views(path, listing)
    chosen = _choose(path, listing, views, split, hold_every)
    pixels, full = gather_pictures(
        [view.frame.picture for view in chosen],
        downscale,
        straight_alpha=straight_alpha,
        memory_map=memory_map,
        one_size=False,
    )
    lenses = [view.lens.pixels(*map(int, size)) for view, size in zip(chosen, full, strict=True)]
    sizes = full // downscale
    cameras = make_cameras(
        camera_kind([view.lens for view in views]),
        [view.lens for view in chosen],
        np.stack([view.frame.pose for view in chosen]),
        np.stack(lenses) / downscale,
        (int(sizes[0, 0]), int(sizes[0, 1])),
        depth_range(np.stack([view.frame.pose for view in views]), near, far),
    )
    return Views(
        pixels,
        cameras,
        jnp.asarray(sizes[:, 0]),
        jnp.asarray(sizes[:, 1]),
        jnp.ones(len(sizes)),
        Solid() if backdrop is None else backdrop,
        tuple(view.frame.name for view in chosen),
    )


def transforms_path(folder: str | os.PathLike) -> pathlib.Path:
    """The listing of a data folder."""
    path = pathlib.Path(folder)
    return path if path.suffix == ".json" else path / TRANSFORMS_LISTING


def transforms_splits(folder: str | os.PathLike) -> tuple[str, ...]:
    """The splits that a data set has."""
    keys = _split_keys(read_frames_listing(transforms_path(folder)))
    return tuple(key.removesuffix(_NAMES) for key in keys) or _SPLITS


def _split_keys(listing: dict[str, Any]) -> list[str]:
    return [key for key in listing if key.endswith(_NAMES)]


def _plain(name: str) -> str:
    """The same for `./images/a.png` and `images/a.png`."""
    return pathlib.PurePosixPath(name).as_posix()


def _read_views(path: pathlib.Path, listing: dict[str, Any]) -> list[_View]:
    """All that the listing says, sorted by the names of the pictures."""
    _check_applied(path, listing.get("applied_transform"))
    read = lambda index, frame: _read_view(path, listing, index, frame)
    views = [read(index, frame) for index, frame in enumerate(listing["frames"])]
    return sorted(views, key=lambda view: view.name)


def _check_applied(path: pathlib.Path, value: Any) -> None:
    """It is in the poses already, so that nothing is done with it."""
    if value is None:
        return
    where = f"{path}: `applied_transform`"
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where} is not a matrix of numbers.") from error
    if matrix.shape not in ((3, 4), (4, 4)) or not are_usable(matrix):
        raise FileError(f"{where} must be 3x4 and finite; its shape is {matrix.shape}.")


def _read_view(path: pathlib.Path, listing: dict[str, Any], index: int, frame: Any) -> _View:
    read, where = read_frame(path, index, frame), f"{path}: frame {index}"
    if frame.get("mask_path") is not None:
        raise FileError(
            f"{where}: `mask_path` is not supported. Remove it to look at whole pictures, or make "
            "what is masked transparent."
        )
    return _View(read, read_lens(where, listing, frame))


def _choose(
    path: pathlib.Path, listing: dict[str, Any], views: list[_View], split: str, hold_every: int
) -> list[_View]:
    """The frames of one split."""
    if hold_every < 2:
        raise ValueError(f"`hold_every` must be at least 2; got {hold_every}.")
    if _split_keys(listing):
        return _named(path, listing, views, split + _NAMES)
    if split not in _SPLITS:
        raise FileError(
            f"{path} names no pictures of the split {split!r}; there are {', '.join(_SPLITS)}."
        )
    training = split == "train"
    chosen = [view for i, view in enumerate(views) if (i % hold_every != 0) == training]
    if not chosen:
        raise FileError(f"{path}: its {len(views)} frames leave none for the split {split!r}.")
    return chosen


def _named(
    path: pathlib.Path, listing: dict[str, Any], views: list[_View], key: str
) -> list[_View]:
    if key not in listing:
        raise FileError(f"{path} has no `{key}`; there are: {', '.join(_split_keys(listing))}.")
    names = listing[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FileError(f"{path}: `{key}` must be a list of names.")
    if not names:
        raise FileError(f"{path}: `{key}` is empty; at least one picture is needed.")
    wanted = {_plain(name) for name in names}
    unknown = sorted(wanted - {view.name for view in views})
    if unknown:
        raise FileError(f"{path}: `{key}` names {unknown[0]!r}, which no frame has.")
    return [view for view in views if view.name in wanted]
