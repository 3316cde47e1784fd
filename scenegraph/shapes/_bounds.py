"""Bounds of shapes: where a search for them may stop."""

import abc

import jax.numpy as jnp

from .._typing import Array, Bool, Scalar, Vector
from ..numerics import AbstractModule, dot, safe_divide, safe_norm, safe_normalise
from ..rays import Ray
from ..transforms import Ball, everywhere
from ._base import AbstractShape


class AbstractBounded(AbstractModule):
    """A shape that says where it is at most: it is searched for nowhere else.

    Shapes without bounds, such as a `Plane`, are searched for everywhere; so is a shape of your
    own that does not derive from this class.

    Example: a shape of your own with bounds.

    ```python
    class Bead(sg.shapes.AbstractSmoothShape, sg.shapes.AbstractBounded):
        ball: sg.Sphere
        is_convex: ClassVar[bool] = True
        has_uv: ClassVar[bool] = True

        def bounding_ball(self):
            return sg.transforms.Ball(self.ball.center, self.ball.radius)

        def cross(self, ray):
            return self.ball.cross(ray)

        def normal_at(self, point):
            return self.ball.normal_at(point)

        def uv_at(self, point):
            return self.ball.uv_at(point)


    bead = sg.Surface(Bead(sg.Sphere()), [0.8, 0.2, 0.1])
    ```
    """

    @abc.abstractmethod
    def bounding_ball(self) -> Ball:
        """Computes a ball that holds the shape.

        **Returns:**

        One ball, in the shape's frame. With a radius below zero or NaN, the shape is searched for
        everywhere.
        """


def bounding_ball(shape: AbstractShape | AbstractBounded) -> Ball:
    """Returns the ball of a shape; everywhere for one without bounds, or with impossible ones."""
    if not isinstance(shape, AbstractBounded):
        return everywhere()
    ball = shape.bounding_ball()
    # A negative radius, through which an optimiser may pass, bounds nothing: search everywhere.
    return Ball(ball.center, jnp.where(ball.radius >= 0, ball.radius, jnp.inf))


def ball_of_corners(lower: jnp.ndarray, upper: jnp.ndarray) -> Ball:
    """Returns the ball through the corners of a box."""
    return Ball((lower + upper) / 2, safe_norm(upper - lower) / 2)


def cone_touches(ray: Ray, ball: Ball) -> Bool[Array, ""]:
    """Tests whether the cone of a pixel may touch a ball; never false if it does.

    Candidate lists hold every ball that it is true of: each bundle with the ray touches these, too.
    """
    # With u = d / |d|: center - o = along u + a vector across it, whose length is `across`.
    speed, unit = safe_norm(ray.direction), safe_normalise(ray.direction)
    away = ball.center - ray.origin
    along = dot(away, unit)
    across = safe_norm(away - along * unit)
    # The footprint is linear in t, so that its width is convex, and below what joins both ends.
    begin, width_0 = _end_of_footprint(ray, unit, speed, jnp.minimum(ray.near, 0), -1)
    end, width_1 = _end_of_footprint(ray, unit, speed, jnp.minimum(ray.far, _LONG), 1)
    length = end - begin
    slope = safe_divide(width_1 - width_0, length)
    # Bundles are cones from the end that spreads less, whichever that is: it has to be in both.
    outside = _is_outside(along - begin, across, ball.radius, length, width_0, slope)
    return ~(outside | _is_outside(end - along, across, ball.radius, length, width_1, -slope))


# Ends of rays without an end, in `t`, and the rounding of the test, relative to distances.
_LONG, _ROUNDING = 1e6, 1e-6


def _end_of_footprint(
    ray: Ray, unit: Vector, speed: Scalar, t: Scalar, sign: int
) -> tuple[Scalar, Scalar]:
    """Returns how far along the ray a footprint begins or ends, and its width there."""
    sides = ray.d_origin + t * ray.d_direction
    along = sides @ unit
    across = safe_norm(sides - along[:, None] * unit)
    return t * speed + sign * 2 * jnp.sum(jnp.abs(along)), jnp.sum(across)


def _is_outside(
    along: Scalar, across: Scalar, radius: Scalar, length: Scalar, width: Scalar, slope: Scalar
) -> Bool[Array, ""]:
    """Tests whether a ball is outside of all within a width of a cone; NaN is not."""
    slope = jnp.maximum(slope, 0)
    # Compared as squares: this is computed for every ray and surface.
    distance_2 = along * along + across * across
    reach = radius + width + _ROUNDING * (jnp.abs(along) + across)
    # The corner of a footprint is farther away than its middle.
    whole = length * jnp.sqrt(1 + slope * slope) + reach
    # In the plane of the ball and the axis, the surface is the ray (1, slope) / sqrt(1 + slope^2).
    # A point beside that ray is (across - slope along) / sqrt(1 + slope^2) from it, negative inside
    # the cone; one before its start, sqrt(along^2 + across^2).
    beside = along + across * slope > 0
    off_cone = across - along * slope > reach * jnp.sqrt(1 + slope * slope)
    outside = jnp.where(beside, off_cone, distance_2 > reach * reach)
    return outside | (distance_2 > whole * whole)
