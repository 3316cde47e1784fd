"""Lines through pixels of many pictures, by one compiled program for all of them."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._typing import Array, Float
from ..cameras import AbstractCamera
from ._scene_cameras import SceneCameras
from ._views import Views


# Lines are made so many at a time, so that one program serves any number of them.
_BLOCK = 2**13


def pixel_lines(
    cameras: AbstractCamera, frames: np.ndarray, pixels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns origins and directions, `n 3` each, of the lines through pixels of stacked cameras.

    `frames` are the cameras' indices, `n`, and `pixels` places in pixels, `n 2`.
    """
    count = len(frames)
    blocks = max(1, -(-count // _BLOCK))
    own = np.zeros(blocks * _BLOCK, np.int32)
    places = np.zeros((blocks * _BLOCK, 2), np.float32)
    own[:count], places[:count] = frames, pixels
    known = on_host(cameras)
    found = [
        jax.device_get(_lines(take_camera(known, block), at))
        for block, at in zip(np.split(own, blocks), np.split(places, blocks), strict=True)
    ]
    origins, directions = (np.concatenate(part)[:count] for part in zip(*found, strict=True))
    return origins.astype(np.float64), directions.astype(np.float64)


def frame_lines(cameras: AbstractCamera, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns origins and unit directions of the lines through one pixel of every picture."""
    origins, directions = pixel_lines(cameras, np.arange(len(pixels)), pixels)
    return origins, directions / np.linalg.norm(directions, axis=1, keepdims=True)


def known_cameras(views: Views) -> AbstractCamera:
    """Returns the cameras; raises `TypeError` for those of a scene, which may be anywhere."""
    if isinstance(views.cameras, SceneCameras):
        raise TypeError("cameras in a scene may be anywhere: where they look is not known.")
    return views.cameras


def on_host(cameras: AbstractCamera) -> AbstractCamera:
    """Returns stacked cameras whose leaves are NumPy's: to take some compiles nothing."""
    return jax.tree.map(lambda x: np.asarray(x) if eqx.is_array(x) else x, cameras)


def take_camera(cameras: AbstractCamera, frame: Any) -> AbstractCamera:
    """Returns one or several of stacked cameras, with their static size."""
    return jax.tree.map(lambda x: x[frame] if eqx.is_array(x) else x, cameras)


# Of cameras that are taken already: the program does not depend on how many pictures there are.
@eqx.filter_jit
def _lines(
    cameras: AbstractCamera, pixels: Float[np.ndarray, "n 2"] | Float[Array, "n 2"]
) -> tuple[Array, Array]:
    return eqx.filter_vmap(lambda camera, pixel: camera.line(pixel))(cameras, pixels)
