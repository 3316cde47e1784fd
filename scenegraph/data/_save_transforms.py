import os
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from ..cameras import (
    AbstractCamera,
    FisheyeCamera,
    OpenCVCamera,
    PanoramaCamera,
    PerspectiveCamera,
    pose_matrix,
)
from ..io import FileError, read_picture_header, write_json
from ..pixels import known_cameras, on_host, take_camera, Views
from ._lenses import MODELS
from ._listed_frames import PICTURES_FOLDER
from ._listing import portable, with_ending
from ._transforms import transforms_path


# The folders in which loaders find pictures whose names lack the folder.
_PLACES = (".", "images", "images_2", "images_4", "images_8", "input")


def save_transforms(
    path: str | os.PathLike, splits: Mapping[str, Views], folder: str | os.PathLike
) -> pathlib.Path:
    """Writes the cameras of pictures as a `transforms.json`, such as those that a fit has found.

    The listing names the pictures where they are: `load_transforms` and `scenegraph fit` read it as
    it is, and so do other programs.

    **Arguments:**

    - `path`: the JSON file, or the folder of its `transforms.json`.
    - `splits`: the pictures with their cameras, by the names of their splits.
    - `folder`: the data folder that the pictures were loaded from.

    **Returns:**

    The path of the listing.

    **Errors:**

    `FileError` for pictures that are not in the folder; `TypeError` for cameras that the format
    does not have, such as those in NDC.
    """
    path, root = transforms_path(path), pathlib.Path(folder).resolve()
    root = root.parent if root.is_file() else root
    path.parent.mkdir(parents=True, exist_ok=True)
    listing: dict[str, Any] = {PICTURES_FOLDER: root.as_posix(), "frames": []}
    for split, views in splits.items():
        frames = [_frame(views, frame, root) for frame in range(views.frames)]
        listing["frames"] += frames
        listing[f"{split}_filenames"] = [one["file_path"] for one in frames]
    write_json(path, listing)
    return path


def _frame(views: Views, frame: int, root: pathlib.Path) -> dict[str, Any]:
    """Writes one picture: its file, its pose, and its lens in pixels of the file."""
    camera = take_camera(on_host(known_cameras(views)), frame)
    file = _find_file(root, views.names[frame])
    header, size = read_picture_header(file), (int(views.widths[frame]), int(views.heights[frame]))
    # A picture that EXIF turns has its sides exchanged.
    upright = (header.width > header.height) == (size[0] > size[1])
    width, height = header.width, header.height
    width, height = (width, height) if upright or width == height else (height, width)
    # Pictures are averaged over whole blocks, of which a rest may be cut off.
    factor = max(1, round(width / size[0]))
    moved = np.zeros((4, 4))
    moved[:3, 3] = views.origin
    return {
        "file_path": file.relative_to(root).as_posix(),
        "transform_matrix": (np.asarray(_matrix(camera), np.float64) + moved).tolist(),
        "w": width,
        "h": height,
        **_lens(camera, factor),
    }


_matrix = jax.jit(pose_matrix)


def _find_file(root: pathlib.Path, name: str) -> pathlib.Path:
    """Finds a picture by the name that it has in a data folder of any format."""
    names = dict.fromkeys((name, portable(name)))
    places = [with_ending(root / place / one) for one in names for place in _PLACES]
    found = next((file for file in places if file.is_file()), None)
    if found is None:
        raise FileError(f"there is no picture {name!r} in {root}.")
    return found


def _lens(camera: AbstractCamera, factor: int) -> dict[str, Any]:
    if isinstance(camera, PanoramaCamera):
        model, scale = "EQUIRECTANGULAR", factor * np.pi  # pixels a half turn
    elif isinstance(camera, FisheyeCamera):
        model, scale = "OPENCV_FISHEYE", factor
    elif isinstance(camera, OpenCVCamera):
        wide = any(float(getattr(camera, name)) != 0 for name in ("k4", "k5", "k6"))
        model, scale = "FULL_OPENCV" if wide else "OPENCV", factor
    elif isinstance(camera, PerspectiveCamera):
        model, scale = "PINHOLE", factor
    else:
        raise TypeError(f"a transforms.json has no camera of the kind {type(camera).__name__}.")
    focal = np.broadcast_to(np.asarray(camera.focal, np.float64), 2) * scale
    centre = np.asarray(camera.principal_point, np.float64) * factor
    bends = {name: float(getattr(camera, name)) for name in MODELS[model]}
    numbers = {"fl_x": focal[0], "fl_y": focal[1], "cx": centre[0], "cy": centre[1]}
    return {"camera_model": model, **{key: float(x) for key, x in numbers.items()}, **bends}
