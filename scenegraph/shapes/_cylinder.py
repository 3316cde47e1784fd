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
    safe_sqrt,
)
from ..rays import batched_jvp, Hit, pixel_jvp, Ray
from ..transforms import Ball
from ._angles import azimuth
from ._base import (
    AbstractShape,
    ALONG_AXIS,
    choose,
    chord,
    Crossing,
    join_parts,
    round_crossings,
    smooth_part,
    within_reach,
)
from ._bounds import AbstractBounded
from ._plane import level_distance


class Cylinder(AbstractShape, AbstractBounded):
    """A cylinder about an axis along z, closed at both ends.

    On its side, `uv` is azimuth in radians and height above the centre; on its ends, x and y.

    **Arguments:**

    - `center`: the centre.
    - `radius`, `height`: the radius and the length along z; positive.
    """

    center: Vector = eqx.field(converter=as_float_leaf, default=(0.0, 0.0, 0.0))
    radius: Scalar = eqx.field(converter=as_float_leaf, default=1.0)
    height: Scalar = eqx.field(converter=as_float_leaf, default=2.0)

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "radius", "height")
        require_finite(self, "center")

    def bounding_ball(self) -> Ball:
        return Ball(self.center, safe_sqrt(self.radius**2 + (self.height / 2) ** 2))

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def parts(self, ray: Ray) -> Hit:
        # The end that is turned to the eye is hidden by nothing of the side, which covers the rest.
        (side, end), covered = self._cross(ray)
        ended = jnp.minimum(self._end_coverage(ray, end), covered)
        on_end = smooth_part(ray, end, self._end_normal, self._end_uv, ended)
        on_side = smooth_part(ray, side, self._side_normal, self._side_uv, covered - ended)
        return join_parts(on_side, on_end)

    def _cross(self, ray: Ray) -> tuple[tuple[Crossing, Crossing], Scalar]:
        """Crosses side and end; on the outline, `least` is as long as the radius."""
        (t, square, ends, least), derivatives = pixel_jvp(self._intersect_line, ray)
        enter, leave = round_crossings(Crossing(t, derivatives[0]), square, derivatives[1])
        begin, finish = (Crossing(ends[i], derivatives[2][i]) for i in (0, 1))
        inside = jnp.maximum(enter.t, begin.t) <= ray.near
        side, end = choose(inside, leave, enter), choose(inside, finish, begin)
        # A pixel on the rim may see the side where its own line has passed an end.
        side = choose(side.t < begin.t, begin, choose(side.t > finish.t, finish, side))
        # In the endless cylinder and between the ends: the line is in both from the later of the
        # two entries to the earlier of the two exits.
        later = side.t > end.t
        seen = choose(later ^ inside, side, end)
        covered = disk_coverage(least, derivatives[3], self.radius)
        return (side, end), covered * within_reach(ray, seen)

    def _intersect_line(
        self, origin: Vector, direction: Vector
    ) -> tuple[Scalar, Scalar, Float[Array, "2"], Float[Array, "2"]]:
        """Intersects a line: the chord's middle and squared half in the endless cylinder, the
        planes of both ends, and the offset from the axis that is least between these."""
        # Across the axis, the line is one in the plane, with the same t.
        start, level = (origin - self.center)[:2], direction[:2]
        least = ALONG_AXIS * dot(direction, direction)
        t, _, square = chord(start, level, self.radius, least)
        planes = [self.center[2] - self.height / 2, self.center[2] + self.height / 2]
        low, high = (level_distance(plane, origin, direction) for plane in planes)
        ends = jnp.stack([jnp.minimum(low, high), jnp.maximum(low, high)])
        # The distance from the axis is convex in t: between the ends it is least at t_m, clipped.
        least = start + jnp.clip(t, ends[0], ends[1]) * level
        return t, square, ends, least

    def _end_coverage(self, ray: Ray, end: Crossing) -> Scalar:
        """Returns the part of the pixel that shows an end."""

        def offset(t: Scalar, origin: Vector, direction: Vector) -> Float[Array, "2"]:
            return self._end_uv(origin + t * direction)

        values = (end.t, ray.origin, ray.direction)
        derivatives = (end.gradient, ray.d_origin.T, ray.d_direction.T)
        # The offset (o + t d - c)_xy of the hit, with t as a function of the pixel, too.
        return disk_coverage(*batched_jvp(offset, values, derivatives), self.radius)

    def _side_normal(self, point: Vector) -> Vector:
        away = point - self.center
        return safe_normalise(jnp.stack([away[0], away[1], jnp.zeros_like(away[2])]))

    def _end_normal(self, point: Vector) -> Vector:
        up = jnp.where(point[2] < self.center[2], -1.0, 1.0)
        return jnp.stack([jnp.zeros_like(up), jnp.zeros_like(up), up]).astype(point.dtype)

    def _side_uv(self, point: Vector) -> Float[Array, "2"]:
        away = point - self.center
        return jnp.stack([azimuth(away), away[2]])

    def _end_uv(self, point: Vector) -> Float[Array, "2"]:
        return (point - self.center)[:2]
