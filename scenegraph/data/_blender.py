"""The Blender (nerf_synthetic) format: `transforms_{split}.json` and RGBA pictures."""

import math
import os
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Matrix4
from ..cameras import focal_from_fov, PerspectiveCamera
from ..images import shrink
from ..io import FileError, read_json, read_picture
from ..transforms import Pose
from ._backdrops import AbstractBackdrop, Solid
from ._bounds import look_centre
from ._pixel_store import gather_pixels
from ._views import Views


_PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")


class _Frame(NamedTuple):
    name: str
    picture: pathlib.Path
    pose: np.ndarray


def load_blender(
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
    """Loads one split of a Blender data set.

    **Arguments:**

    - `folder`: with `transforms_{split}.json`; pictures of one size, with or without alpha.
    - `split`: `train`, `val`, `test`, or any other that has its file.
    - `downscale`: pictures are averaged over blocks of this many pixels a side. Keyword only, as
      is all that follows.
    - `near`, `far`: of the cameras, in world units; by default wide about all that the cameras
      look at, for scenes whose volumes have bounds.
    - `backdrop`: what RGBA pictures are put on; white by default.
    - `straight_alpha`: average colours without weighting them by opacity, as the published
      mip-NeRF code does.
    - `memory_map`: whether the pixels stay in a file, and are read as they are needed; by default
      if they would take more than a quarter of the memory that is free.

    **Returns:**

    The pictures with their cameras.

    **Errors:**

    `FileError` for anything missing or malformed; the message names the file.
    """
    listing = pathlib.Path(folder) / f"transforms_{split}.json"
    fov_x, frames = _read_listing(listing)
    pixels, shapes = gather_pixels(
        [frame.picture for frame in frames],
        lambda index: _read(frames[index], downscale, straight_alpha),
        settings=f"{downscale} {straight_alpha}",
        memory_map=memory_map,
    )
    poses = np.stack([frame.pose for frame in frames])
    near, far = _depth_range(poses, near, far)
    height, width, _ = shapes[0]
    focal = focal_from_fov(fov_x, width)

    @jax.jit
    def cameras(poses: Array) -> PerspectiveCamera:
        def camera(pose: Matrix4) -> PerspectiveCamera:
            return PerspectiveCamera(Pose(pose), focal, width, height, near=near, far=far)

        return jax.vmap(camera)(poses)

    return Views(
        pixels,
        cameras(poses),
        jnp.full(len(frames), width),
        jnp.full(len(frames), height),
        jnp.ones(len(frames)),
        Solid() if backdrop is None else backdrop,
        tuple(frame.name for frame in frames),
    )


def _read_listing(path: pathlib.Path) -> tuple[float, list[_Frame]]:
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent}; pass a Blender data folder.")
    listing = read_json(path)
    if not isinstance(listing, dict) or not isinstance(listing.get("frames"), list):
        raise FileError(f"{path}: `frames` must be a list of cameras.")
    if not listing["frames"]:
        raise FileError(f"{path}: `frames` is empty; at least one picture is needed.")
    fov_x = listing.get("camera_angle_x")
    if isinstance(fov_x, bool) or not isinstance(fov_x, int | float) or not 0 < fov_x < math.pi:
        raise FileError(f"{path}: `camera_angle_x` must lie between 0 and pi; got {fov_x!r}.")
    frames = [_read_frame(path, index, frame) for index, frame in enumerate(listing["frames"])]
    return float(fov_x), frames


def _read_frame(path: pathlib.Path, index: int, frame: Any) -> _Frame:
    where = f"{path}: frame {index}"
    if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
        raise FileError(f"{where} has no `file_path`.")
    name = frame["file_path"]
    return _Frame(name, _picture_path(path, where, name), _pose(where, frame))


def _picture_path(path: pathlib.Path, where: str, name: str) -> pathlib.Path:
    """The picture's file; only files inside the data folder are ever opened."""
    folder = path.parent.resolve()
    picture = folder / name
    if picture.suffix.lower() not in _PICTURES:
        picture = picture.with_name(picture.name + ".png")
    try:
        inside = picture.resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError) as error:  # a link to itself, a name with a zero
        raise FileError(f"{where}: `file_path` {name!r} names no file ({error}).") from error
    if pathlib.PurePath(name).is_absolute() or not inside:
        raise FileError(f"{where}: `file_path` {name!r} leads out of the data folder; refused.")
    return picture


def _pose(where: str, frame: dict) -> np.ndarray:
    try:
        pose = np.asarray(frame.get("transform_matrix"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{where}: `transform_matrix` is not a matrix of numbers.") from error
    if pose.shape != (4, 4):
        raise FileError(f"{where}: `transform_matrix` must be 4x4; its shape is {pose.shape}.")
    rotation = pose[:3, :3]
    if not np.isfinite(pose).all():
        raise FileError(f"{where}: `transform_matrix` has numbers that are not finite.")
    if not np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3) or np.linalg.det(rotation) < 0:
        raise FileError(f"{where}: the 3x3 part of `transform_matrix` is not a rotation.")
    return pose.astype(np.float32)


def _read(frame: _Frame, downscale: int, straight_alpha: bool) -> np.ndarray:
    picture = read_picture(frame.picture)
    if downscale == 1:
        return picture
    scaled = picture.astype(np.float32) / np.float32(255)
    return shrink(scaled, downscale, straight_alpha=straight_alpha)


def _depth_range(poses: np.ndarray, near: float | None, far: float | None) -> tuple[float, float]:
    """Generous limits for cameras that look at something between them."""
    centre = look_centre(poses[:, :3, 3], -poses[:, :3, 2])
    reach = max(float(np.linalg.norm(poses[:, :3, 3] - centre, axis=1).max()), 1e-6)
    return (1e-3 * reach if near is None else near), (10 * reach if far is None else far)
