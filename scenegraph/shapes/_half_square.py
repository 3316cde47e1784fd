from typing import ClassVar

import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import polygon_coverage
from ..rays import pixel_jvp, Ray
from ..transforms import Ball
from ._base import AbstractSmoothShape, Crossing, within_reach
from ._bounds import AbstractBounded
from ._plane import level_distance


class HalfSquare(AbstractSmoothShape, AbstractBounded):
    """The triangle with the corners (0, 0, 0), (1, 0, 0) and (0, 1, 0), which maps make any."""

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def bounding_ball(self) -> Ball:
        return Ball(jnp.array([0.5, 0.5, 0.0]), jnp.asarray(0.5**0.5))

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        def intersect_line(origin: Vector, direction: Vector) -> tuple[Scalar, Float[Array, "3"]]:
            # Margins x, y and 1 - x - y at the plane, times |d_z|: linear over a pinhole's picture.
            steepness = jnp.abs(direction[2])
            ahead = -jnp.where(direction[2] < 0, -1.0, 1.0) * origin[2]
            x, y = origin[:2] * steepness + ahead * direction[:2]
            t = level_distance(jnp.zeros((), origin.dtype), origin, direction)
            return t, jnp.stack([x, y, steepness - x - y])

        (t, margins), (gradient, d_margins) = pixel_jvp(intersect_line, ray)
        crossing = Crossing(t, gradient)
        covered = polygon_coverage(margins, d_margins)
        return crossing, covered * within_reach(ray, crossing)

    def normal_at(self, point: Vector) -> Vector:
        return jnp.asarray([0.0, 0.0, 1.0], point.dtype)

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        return point[:2]
