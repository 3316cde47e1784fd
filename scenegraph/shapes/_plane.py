from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar

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
from ..rays import pixel_jvp, Ray
from ._base import AbstractSmoothShape, away_from_zero, Crossing, within_reach


# A ray whose cosine to a plane's normal is smaller than this hits the plane too far away to matter.
_STEEPEST = 1e-6

# The same for a ray of hardly any length, such as a shadow ray to a light on the surface itself.
_LEAST = 1e-9


class Plane(AbstractSmoothShape):
    """An endless plane, by default z = 0; `uv` is in world units and along x and y there.

    **Arguments:**

    - `point`: a point on the plane, at which `uv` is zero.
    - `normal`: the normal, of any length but zero.
    """

    point: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    normal: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 1.0))

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_finite(self, "point")
        require_nonzero(self, "normal")

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        def intersect_line(origin: Vector, direction: Vector) -> Scalar:
            # n . (o + t d - p) = 0, so t = n . (p - o) / (n . d).
            unit = safe_normalise(self.normal)
            fall = dot(unit, direction)
            height = dot(unit, self.point - origin)
            return height / away_from_zero(fall, _least_fall(direction))

        crossing = Crossing(*pixel_jvp(intersect_line, ray))
        return crossing, within_reach(ray, crossing)

    def normal_at(self, point: Vector) -> Vector:
        del point
        return safe_normalise(self.normal)

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        # With unit vectors (u, v, n) at right angles: (u . (x - p), v . (x - p)).
        u, v = tangents(safe_normalise(self.normal))
        away = point - self.point
        return jnp.stack([dot(u, away), dot(v, away)])


def _least_fall(direction: Vector) -> Scalar:
    # |n . d| = |d| cos(incidence)
    return jnp.maximum(_STEEPEST * safe_norm(direction), _LEAST)


def level_distance(height: Scalar, origin: Vector, direction: Vector) -> Scalar:
    """Intersects a line with the plane z = `height`, very far away if they are parallel."""
    # o_z + t d_z = height
    fall = away_from_zero(direction[2], _least_fall(direction))
    return (height - origin[2]) / fall


class AbstractLevelShape(AbstractSmoothShape):
    """A flat shape in a plane of constant z, with `uv` from its centre."""

    center: AbstractVar[Vector]

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def normal_at(self, point: Vector) -> Vector:
        return jnp.asarray([0.0, 0.0, 1.0], point.dtype)

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        return (point - self.center)[:2]
