"""The conversion of COLMAP's sparse model to the listing of nerfstudio."""

import os
import pathlib
from typing import Any

import numpy as np

from ..io import ColmapCamera, ColmapImage, ColmapModel, FileError, read_colmap, write_json
from ..models import write_points
from ._lenses import MODELS
from ._listing import portable
from ._transforms import transforms_path


# The rotation by which nerfstudio turns COLMAP's world, whose y points down if the first camera is
# upright, so that z points up.
COLMAP_TURN = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, -1.0, 0.0, 0.0]])
_POINTS = "sparse_pc.ply"
# nerfstudio's name for each of COLMAP's models; coefficients that a model lacks are zero.
_COUNTERPARTS = {
    "SIMPLE_PINHOLE": "OPENCV",
    "PINHOLE": "OPENCV",
    "SIMPLE_RADIAL": "OPENCV",
    "RADIAL": "OPENCV",
    "OPENCV": "OPENCV",
    "FULL_OPENCV": "FULL_OPENCV",
    "SIMPLE_FISHEYE": "OPENCV_FISHEYE",
    "FISHEYE": "OPENCV_FISHEYE",
    "SIMPLE_RADIAL_FISHEYE": "OPENCV_FISHEYE",
    "RADIAL_FISHEYE": "OPENCV_FISHEYE",
    "OPENCV_FISHEYE": "OPENCV_FISHEYE",
    "EQUIRECTANGULAR": "EQUIRECTANGULAR",
}


def convert_colmap(
    sparse: str | os.PathLike,
    out: str | os.PathLike,
    *,
    images: str | os.PathLike | None = None,
    keep_world: bool = False,
) -> pathlib.Path:
    """Writes a `transforms.json` for the pictures of a COLMAP model, as nerfstudio does.

    The world is turned so that COLMAP's downward axis (+y) becomes -z, unless `keep_world`; the
    listing's `applied_transform` says so. The model's points are written beside it. A listing holds
    no pictures that lie outside its folder. After `colmap_utils.py` of nerfstudio.
    """
    path = transforms_path(out)
    if path.exists():
        raise FileError(f"{path} is there already; remove it, or name another file.")
    model = read_colmap(sparse)
    if not model.images:
        raise FileError(f"{sparse} holds no image: COLMAP has found no camera's place.")
    folder = path.parent / "images" if images is None else pathlib.Path(images)
    names = _picture_names(path, folder, model.images)
    turn = np.eye(4)[:3] if keep_world else COLMAP_TURN
    listing = _make_listing(model, names, turn)
    if not keep_world:
        listing["applied_transform"] = turn.tolist()
    if len(model.points):
        write_points(path.with_name(_POINTS), model.points @ turn[:, :3].T, model.colors)
        listing["ply_file_path"] = _POINTS
    write_json(path, listing)
    return path


def _picture_names(
    path: pathlib.Path, folder: pathlib.Path, images: list[ColmapImage]
) -> list[str]:
    """Returns the pictures' names, relative to the listing; refuses missing ones and others."""
    files = [_existing(folder, image.name) for image in images]
    missing = [image.name for image, file in zip(images, files, strict=True) if file is None]
    if missing:
        raise FileError(
            f"{len(missing)} of {len(files)} pictures are not in {folder}, such as {missing[0]!r}; "
            "name their folder (--images)."
        )
    base = path.parent.resolve()
    outside = [file for file in files if file and not file.is_relative_to(base)]
    if outside:
        raise FileError(
            f"the picture {outside[0]} lies outside of {base}, the folder of the listing; write "
            "the listing to a folder that holds the pictures."
        )
    return [file.relative_to(base).as_posix() for file in files if file]


def _existing(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """Returns a picture's file; `None` if it is not there, or if no file can have this name."""
    try:
        files = [(folder / one).resolve() for one in (name, portable(name))]
        return next((file for file in files if file.is_file()), None)
    except (OSError, RuntimeError, ValueError):
        return None


def _make_listing(model: ColmapModel, names: list[str], turn: np.ndarray) -> dict[str, Any]:
    # A lens stands before all frames if there is only one, else each frame has its own.
    numbers = {image.camera for image in model.images}
    lenses = {number: convert_lens(number, model.cameras[number]) for number in sorted(numbers)}
    shared = lenses[numbers.pop()] if len(lenses) == 1 else {}
    frames = [
        {
            "file_path": name,
            "transform_matrix": convert_pose(image, turn).tolist(),
            "colmap_im_id": image.number,
        }
        | ({} if shared else lenses[image.camera])
        for image, name in zip(model.images, names, strict=True)
    ]
    return {**shared, "frames": frames}


def convert_lens(number: int, camera: ColmapCamera) -> dict[str, Any]:
    """Converts a camera to what nerfstudio writes of a lens."""
    if camera.model not in _COUNTERPARTS:
        raise FileError(
            f"COLMAP's camera {number} is of the model {camera.model}, which is not supported; "
            "`colmap image_undistorter` makes pictures without distortion, and a model for them. "
            f"Supported are {', '.join(_COUNTERPARTS)}."
        )
    model, given = _COUNTERPARTS[camera.model], camera.parameters
    if model == "EQUIRECTANGULAR":
        # Focal lengths in pixels a half turn, as nerfstudio has them.
        width, height = camera.width, camera.height
        given = {"fx": width / 2, "fy": float(height), "cx": width / 2, "cy": height / 2}
    coefficients = ("k1", "k2", "p1", "p2") if model == "OPENCV" else MODELS[model]
    return {
        "camera_model": model,
        "w": camera.width,
        "h": camera.height,
        "fl_x": given.get("fx", given.get("f")),
        "fl_y": given.get("fy", given.get("f")),
        "cx": given["cx"],
        "cy": given["cy"],
    } | {name: given.get(name, 0.0) for name in coefficients}


def convert_pose(image: ColmapImage, turn: np.ndarray) -> np.ndarray:
    """Converts COLMAP's camera from world to world from camera, 4x4."""
    # R = (w^2 - v.v) I + 2 v v^T + 2 w [v]x of the quaternion (w, v). The pose is
    # turn (R^T diag(1, -1, -1), -R^T t): the camera's y is turned up and its z back.
    w, v = image.rotation[0], image.rotation[1:]
    cross = np.cross(np.eye(3), v)
    rotation = (w**2 - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * cross
    pose = np.eye(4)
    pose[:3, :3] = turn[:, :3] @ rotation.T * [1, -1, -1]
    pose[:3, 3] = -turn[:, :3] @ rotation.T @ image.translation
    return pose
