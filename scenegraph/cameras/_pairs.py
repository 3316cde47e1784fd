"""What cameras say in pixels, for x and for y."""

import jax.numpy as jnp

from .._typing import Array, Float, ScalarLike, VectorLike
from ..numerics import as_float_leaf


def as_pair(value: ScalarLike | VectorLike) -> Float[Array, "..."]:
    """Two numbers, for x and y."""
    leaf = as_float_leaf(value)
    return jnp.stack([leaf, leaf]) if leaf.ndim == 0 else leaf


def principal_or_centre(
    principal_point: VectorLike | None, width: int, height: int
) -> Float[Array, "..."]:
    """The principal point of a camera."""
    return as_float_leaf([width / 2, height / 2] if principal_point is None else principal_point)
