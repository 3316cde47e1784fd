"""The leaves that cameras have in common."""

from typing import Any

import jax.numpy as jnp

from .._typing import Array, Float, ScalarLike, VectorLike
from ..numerics import as_float_leaf
from ._base import check_resolution


def as_pair(value: ScalarLike | VectorLike) -> Float[Array, "..."]:
    """Makes a leaf of two numbers, for x and y, of two or of one; other shapes are left alone."""
    leaf = as_float_leaf(value)
    return jnp.stack([leaf, leaf]) if leaf.ndim == 0 else leaf


def assign_intrinsics(
    camera: Any,
    pose: Any,
    focal: ScalarLike | VectorLike,
    size: tuple[int, int],
    principal_point: VectorLike | None,
    limits: tuple[ScalarLike, ScalarLike],
) -> None:
    """Assigns the fields that all cameras have, within a constructor."""
    check_resolution(*size)
    camera.pose, (camera.width, camera.height) = pose, size
    # By default the principal point is the centre of the picture.
    centre = [length / 2 for length in size]
    camera.focal = as_float_leaf(focal)
    camera.principal_point = as_float_leaf(centre if principal_point is None else principal_point)
    camera.near, camera.far = map(as_float_leaf, limits)
