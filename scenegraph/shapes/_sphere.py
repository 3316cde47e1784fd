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
    safe_divide,
    safe_normalise,
)
from ..rays import by_pixel, Hit, Ray
from ._angles import azimuth, elevation
from ._base import (
    AbstractShape,
    Crossing,
    first_ahead,
    join_pieces,
    round_crossings,
    smooth_piece,
    within_reach,
)


class Sphere(AbstractShape):
    """A sphere; `uv` is azimuth and elevation, in radians.

    **Arguments:**

    - `center`: its middle.
    - `radius`: positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=1.0)

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radius")
        require_finite(self, "center")

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def pieces(self, ray: Ray) -> Hit:
        crossing, covered = self._cross(ray)
        return join_pieces(smooth_piece(ray, crossing, self._normal, self._uv, covered))

    def _cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        (t, offset, square), slopes = by_pixel(self._approach, ray)
        enter, leave = round_crossings(Crossing(t, slopes[0]), square, slopes[2])
        crossing = first_ahead(ray, enter, leave)
        covered = disk_coverage(offset, slopes[1], self.radius)
        return crossing, covered * within_reach(ray, crossing)

    def _approach(self, origin: Vector, direction: Vector) -> tuple[Scalar, Vector, Scalar]:
        """Where a line comes closest to the centre, what is then between them, and the square of
        half its chord."""
        start, length = origin - self.center, dot(direction, direction)
        t = -safe_divide(dot(start, direction), length)
        offset = start + t * direction
        return t, offset, safe_divide(self.radius**2 - dot(offset, offset), length)

    def _normal(self, point: Vector) -> Vector:
        return safe_normalise(point - self.center)

    def _uv(self, point: Vector) -> Float[Array, "2"]:
        outward = self._normal(point)
        return jnp.stack([azimuth(outward), elevation(outward)])
