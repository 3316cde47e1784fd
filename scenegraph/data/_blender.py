"""The Blender (nerf_synthetic) format: `transforms_{split}.json` and RGBA pictures."""

import os
import pathlib
from typing import Unpack

import jax
import numpy as np

from .._typing import Array, Matrix4
from ..cameras import focal_from_fov, PerspectiveCamera
from ..pixels import Views
from ..transforms import Pose
from ._bounds import depth_range
from ._listing import read_blender_listing
from ._loading import Loading, LoadOptions
from ._pictures import assemble_views, gather_pictures, PictureFile


def load_blender(
    folder: str | os.PathLike, split: str = "train", **options: Unpack[LoadOptions]
) -> Views:
    """Loads one split of a Blender data set.

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
    loading = Loading(**options)
    fov_x, frames = read_blender_listing(pathlib.Path(folder) / f"transforms_{split}.json")
    wanted = [PictureFile(frame.picture) for frame in frames]
    pictures = gather_pictures(wanted, loading, loading.downscale)
    frames = [frames[index] for index in pictures.kept]
    sizes = pictures.sizes // loading.downscale
    width, height = map(int, sizes[0])
    poses = np.stack([frame.pose for frame in frames]).astype(np.float32)
    near, far = depth_range(poses, loading.near, loading.far)
    focal = focal_from_fov(fov_x, width)

    @jax.jit
    def cameras(poses: Array) -> PerspectiveCamera:
        def camera(pose: Matrix4) -> PerspectiveCamera:
            return PerspectiveCamera(Pose(pose), focal, width, height, near=near, far=far)

        return jax.vmap(camera)(poses)

    names = [frame.name for frame in frames]
    return assemble_views(loading, pictures, cameras(poses), sizes, names)
