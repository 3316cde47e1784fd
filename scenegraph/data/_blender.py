"""The Blender (nerf_synthetic) format: `transforms_{split}.json` and RGBA pictures."""

import os
import pathlib
from typing import Unpack

import numpy as np

from ..io import read_json
from ..pixels import Views
from ._bounds import choose_origin
from ._listed import ListedView, load_listed, Shrinking
from ._listed_frames import read_listed_frames, usable_pose
from ._listing import has_pictures, is_listing, read_frames_listing
from ._loading import Loading, LoadOptions


def load_blender(
    folder: str | os.PathLike, split: str = "train", **options: Unpack[LoadOptions]
) -> Views:
    """Loads one split of a Blender data set.

    Lenses are read as those of a `transforms.json` are: `fl_x`, `cx`, `k1` and so on, of the file
    or of a frame, which Blender's add-ons write, go before `camera_angle_x`.

    **Arguments:**

    - `folder`: the folder of `transforms_{split}.json`; pictures of one size, with or without
      alpha.
    - `split`: `train`, `val`, `test`, or any other that has its file.
    - `options`: the keywords of `LoadOptions`.

    **Returns:**

    The pictures with their cameras.

    **Errors:**

    `FileError` for anything missing or malformed; the message names the file.
    """
    path, loading = pathlib.Path(folder) / f"transforms_{split}.json", Loading(**options)
    listing = read_frames_listing(path)
    found = read_listed_frames(path, listing, masks=loading.masks, skip=loading.skip_missing)
    shrinking = Shrinking(loading.downscale, resized=True)
    notes = (*found.notes, *(_note_unrendered(path.parent) if split == "train" else ()))
    origin = _common_origin(path.with_name("transforms_train.json"), found.views)
    return load_listed(
        found.views,
        found.views,
        loading,
        shrinking,
        notes=notes,
        one_size=True,
        origin=origin,
    )


def _note_unrendered(folder: pathlib.Path) -> tuple[str, ...]:
    """Says which splits have no picture, as if they were never rendered."""
    others = [folder / f"transforms_{split}.json" for split in ("val", "test")]
    empty = [file.name for file in others if is_listing(file) and not has_pictures(file)]
    return tuple(f"{name} is left out: none of its pictures is in {folder}" for name in empty)


def _common_origin(train: pathlib.Path, views: list[ListedView]) -> np.ndarray:
    """Returns the origin for all splits: that of the training pictures, where there are some."""
    poses = [view.frame.pose for view in views]
    if is_listing(train):
        frames = read_json(train)["frames"]
        poses = [pose for pose in map(usable_pose, frames) if pose is not None] or poses
    return choose_origin(np.stack(poses)[:, :3, 3])
