import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    half_plane_coverage,
    require_finite,
    safe_divide,
    slab_coverage,
)
from ..rays import by_pixel, Hit, Ray, Span
from ._base import AbstractShape, away_from_zero, Crossing, join_pieces, smooth_piece, within_reach


_LEAST = 1e-9


class Box(AbstractShape):
    """An axis-aligned box: a surface, or what bounds a volume.

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

    def span(self, ray: Ray) -> Span:
        """The part of a ray inside the box, cut with the ray's own `near` and `far`.

        **Arguments:**

        - `ray`: one ray, in the box's frame.

        **Returns:**

        The span; one that is empty and lies at the ray's `near` if the ray misses.
        """
        parallel = ray.direction == 0
        first = safe_divide(self.lower - ray.origin, ray.direction)
        second = safe_divide(self.upper - ray.origin, ray.direction)
        inside = (ray.origin > self.lower) & (ray.origin < self.upper)
        enters = jnp.where(
            parallel, jnp.where(inside, -jnp.inf, jnp.inf), jnp.minimum(first, second)
        )
        leaves = jnp.where(
            parallel, jnp.where(inside, jnp.inf, -jnp.inf), jnp.maximum(first, second)
        )
        near = jnp.maximum(jnp.max(enters), ray.near)
        far = jnp.minimum(jnp.min(leaves), ray.far)
        hit = far > near
        return Span(jnp.where(hit, near, ray.near), jnp.where(hit, far, ray.near))

    def coverage(self, ray: Ray) -> Scalar:
        return self._cross(ray)[1]

    def pieces(self, ray: Ray) -> Hit:
        """The three faces turned to the eye; from inside, the three turned away."""
        faces, covered = self._cross(ray)
        margins, slopes = self._against(ray)
        parts = jnp.stack([_corner(margins[i], slopes[i]) for i in range(3)])
        shares = covered * parts / (jnp.sum(parts) + _LEAST)
        return join_pieces(*(self._face(ray, faces, axis, shares[axis]) for axis in range(3)))

    def _face(self, ray: Ray, faces: Crossing, axis: int, coverage: Scalar) -> Hit:
        middle = (self.lower[axis] + self.upper[axis]) / 2
        others = [other for other in range(3) if other != axis]

        def normal(point: Vector) -> Vector:
            side = jnp.where(point[axis] < middle, -1.0, 1.0)
            return jnp.stack([side if i == axis else 0 * side for i in range(3)])

        def uv(point: Vector) -> Float[Array, "2"]:
            return jnp.stack([point[other] for other in others])

        crossing = Crossing(faces.t[axis], faces.slope[axis])
        return smooth_piece(ray, crossing, normal, uv, coverage)

    def _cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        """Where the planes of the faces that can be seen are passed, and the part covered.

        The outline is a hexagon, with an edge between every face turned to the eye and every face
        turned away.
        """
        inside = self._holds_start(ray)

        def look(origin: Vector, direction: Vector) -> tuple[Vector, Float[Array, "3 2"]]:
            speed, near, far = self._ways(origin, direction)
            return jnp.where(inside, far, near) / speed, _outline(speed, near, far)

        (t, outline), (slope, slopes) = by_pixel(look, ray)
        seen = jnp.where(inside, jnp.argmin(t), jnp.argmax(t))
        covered = math.prod([slab_coverage(outline[i], slopes[i]) for i in range(3)])
        first = Crossing(t[seen], slope[seen])
        return Crossing(t, slope), covered * within_reach(ray, first)

    def _against(self, ray: Ray) -> tuple[Float[Array, "3 2"], Float[Array, "3 2 2"]]:
        """For each face that can be seen, how much of the pixel shows it and not another: margins
        against both others, and their slopes."""
        inside = self._holds_start(ray)

        def look(origin: Vector, direction: Vector) -> Float[Array, "3 2"]:
            speed, near, far = self._ways(origin, direction)
            return _order(speed, jnp.where(inside, -far, near))

        return by_pixel(look, ray)

    def _ways(self, origin: Vector, direction: Vector) -> tuple[Vector, Vector, Vector]:
        """Along each axis: a line's speed, and how far it is to the face turned to it and to the
        other, both in the line's own sense."""
        speed = away_from_zero(direction, _LEAST)
        sense = jnp.sign(speed)
        below, above = sense * (self.lower - origin), sense * (self.upper - origin)
        return jnp.abs(speed), jnp.minimum(below, above), jnp.maximum(below, above)

    def _holds_start(self, ray: Ray) -> Bool[Array, ""]:
        speed, near, _ = self._ways(ray.origin, ray.direction)
        return jnp.max(near / speed) <= ray.near


def _outline(speed: Vector, near: Vector, far: Vector) -> Float[Array, "3 2"]:
    """For every two axes: how long after it enters the one the ray leaves the other, both ways.

    Multiplied by the speeds, which makes it linear over the picture of a pinhole camera.
    """
    next_speed, next_near, next_far = (jnp.roll(x, -1) for x in (speed, near, far))
    one = far * next_speed - next_near * speed
    other = next_far * speed - near * next_speed
    return jnp.stack([one, other], axis=1)


def _order(speed: Vector, way: Vector) -> Float[Array, "3 2"]:
    """For every axis: how much later than on both others a way is gone, times the speeds."""

    def against(turn: int) -> Vector:
        return way * jnp.roll(speed, turn) - jnp.roll(way, turn) * speed

    return jnp.stack([against(-1), against(-2)], axis=1)


def _corner(margins: Float[Array, "2"], slopes: Float[Array, "2 2"]) -> Scalar:
    """The part of a pixel inside of two edges."""
    return half_plane_coverage(margins[0], slopes[0]) * half_plane_coverage(margins[1], slopes[1])
