from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    half_plane_coverage,
    max_or_nan,
    min_or_nan,
    polygon_coverage,
    require_finite,
    require_order,
    safe_divide,
)
from ..rays import Hit, pixel_jvp, Ray, Span
from ..transforms import Ball
from ._base import AbstractShape, away_from_zero, Crossing, join_parts, smooth_part
from ._bounds import AbstractBounded, ball_of_corners


_LEAST = 1e-9


class Slabs(NamedTuple):
    """A line's speeds across the three slabs, and its distances to their near and far sides."""

    speed: Vector
    near: Vector
    far: Vector
    about: Bool[Array, "3"]  # those in which the eye is, and lines run in both senses


class Box(AbstractShape, AbstractBounded):
    """An axis-aligned box: a surface, or the bounds of a volume.

    On every face, `uv` is the other two coordinates, in their order.

    **Arguments:**

    - `lower`, `upper`: two opposite corners, `lower` below `upper` in every coordinate.
    """

    lower: Vector = eqx.field(converter=as_float_leaf, default=(-1.5, -1.5, -1.5))
    upper: Vector = eqx.field(converter=as_float_leaf, default=(1.5, 1.5, 1.5))

    is_convex: ClassVar[bool] = True
    has_uv: ClassVar[bool] = True

    def __check_init__(self):
        require_finite(self, "lower", "upper")
        require_order(self, "lower", "upper")

    def bounding_ball(self) -> Ball:
        return ball_of_corners(self.lower, self.upper)

    def span(self, ray: Ray) -> Span:
        """Clips a ray to the box, within the ray's own `near` and `far`.

        If the ray misses, the span is an empty one at its `near`.
        """
        # The slab test: on each axis the line lies between the planes for t in [enters, leaves].
        parallel = ray.direction == 0
        first = safe_divide(self.lower - ray.origin, ray.direction)
        second = safe_divide(self.upper - ray.origin, ray.direction)
        inside = (ray.origin > self.lower) & (ray.origin < self.upper)
        # A line along the planes of an axis is between them all the time, or never.
        always = jnp.where(inside, -jnp.inf, jnp.inf)
        enters = jnp.where(parallel, always, jnp.minimum(first, second))
        leaves = jnp.where(parallel, -always, jnp.maximum(first, second))
        near = jnp.maximum(max_or_nan(enters, 0), ray.near)
        far = jnp.minimum(min_or_nan(leaves, 0), ray.far)
        hit = far > near
        return Span(jnp.where(hit, near, ray.near), jnp.where(hit, far, ray.near))

    def coverage(self, ray: Ray) -> Scalar:
        # A line is stopped if it is in the box somewhere between both ends: it enters the box
        # before `far`, and leaves all slabs beyond `near`. Lines to all sides of an eye inside are.
        inside = self._holds_eye(ray) & ~jnp.all(self._is_steady(ray))
        _, covered, (beyond, before) = self._cross(ray, inside, lambda slabs: slabs.far)
        return _within(jnp.sum(_within(covered, before)), jnp.min(beyond))

    def parts(self, ray: Ray) -> Hit:
        # The three faces turned to the eye; from inside, the three turned away.
        inside = self._holds_eye(ray)
        seen = lambda slabs: jnp.where(inside, slabs.far, slabs.near)
        faces, covered, (beyond, before) = self._cross(ray, inside, seen)
        covered = _within(covered, jnp.maximum(beyond + before - 1, 0))
        return join_parts(*(self._face(ray, faces, axis, covered[axis]) for axis in range(3)))

    def _face(self, ray: Ray, faces: Crossing, axis: int, coverage: Scalar) -> Hit:
        middle = (self.lower[axis] + self.upper[axis]) / 2
        others = [other for other in range(3) if other != axis]

        def normal(point: Vector) -> Vector:
            side = jnp.where(point[axis] < middle, -1.0, 1.0)
            return jnp.stack([side if i == axis else 0 * side for i in range(3)])

        def uv(point: Vector) -> Float[Array, "2"]:
            return jnp.stack([point[other] for other in others])

        def within(low: Vector, high: Vector) -> tuple[Vector, Vector]:
            # The plane of a face that is seen from aside is crossed far outside of the face.
            first, last = (jnp.clip(end, self.lower, self.upper) for end in (low, high))
            across = jnp.arange(3) == axis
            return jnp.where(across, low, first), jnp.where(across, high, last)

        crossing = Crossing(faces.t[axis], faces.gradient[axis])
        return smooth_part(ray, crossing, normal, uv, coverage, within)

    def _holds_eye(self, ray: Ray) -> Bool[Array, ""]:
        """Returns true if a ray begins in the box."""
        # All slabs are entered at n_i / v_i before `near`. So are those of a box behind the ray,
        # whose far faces are out of reach.
        slabs = self._slabs(ray.origin, ray.direction, jnp.ones(3, bool))
        return jnp.max(slabs.near / slabs.speed) <= ray.near

    def _cross(
        self, ray: Ray, inside: Bool[Array, ""], last: Callable[[Slabs], Vector]
    ) -> tuple[Crossing, Float[Array, "3"], Float[Array, "2 3"]]:
        """Crosses the planes of the three visible faces; returns what they cover of the pixel.

        Returns also the parts of the pixel in which planes at distances `last` are beyond `near`,
        and in which the faces are before `far`.
        """

        def intersect_line(origin: Vector, direction: Vector) -> tuple[Vector, Array, Array]:
            slabs = self._slabs(origin, direction, inside | self._is_steady(ray))
            # From outside, faces are seen where slabs are entered; from inside, where left. Slabs
            # about the eye are entered behind it.
            enters = slabs.near / slabs.speed
            enters = jnp.where(slabs.near > 0, enters, -jnp.abs(enters))
            t = jnp.where(inside, slabs.far / slabs.speed, enters)
            # A plane at n / v is beyond `near` if n - near v > 0, before `far` if v - n / far > 0.
            first = jnp.where(inside, slabs.far, slabs.near)
            before = slabs.speed - first * safe_divide(jnp.ones_like(ray.far), ray.far)
            ends = jnp.stack([last(slabs) - ray.near * slabs.speed, before])
            return t, _edges_of_faces(inside, slabs), ends

        values, gradients = pixel_jvp(intersect_line, ray)
        (t, margins, ends), (gradient, d_margins, d_ends) = values, gradients
        covered = jax.vmap(polygon_coverage)(margins, d_margins)
        # A ray without a footprint, through a corner, is half on each of its three faces.
        total = jnp.sum(covered)
        covered *= jnp.where(total > _SHARED, 1 / jnp.maximum(total, 1), 1)
        within = jax.vmap(jax.vmap(half_plane_coverage))(ends, d_ends)
        return Crossing(t, gradient), covered, within

    def _is_steady(self, ray: Ray) -> Bool[Array, "3"]:
        """Returns along which axes direction, and not origin, tells the near side of the slab.

        Camera rays have one origin, and may run along a face in both senses within a pixel; shadow
        rays start from all over their footprint.
        """
        turn = jnp.sum(jnp.abs(ray.d_direction), axis=0) / 2
        shift = jnp.sum(jnp.abs(ray.d_origin), axis=0) / 2
        outside = jnp.maximum(self.lower - ray.origin, ray.origin - self.upper)
        return (jnp.abs(ray.direction) >= turn) | (jnp.abs(outside) < shift)

    def _slabs(self, origin: Vector, direction: Vector, by_direction: Bool[Array, "3"]) -> Slabs:
        """Returns how a line crosses slabs, whose near sides origin or direction tells."""
        speed = away_from_zero(direction, _LEAST)
        # With v_i = s_i d_i, the line enters slab i at t = n_i / v_i and leaves it at f_i / v_i.
        seen = jnp.where(origin > self.upper, -1.0, 1.0)
        sense = jnp.where(by_direction, jnp.sign(speed), seen)
        below, above = sense * (self.lower - origin), sense * (self.upper - origin)
        near, far = jnp.minimum(below, above), jnp.maximum(below, above)
        return Slabs(sense * speed, near, far, ~by_direction & (near <= 0))


