"""The Blender (nerf_synthetic) format: `transforms_{split}.json` and RGBA pictures."""

import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Matrix4
from ..cameras import focal_from_fov, PerspectiveCamera
from ..transforms import Pose
from ._backdrops import AbstractBackdrop, Solid
from ._bounds import depth_range
from ._listing import gather_pictures, read_blender_listing
from ._views import Views


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
    fov_x, frames = read_blender_listing(listing)
    pixels, sizes = gather_pictures(
        [frame.picture for frame in frames],
        downscale,
        straight_alpha=straight_alpha,
        memory_map=memory_map,
    )
    poses = np.stack([frame.pose for frame in frames]).astype(np.float32)
    near, far = depth_range(poses, near, far)
    width, height = map(int, sizes[0] // downscale)
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
