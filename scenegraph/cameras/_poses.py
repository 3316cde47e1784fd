from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import Matrix4
from ..numerics import unfreeze
from ..transforms import Pose
from ._base import AbstractCamera


def pose_matrix(camera: Any) -> Matrix4:
    """Returns a camera's pose as a matrix.

    **Arguments:**

    - `camera`: a camera with a leaf `pose`.

    **Returns:**

    The transform world from camera, `4 4`.
    """
    pose = unfreeze(camera).pose
    top = jnp.concatenate([pose.linear(), pose.offset()[:, None]], axis=1)
    return jnp.concatenate([top, jnp.asarray([[0.0, 0.0, 0.0, 1.0]], top.dtype)])


def cameras_at(camera: AbstractCamera, poses: np.ndarray) -> list[AbstractCamera]:
    """Copies a camera to poses `cameras 4 4`, world from camera."""
    bases = np.asarray(poses, np.float32)
    return [eqx.tree_at(lambda c: c.pose, camera, Pose(base)) for base in bases]
