"""Bounds of shapes: where a search for them may stop."""

import abc

import jax.numpy as jnp

from .._typing import Array, Bool, Scalar
from ..numerics import AbstractModule, dot, safe_divide, safe_norm
from ..rays import Ray
from ..transforms import Ball, everywhere
from ._base import AbstractShape


class AbstractBounded(AbstractModule):
    """A shape that says where it is at most: searches for it look nowhere else.

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

        One ball, in the shape's frame.
        """


def bounding_ball(shape: AbstractShape) -> Ball:
    """Returns the ball of a shape; everywhere for one without bounds."""
    return shape.bounding_ball() if isinstance(shape, AbstractBounded) else everywhere()


def ball_of_corners(lower: jnp.ndarray, upper: jnp.ndarray) -> Ball:
    """Returns the ball through the corners of a box."""
    return Ball((lower + upper) / 2, safe_norm(upper - lower) / 2)


def cone_touches(ray: Ray, ball: Ball) -> Bool[Array, ""]:
    """Tests whether the cone of a pixel may touch a ball; never false if it does."""
    speed = safe_norm(ray.direction)
    middle = safe_divide(dot(ball.center - ray.origin, ray.direction), speed**2)
    clip = lambda t: jnp.clip(t, ray.near, ray.far)

    def width(t: Scalar) -> Scalar:
        sides = ray.d_origin + t * ray.d_direction
        return safe_norm(sides[0]) + safe_norm(sides[1])

    # A footprint is widest at one end of the part of the ray that passes the ball.
    reach = safe_divide(ball.radius, speed)
    widest = jnp.maximum(width(clip(middle - reach)), width(clip(middle + reach)))
    return safe_norm(ray.at(clip(middle)) - ball.center) <= ball.radius + widest
