from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Float, Matrix3, Matrix4, Vector, VectorLike
from ..numerics import (
    as_float_leaf,
    Frozen,
    in_full_precision,
    matmul,
    safe_norm,
    safe_normalise,
    unfreeze,
)
from ._base import AbstractTransform, rotate
from ._rigid import motion_of, moved_tangent, split_motion, tangent_from


class Pose(AbstractTransform):
    """A rigid motion, `base @ exp(delta)`: a frozen start and a tangent vector to optimise.

    Whatever an optimiser adds to `delta`, the pose remains a rotation and a shift.

    **Arguments:**

    - `base`: the rigid motion to start from, parent from child, `4 4`; its 3x3 part is a rotation.
      Frozen; what a matrix was computed from is still differentiated, by way of `delta`, in every
      order of derivatives, as far as it remains a rotation and a shift.
    - `delta`: a tangent vector of SE(3), shift first, then rotation in radians, about the
      child's own axes, `6`; zero by default.
    """

    base: Any
    delta: Float[Array, "6"] = eqx.field(converter=as_float_leaf)

    is_similarity: ClassVar[bool] = True

    def __init__(self, base: Any, delta: VectorLike | None = None):
        matrix = base.value if isinstance(base, Frozen) else _as_leaf(base, "Pose.base")
        if matrix.shape != (4, 4):
            raise ValueError(f"`Pose.base` must be a 4x4 matrix; got shape {matrix.shape}.")
        self.delta = jnp.zeros(6, matrix.dtype) if delta is None else _as_leaf(delta, "Pose.delta")
        if isinstance(base, Frozen):
            self.base = base
            return
        _refuse_scaling(matrix)
        self.base = Frozen(matrix)
        if isinstance(matrix, Tracer) and self.delta.shape == (6,):
            self.delta = _with_derivatives(matrix, None if delta is None else self.delta)

    @staticmethod
    def look_at(eye: VectorLike, target: VectorLike, up: VectorLike) -> "Pose":
        """Makes the pose of a camera at `eye` that looks at `target`.

        **Arguments:**

        - `eye`, `target`: two different points, `3`.
        - `up`: the direction that is upwards in the picture, `3`; not parallel to the view.

        **Returns:**

        A pose with the camera's axes: x right, y up, looking along -z.

        **Errors:**

        `TypeError` for what is not three numbers; `ValueError` where `eye` is `target`, or `up` is
        zero or parallel to the view. Values that are being traced are not checked: where `up` is
        zero or parallel to the view then, z is upwards, or y for a view along z; where `eye` is
        `target`, the pose is NaN.
        """
        points = {"eye": eye, "target": target, "up": up}
        points = {name: _as_vector(value, f"look_at.{name}") for name, value in points.items()}
        _refuse_no_direction(**points)
        return Pose(_look_at(**points))

    @in_full_precision
    def linear(self) -> Matrix3:
        # base @ exp(delta) = [R exp(w), R V s + t]
        return _once(matmul(unfreeze(self.base)[:3, :3], motion_of(self.delta).turn))

    @in_full_precision
    def offset(self) -> Vector:
        base = split_motion(unfreeze(self.base))
        return _once(rotate(base.turn, motion_of(self.delta).shift) + base.shift)


def _once(numbers: Array) -> Array:
    """Returns numbers that are computed once, and not again by every pixel that needs them."""
    # XLA copies what is cheap to compute into each loop that reads it; these are not.
    return jax.lax.optimization_barrier(numbers)


@in_full_precision
def _with_derivatives(base: Matrix4, delta: Array | None) -> Array:
    """Returns `delta`, zero by default, with the derivatives of what a traced matrix depends on."""
    return tangent_from(base) if delta is None else moved_tangent(base, delta)


# Matrices from files have a few digits.
_RIGID = 1e-3


def _refuse_scaling(matrix: Matrix4) -> None:
    """Refuses a matrix that is known, and no rotation and shift."""
    if isinstance(matrix, Tracer):
        return
    # R^T R = 1 and det R > 0
    turn, rest = np.asarray(matrix[:3, :3]), np.asarray(matrix[3])
    off = np.max(np.abs(turn.T @ turn - np.eye(3)))
    if not (off < _RIGID and np.linalg.det(turn) > 0 and np.allclose(rest, [0, 0, 0, 1])):
        raise ValueError(
            f"`Pose.base` must be a rotation and a shift; the axes of this matrix are "
            f"{np.linalg.norm(turn, axis=0).round(4).tolist()} long, its determinant is "
            f"{np.linalg.det(turn):.4g}. For other matrices use `Affine`."
        )


def _refuse_no_direction(eye: Vector, target: Vector, up: Vector) -> None:
    """Refuses known points that give a camera no direction, or no upright."""
    if any(isinstance(x, Tracer) for x in (eye, target, up)):
        return
    away, upwards = np.asarray(target - eye, float), np.asarray(up, float)
    if not np.linalg.norm(away) > 0:
        raise ValueError(f"`eye` and `target` must be two points; both are {eye.tolist()}.")
    lengths = np.linalg.norm(away) * np.linalg.norm(upwards)
    if not np.linalg.norm(np.cross(away, upwards)) > 1e-6 * lengths:
        raise ValueError(
            f"`up` must not be zero or parallel to the view; got {up.tolist()} for a view along "
            f"{away.tolist()}."
        )


def _as_leaf(value: Any, name: str) -> Array:
    try:
        return as_float_leaf(value)
    except TypeError as error:
        message = f"`{name}`: {error}"
    raise TypeError(message) from None


def _as_vector(value: VectorLike, name: str) -> Vector:
    vector = _as_leaf(value, name)
    if vector.shape != (3,):
        raise TypeError(f"`{name}` must be three numbers; got {vector.dtype}{list(vector.shape)}.")
    return vector


# The least sine of the angle between a view and what is upwards in its picture.
_LEAST_SINE = 1e-6


@jax.jit
def _look_at(eye: Vector, target: Vector, up: Vector) -> Matrix4:
    # The columns are right = up x back, back x right, back (a camera looks along -z), position.
    back = safe_normalise(eye - target)
    back = jnp.where(jnp.all(back == 0), jnp.nan, back)
    level = safe_norm(jnp.cross(up, back)) <= _LEAST_SINE * safe_norm(up)
    other = jnp.where(jnp.abs(back[2]) < 0.9, jnp.eye(3)[2], jnp.eye(3)[1]).astype(back.dtype)
    right = safe_normalise(jnp.cross(jnp.where(level, other, up), back))
    axes = jnp.stack([right, jnp.cross(back, right), back], axis=-1)
    bottom = jnp.asarray([[0.0, 0.0, 0.0, 1.0]], dtype=axes.dtype)
    return jnp.concatenate([jnp.column_stack([axes, eye]), bottom])
