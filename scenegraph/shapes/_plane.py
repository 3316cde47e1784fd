from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    dot,
    require_finite,
    require_nonzero,
    safe_norm,
    safe_normalise,
    tangents,
)
from ..rays import by_pixel, Hit, Ray
from ._base import AbstractShape, away_from_zero, Crossing, join_pieces, smooth_piece, within_reach


# A ray that is steeper than this to a plane's normal meets it beyond all that matters.
_STEEPEST = 1e-6

# Nor does one get anywhere that hardly has a direction, such as that to a lamp on the surface.
_LEAST = 1e-9


class Plane(AbstractShape):
    """An endless plane, by default z = 0; `uv` is in world units and along x and y there.

    **Arguments:**

    - `point`: on the plane; `uv` is zero there.
    - `normal`: of any length but zero."""

    point: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    normal: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 1.0))

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_finite(self, "point")
        require_nonzero(self, "normal")

    def coverage(self, ray: Ray) -> Scalar:
        return within_reach(ray, self._cross(ray))

    def pieces(self, ray: Ray) -> Hit:
        unit, crossing = safe_normalise(self.normal), self._cross(ray)
        covered = within_reach(ray, crossing)
        return join_pieces(smooth_piece(ray, crossing, lambda _: unit, self._uv, covered))

    def _cross(self, ray: Ray) -> Crossing:
        return Crossing(*by_pixel(self._distance, ray))

    def _distance(self, origin: Vector, direction: Vector) -> Scalar:
        unit = safe_normalise(self.normal)
        fall = dot(unit, direction)
        height = dot(unit, self.point - origin)
        return height / away_from_zero(fall, _least_fall(direction))

    def _uv(self, point: Vector) -> Float[Array, "2"]:
        u, v = tangents(safe_normalise(self.normal))
        away = point - self.point
        return jnp.stack([dot(u, away), dot(v, away)])


def _least_fall(direction: Vector) -> Scalar:
    return jnp.maximum(_STEEPEST * safe_norm(direction), _LEAST)


def level_distance(height: Scalar, origin: Vector, direction: Vector) -> Scalar:
    """Where a line meets a plane of constant z.

    **Arguments:**

    - `height`: the plane's z.
    - `origin`, `direction`: of the line.

    **Returns:**

    A value of `t`; very far away for a line that is parallel to the plane.
    """
    fall = away_from_zero(direction[2], _least_fall(direction))
    return (height - origin[2]) / fall


def upwards(point: Vector) -> Vector:
    """The normal of a plane of constant z.

    **Arguments:**

    - `point`: anywhere.

    **Returns:**

    The direction z.
    """
    return jnp.asarray([0.0, 0.0, 1.0], point.dtype)
