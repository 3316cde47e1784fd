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
    safe_norm,
    safe_normalise,
    tangents,
)
from ..rays import pixel_jvp, Ray
from ..transforms import Ball
from ._angles import azimuth
from ._base import (
    AbstractSmoothShape,
    ALONG_AXIS,
    choose,
    chord,
    Crossing,
    first_ahead,
    round_crossings,
    within_reach,
)
from ._bounds import AbstractBounded


class Capsule(AbstractSmoothShape, AbstractBounded):
    """All points within a distance of a line segment: a rod with round ends.

    `uv` is the angle about the segment, in radians, and the distance along it.

    **Arguments:**

    - `start`, `end`: the ends of the segment; they may coincide.
    - `radius`: the radius; positive.
    """

    start: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, -0.5))
    end: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.5))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=0.5)

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radius")
        require_finite(self, "start", "end")

    def bounding_ball(self) -> Ball:
        half = safe_norm(self.end - self.start) / 2
        return Ball((self.start + self.end) / 2, half + self.radius)

    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        balls = [self._chord(ray, center, False) for center in (self.start, self.end)]
        body = self._chord(ray, self.start, True)
        enter, leave = (self._visible(ray, body[i], balls[0][i], balls[1][i]) for i in (0, 1))
        crossing = first_ahead(ray, enter, leave)
        # On the outline, the distance from the segment to the line is the radius.
        covered = disk_coverage(*pixel_jvp(self._least_offset, ray), self.radius)
        return crossing, covered * within_reach(ray, crossing)

    def _visible(self, ray: Ray, body: Crossing, first: Crossing, last: Crossing) -> Crossing:
        """Returns the crossing of the side, or of the ball at the end beyond which it lies."""
        # Of the endless cylinder, only what lies between both ends is on the surface.
        share = self._share(ray.at(body.t))
        ball = choose(share < 0.5, first, last)
        return choose((share >= 0) & (share <= 1), body, ball)

    def _chord(self, ray: Ray, center: Vector, across: bool) -> tuple[Crossing, Crossing]:
        """Crosses a ball, or (`across`) the endless cylinder, which is a disk across the axis."""

        def intersect_line(origin: Vector, direction: Vector) -> tuple[Scalar, Scalar]:
            start, squared = origin - center, dot(direction, direction)
            # x - (x . a) a projects the cylinder about the unit axis a to a disk; t stays.
            if across:
                start, direction = self._from_axis(start), self._from_axis(direction)
                squared = jnp.maximum(dot(direction, direction), ALONG_AXIS * squared)
            middle, _, square = chord(start, direction, squared, self.radius)
            return middle, square

        (t, square), (gradient, d_square) = pixel_jvp(intersect_line, ray)
        return round_crossings(Crossing(t, gradient), square, d_square)

    def _least_offset(self, origin: Vector, direction: Vector) -> Vector:
        """Returns the vector from the segment to a line where they are nearest."""
        # With a = end - start and b = origin - start, |b + t d - s a| is least at
        # s = (b x d) . (a x d) / |a x d|^2, clipped to [0, 1]. Along the axis, every s is as near;
        # with a half, both ends take the same part in derivatives.
        axis, between = self.end - self.start, origin - self.start
        aside = jnp.cross(axis, direction)
        square = dot(aside, aside)
        share = jnp.clip(safe_divide(dot(jnp.cross(between, direction), aside), square), 0, 1)
        start = between - jnp.where(square > 0, share, 0.5) * axis
        # What remains of b - s a is across the line: t = -(b - s a) . d / |d|^2.
        along, across = dot(start, direction), dot(direction, direction)
        return start - safe_divide(along, across) * direction

    def _share(self, point: Vector) -> Scalar:
        """Returns a point's position along the segment: 0 at its start and 1 at its end."""
        axis = self.end - self.start
        return safe_divide(dot(point - self.start, axis), dot(axis, axis))

    def _from_axis(self, vector: Vector) -> Vector:
        unit = safe_normalise(self.end - self.start)
        return vector - dot(vector, unit) * unit

    def normal_at(self, point: Vector) -> Vector:
        nearest = jnp.clip(self._share(point), 0, 1) * (self.end - self.start)
        return safe_normalise(point - self.start - nearest)

    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        axis = safe_normalise(self.end - self.start)
        u, v = tangents(axis)
        away = point - self.start
        turned = jnp.stack([dot(u, away), dot(v, away)])
        return jnp.stack([azimuth(turned), dot(axis, away)])
