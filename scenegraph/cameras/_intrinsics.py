"""The leaves that cameras have in common."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, ScalarLike, VectorLike
from ..numerics import as_float_leaf, is_frozen, is_tied
from ..transforms import AbstractTransform, Pose
from ._base import as_resolution


def as_pair(value: ScalarLike | VectorLike) -> Float[Array, "..."]:
    """Makes a leaf of two numbers, for x and y, of two or of one; other shapes are left alone."""
    leaf = as_float_leaf(value)
    return jnp.stack([leaf, leaf]) if leaf.ndim == 0 else leaf


def assign_intrinsics(
    camera: Any,
    pose: Any,
    focal: ScalarLike | VectorLike,
    size: tuple[Any, Any],
    principal_point: VectorLike | None,
    limits: tuple[ScalarLike, ScalarLike],
) -> None:
    """Assigns the fields that all cameras have, within a constructor."""
    size = as_resolution(*size)
    camera.pose, (camera.width, camera.height) = _as_pose(pose, type(camera).__name__), size
    # By default the principal point is the centre of the picture.
    centre = [length / 2 for length in size]
    camera.focal = as_float_leaf(focal)
    camera.principal_point = as_float_leaf(centre if principal_point is None else principal_point)
    camera.near, camera.far = map(as_float_leaf, limits)


def _as_pose(pose: Any, camera: str) -> Any:
    """Makes a pose of a 4x4 matrix; transforms stay as they are."""
    if isinstance(pose, AbstractTransform) or is_frozen(pose) or is_tied(pose):
        return pose
    if isinstance(pose, list | tuple) or eqx.is_array_like(pose):
        return Pose(pose)
    raise TypeError(
        f"`{camera}.pose` must be a transform such as a `Pose`, or a 4x4 matrix; got a "
        f"{type(pose).__name__}."
    )
