from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    disk_coverage,
    dot,
    require_finite,
    require_positive,
    safe_norm,
    safe_normalise,
    safe_sqrt,
    slab_coverage,
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


# The height of an end's ellipse, in pixels, up to which it is seen as a line.
_LOW = 0.05


class _Line(NamedTuple):
    """The crossing of a line and a cylinder; its derivatives are those by the pixel."""

    t: Scalar  # the middle of the chord in the endless cylinder
    square: Scalar  # of half of it
    offset: Float[Array, "2"]  # from the axis, in the middle
    height: Scalar  # above the cylinder's middle, there
    ends: Float[Array, "2"]  # the planes of both ends
    least: Float[Array, "2"]  # the offset from the axis that is least between these


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
        (side, end), covered, level = self._cross(ray)
        ended = jnp.minimum(self._end_coverage(ray, end), covered)
        ended = jnp.where(level, 0, ended)
        on_end = smooth_part(ray, end, self._end_normal, self._end_uv, ended)
        on_side = smooth_part(ray, side, self._side_normal, self._side_uv, covered - ended)
        return join_parts(on_side, on_end)

    def _cross(self, ray: Ray) -> tuple[tuple[Crossing, Crossing], Scalar, Bool[Array, ""]]:
        """Crosses side and end; returns also the coverage, and whether ends are seen as lines."""
        line, gradient = pixel_jvp(self._intersect_line, ray)
        middle = Crossing(line.t, gradient.t)
        enter, leave = round_crossings(middle, line.square, gradient.square)
        begin, finish = (Crossing(line.ends[i], gradient.ends[i]) for i in (0, 1))
        # An end is an ellipse with the short half axis r |d_z| / |d_xy|. One that is much lower
        # than a pixel is a line, which a pixel has on both sides.
        tall = self.radius * jnp.abs(ray.direction[2])
        pixel = jnp.sum(jnp.abs(gradient.height)) * safe_norm(ray.direction[:2])
        level = tall < _LOW * pixel
        inside = jnp.maximum(enter.t, jnp.where(level, enter.t, begin.t)) <= ray.near
        side, end = choose(inside, leave, enter), choose(inside, finish, begin)
        # A pixel on the rim may see the side where its own line has passed an end.
        held = choose(side.t < begin.t, begin, choose(side.t > finish.t, finish, side))
        side = choose(level, side, held)
        # In the endless cylinder and between the ends: the line is in both from the later of the
        # two entries to the earlier of the two exits.
        later = side.t > end.t
        seen = choose((later ^ inside) | level, side, end)
        # On the outline, `least` is as long as the radius.
        covered = disk_coverage(line.least, gradient.least, self.radius)
        flat = disk_coverage(line.offset, gradient.offset, self.radius)
        margins = jnp.stack([self.height / 2 - line.height, self.height / 2 + line.height])
        flat *= slab_coverage(margins, jnp.stack([-gradient.height, gradient.height]))
        covered = jnp.where(level, flat, covered)
        return (side, end), covered * within_reach(ray, seen), level

    def _intersect_line(self, origin: Vector, direction: Vector) -> _Line:
        """Intersects a line with the endless cylinder and the planes of both ends."""
        # Across the axis, the line is one in the plane, with the same t.
        start, level = (origin - self.center)[:2], direction[:2]
        squared = jnp.maximum(dot(level, level), ALONG_AXIS * dot(direction, direction))
        t, offset, square = chord(start, level, squared, self.radius)
        planes = [self.center[2] - self.height / 2, self.center[2] + self.height / 2]
        low, high = (level_distance(plane, origin, direction) for plane in planes)
        ends = jnp.stack([jnp.minimum(low, high), jnp.maximum(low, high)])
        # The distance from the axis is convex in t: between the ends it is least at t_m, clipped.
        nearest = start + jnp.clip(t, ends[0], ends[1]) * level
        height = origin[2] + t * direction[2] - self.center[2]
        return _Line(t, square, offset, height, ends, nearest)

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
