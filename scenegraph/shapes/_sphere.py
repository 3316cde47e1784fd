from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    disk_coverage,
    dot,
    require_finite,
    require_positive,
    safe_normalise,
)
from ..rays import pixel_jvp, Ray
from ..transforms import Ball
from ._angles import azimuth, elevation
from ._base import AbstractSmoothShape, chord, Crossing, first_ahead, round_crossings, within_reach
from ._bounds import AbstractBounded


class Sphere(AbstractSmoothShape, AbstractBounded):
    """A sphere; `uv` is azimuth and elevation, in radians.

    **Arguments:**

    - `center`: the centre.
    - `radius`: the radius; positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=1.0)

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radius")
        require_finite(self, "center")

    def bounding_ball(self) -> Ball:
        return Ball(self.center, self.radius)

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        def intersect_line(origin: Vector, direction: Vector) -> tuple[Scalar, Vector, Scalar]:
            return chord(origin - self.center, direction, dot(direction, direction), self.radius)

        (t, offset, square), (gradient, d_offset, d_square) = pixel_jvp(intersect_line, ray)
        enter, leave = round_crossings(Crossing(t, gradient), square, d_square)
        crossing = first_ahead(ray, enter, leave)
        # The outline is a disk about the centre, seen where the line is nearest to it.
        covered = disk_coverage(offset, d_offset, self.radius)
        return crossing, covered * within_reach(ray, crossing)

    def normal_at(self, point: Vector) -> Vector:
        return safe_normalise(point - self.center)

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        outward = self.normal_at(point)
        return jnp.stack([azimuth(outward), elevation(outward)])
