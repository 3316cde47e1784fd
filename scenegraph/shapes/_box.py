from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import as_float_leaf, polygon_coverage, require_finite, require_order, safe_divide
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
        require_order(self, "lower", "upper")

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
        return jnp.minimum(jnp.sum(self._cross(ray)[1]), 1)

    def pieces(self, ray: Ray) -> Hit:
        """The three faces turned to the eye; from inside, the three turned away."""
        faces, covered = self._cross(ray)
        return join_pieces(*(self._face(ray, faces, axis, covered[axis]) for axis in range(3)))

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

    def _cross(self, ray: Ray) -> tuple[Crossing, Vector]:
        """Where the planes of the faces that can be seen are passed, and how much of the pixel each
        face covers. It has four edges: to the other two, and to those turned the other way."""
        inside = self._holds_start(ray)

        def look(origin: Vector, direction: Vector) -> tuple[Vector, Float[Array, "3 4"]]:
            speed, near, far = self._ways(origin, direction)
            edges = *_order(speed, jnp.where(inside, -far, near)), *_outline(speed, near, far)
            return jnp.where(inside, far, near) / speed, jnp.stack(edges, axis=1)

        (t, margins), (slope, slopes) = by_pixel(look, ray)
        faces = Crossing(t, slope)
        return faces, jax.vmap(polygon_coverage)(margins, slopes) * self._reach(ray, faces)

    def _reach(self, ray: Ray, faces: Crossing) -> Scalar:
        inside = self._holds_start(ray)
        seen = jnp.where(inside, jnp.argmin(faces.t), jnp.argmax(faces.t))
        return within_reach(ray, Crossing(faces.t[seen], faces.slope[seen]))

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


def _outline(speed: Vector, near: Vector, far: Vector) -> tuple[Vector, Vector]:
    """For every axis: how long after a line enters it does it leave the others.

    Multiplied by the speeds, which makes it linear over the picture of a pinhole camera.
    """

    def against(turn: int) -> Vector:
        return jnp.roll(far, turn) * speed - near * jnp.roll(speed, turn)

    return against(-1), against(-2)


def _order(speed: Vector, way: Vector) -> tuple[Vector, Vector]:
    """For every axis: how much later than on both others a way is gone, times the speeds."""

    def against(turn: int) -> Vector:
        return way * jnp.roll(speed, turn) - jnp.roll(way, turn) * speed

    return against(-1), against(-2)