# What two coverages of one edge differ by, at most: they count edges along sides of pixels apart.
_SAME = 1e-4


def _within(covered: Array, part: Array) -> Array:
    """Cuts coverage off at the part of the pixel in which it can be."""
    return jnp.where(part > 0, jnp.minimum(covered, part + _SAME), 0)


# Faces cover more than this, in all, only where some of them share a point: beyond rounding.
_SHARED = 1.001


# A line enters slab i at n_i / v_i and leaves it at f_i / v_i. It hits face i if, for both other
# axes, it enters slab i before it leaves slab j,
#     f_j v_i - n_i v_j > 0,
# and enters slab i after slab j,
#     n_i v_j - n_j v_i > 0    (from inside: leaves it before slab j, f_j v_i - f_i v_j > 0).
# Times v_i v_j, as here, the margins are linear over the picture of a pinhole camera. An eye within
# slab i (n_i < 0) sees neither of its faces, and the edges of face j with both,
#     f_i v_j - n_j v_i > 0    and    n_j v_i - n_i v_j > 0,
# of which the second takes the place of that of (i, j), which says nothing, where lines of a pixel
# run in both senses along axis i.


def _edges_of_faces(inside: Bool[Array, ""], slabs: Slabs) -> Float[Array, "3 4"]:
    """Returns for every face the margins of its four edges, positive inside."""
    speed, near, far, about = slabs
    first = jnp.where(inside, -far, near)
    before, after = [], []
    for turn in (-1, -2):
        v, other, f = (jnp.roll(x, turn) for x in (speed, first, far))
        before.append(first * v - other * speed)
        after.append(f * speed - near * v)
    # Neither face of a slab about the eye is seen.
    return jnp.where(about, -1, jnp.stack([*before, *after])).T
