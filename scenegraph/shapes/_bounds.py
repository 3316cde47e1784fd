"""Bounds of shapes: where a search for them may stop."""

import abc

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar
from ..numerics import AbstractModule, safe_norm
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

    A box about the ball is touched, too, in a walk through a tree of such boxes.
    """
    # The axis is nearest to the centre at t = (center - o) . d / |d|^2, within the ray.
    # Axis by axis: sums over short arrays are slow on CPUs.
    away, (u, v, w) = ball.center - ray.origin, ray.direction
    x, y, z = away
    square = u * u + v * v + w * w
    inverse = 1 / jnp.maximum(square, jnp.finfo(square.dtype).tiny)
    t = jnp.clip((x * u + y * v + z * w) * inverse, jnp.minimum(ray.near, 0), ray.far)
    x, y, z = x - t * u, y - t * v, z - t * w
    gap = x * x + y * y + z * z
    # A pixel reaches half its width w there, which grows by s per length. It touches the ball at a
    # distance l along the ray only if sqrt(gap^2 + l^2) <= r + (w + s l) / 2. Where s <= 2, the
    # least of sqrt(gap^2 + l^2) - s l / 2 is gap sqrt(1 - s^2 / 4) >= gap (1 - s^2 / 4).
    less = jnp.maximum(1 - _squared_width(ray.d_direction) / 4 * inverse, 0)
    reach = ball.radius + jnp.sqrt(_squared_width(ray.d_origin + t * ray.d_direction))
    # Written so that a comparison with NaN says "touches".
    return ~(gap * less * less > reach * reach)


def _squared_width(sides: Float[Array, "2 3"]) -> Scalar:
    """Returns the square of at least the sum of a footprint's sides: twice a pixel's reach."""
    # (|a| + |b|)^2 <= 2 (|a|^2 + |b|^2), which takes one root and not two.
    (a, b, c), (d, e, f) = sides**2
    return 2 * (a + b + c + d + e + f)
