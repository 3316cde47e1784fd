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
    tangents,
)
from ..rays import by_pixel, Hit, Ray
from ._angles import azimuth
from ._base import (
    AbstractShape,
    choose,
    Crossing,
    first_ahead,
    join_pieces,
    round_crossings,
    smooth_piece,
    within_reach,
)


class Capsule(AbstractShape):
    """All points within a distance of a line segment: a rod with round ends.

    `uv` is the angle about the segment, in radians, and the distance along it.

    **Arguments:**

    - `start`, `end`: of the segment; they may coincide.
    - `radius`: positive.
    """

    start: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, -0.5))
    end: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.5))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=0.5)

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radius")
        require_finite(self, "start", "end")

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def pieces(self, ray: Ray) -> Hit:
        crossing, covered = self._cross(ray)
        return join_pieces(smooth_piece(ray, crossing, self._normal, self._uv, covered))

    def _cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        chords = [self._chord(ray, center, False) for center in (self.start, self.end)]
        body = self._chord(ray, self.start, True)
        enter, leave = (self._seen(ray, body[i], chords[0][i], chords[1][i]) for i in (0, 1))
        crossing = first_ahead(ray, enter, leave)
        covered = disk_coverage(*by_pixel(self._least_offset, ray), self.radius)
        return crossing, covered * within_reach(ray, crossing)

    def _seen(self, ray: Ray, body: Crossing, first: Crossing, last: Crossing) -> Crossing:
        """The side, or the ball at the end beyond which the endless cylinder is met."""
        share = self._share(ray.at(body.t))
        ball = choose(share < 0.5, first, last)
        return choose((share >= 0) & (share <= 1), body, ball)

    def _chord(self, ray: Ray, center: Vector, across: bool) -> tuple[Crossing, Crossing]:
        """Of a ball; or of the endless cylinder, if only what is across the axis counts."""

        def look(origin: Vector, direction: Vector) -> tuple[Scalar, Scalar]:
            start = origin - center
            if across:
                start, direction = self._from_axis(start), self._from_axis(direction)
            length = dot(direction, direction)
            t = -safe_divide(dot(start, direction), length)
            offset = start + t * direction
            return t, safe_divide(self.radius**2 - dot(offset, offset), length)

        (t, square), (slope, square_slope) = by_pixel(look, ray)
        return round_crossings(Crossing(t, slope), square, square_slope)

    def _least_offset(self, origin: Vector, direction: Vector) -> Vector:
        """From the segment to a line where they come closest."""
        axis, between = self.end - self.start, origin - self.start
        along, across = dot(axis, direction), dot(direction, direction)
        rest = dot(axis, axis) * across - along**2
        wanted = across * dot(between, axis) - along * dot(between, direction)
        start = between - jnp.clip(safe_divide(wanted, rest), 0, 1) * axis
        return start - safe_divide(dot(start, direction), across) * direction

    def _share(self, point: Vector) -> Scalar:
        """How far along the segment the point lies: 0 at its start and 1 at its end."""
        axis = self.end - self.start
        return safe_divide(dot(point - self.start, axis), dot(axis, axis))

    def _from_axis(self, vector: Vector) -> Vector:
        unit = safe_normalise(self.end - self.start)
        return vector - dot(vector, unit) * unit

    def _normal(self, point: Vector) -> Vector:
        nearest = jnp.clip(self._share(point), 0, 1) * (self.end - self.start)
        return safe_normalise(point - self.start - nearest)

    def _uv(self, point: Vector) -> Float[Array, "2"]:
        axis = safe_normalise(self.end - self.start)
        u, v = tangents(axis)
        away = point - self.start
        turned = jnp.stack([dot(u, away), dot(v, away)])
        return jnp.stack([azimuth(turned), dot(axis, away)])
