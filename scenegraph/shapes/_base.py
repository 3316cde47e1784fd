import abc
from collections.abc import Callable

import jax
import jax.numpy as jnp
from equinox import AbstractClassVar

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import AbstractModule, filtered_sqrt, safe_divide, slab_coverage
from ..rays import Hit, push, Ray


class AbstractShape(AbstractModule):
    """A surface in its own frame. It answers for a cone: where it is, and how much it covers.

    A shape consists of one or more smooth pieces, such as the three faces of a box that the eye can
    see. Inside the outline the pieces cover the pixel together, without overlap.
    """

    is_convex: AbstractClassVar[bool]
    has_uv: AbstractClassVar[bool]

    @abc.abstractmethod
    def pieces(self, ray: Ray) -> Hit:
        """Where a ray meets every smooth piece.

        **Arguments:**

        - `ray`: one ray, in the shape's frame.

        **Returns:**

        A hit with a leading axis over pieces. One that the pixel does not touch has no coverage,
        and finite numbers; one that it only touches is seen at the nearest point of its outline.
        """

    @abc.abstractmethod
    def coverage(self, ray: Ray) -> Scalar:
        """The part of a cone that the shape stops between the ray's `near` and `far`.

        **Arguments:**

        - `ray`: one ray, in the shape's frame: towards a pixel, or towards a light.

        **Returns:**

        Between 0 and 1.
        """

    def intersect(self, ray: Ray) -> Hit:
        """Where a ray meets the shape.

        **Arguments:**

        - `ray`: one ray, in the shape's frame.

        **Returns:**

        The hit on the piece that covers most of the pixel, with the coverage of all of them.
        """
        pieces = self.pieces(ray)
        most = jnp.argmax(pieces.coverage)
        total = jnp.minimum(jnp.sum(pieces.coverage), 1)
        hit = jax.tree.map(lambda x: x[most], pieces)
        return Hit(
            hit.t,
            hit.point,
            hit.normal,
            hit.uv,
            hit.duv,
            total,
            d_point=hit.d_point,
            place=hit.place,
            d_place=hit.d_place,
        )


class Crossing(AbstractModule):
    """Where a ray crosses a smooth surface, and how that changes from pixel to pixel.

    **Arguments:**

    - `t`: along the ray.
    - `slope`: its derivatives by the pixel's x and y.
    """

    t: Float[Array, "*rays"]
    slope: Float[Array, "*rays 2"]


def choose(condition: Bool[Array, ""], one: Crossing, other: Crossing) -> Crossing:
    """One of two crossings.

    **Arguments:**

    - `condition`: whether it is the first.
    - `one`, `other`: the crossings.

    **Returns:**

    The one chosen.
    """
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


def smooth_piece(
    ray: Ray,
    crossing: Crossing,
    normal: Callable[[Vector], Vector],
    uv: Callable[[Vector], Float[Array, "2"]],
    coverage: Scalar,
) -> Hit:
    """The hit on one smooth piece, with its footprint.

    **Arguments:**

    - `ray`: one ray.
    - `crossing`: of the ray and the piece.
    - `normal`, `uv`: at a point of the piece.
    - `coverage`: of the pixel by the piece.

    **Returns:**

    One hit.
    """
    t, point = crossing.t, ray.at(crossing.t)
    d_point = ray.d_origin + t * ray.d_direction + crossing.slope[:, None] * ray.direction
    place, duv = push(uv, (point,), (d_point.T,))
    return Hit(t, point, normal(point), place, duv.T, coverage, d_point=d_point)


def join_pieces(*hits: Hit) -> Hit:
    """Several hits as one with a leading axis.

    **Arguments:**

    - `hits`: of one ray.

    **Returns:**

    The pieces.
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *hits)


def within_reach(ray: Ray, crossing: Crossing) -> Scalar:
    """The part of a pixel in which a surface lies between the ray's `near` and `far`.

    It is worked out in `1 / t`, which is linear over the picture of a plane, and passes through
    zero where the surface goes out of sight at the horizon.

    **Arguments:**

    - `ray`: one ray.
    - `crossing`: of the ray and the surface.

    **Returns:**

    Between 0 and 1.
    """
    one = jnp.ones_like(ray.near)
    inverse = safe_divide(one, crossing.t)
    slope = -(inverse**2) * crossing.slope
    nearest = safe_divide(one, jnp.maximum(ray.near, 1e-12))
    margins = jnp.stack([nearest - inverse, inverse - safe_divide(one, ray.far)])
    return slab_coverage(margins, jnp.stack([-slope, slope]))


def round_crossings(
    middle: Crossing, square: Scalar, square_slope: Float[Array, "2"]
) -> tuple[Crossing, Crossing]:
    """Where a ray enters and leaves something round.

    **Arguments:**

    - `middle`: of the chord.
    - `square`, `square_slope`: of half the chord's length; negative where the ray misses.

    **Returns:**

    `(enter, leave)`, as means over the part of the pixel that does not miss, which keeps their
    derivatives finite at the outline.
    """
    half, slope = filtered_sqrt(square, square_slope)
    enter = Crossing(middle.t - half, middle.slope - slope)
    return enter, Crossing(middle.t + half, middle.slope + slope)


def first_ahead(ray: Ray, enter: Crossing, leave: Crossing) -> Crossing:
    """Of two crossings the first that is not too near.

    **Arguments:**

    - `ray`: one ray.
    - `enter`, `leave`: in order.

    **Returns:**

    `enter`, or `leave` where the ray begins between both.
    """
    return choose(enter.t > ray.near, enter, leave)


def away_from_zero(x: Float[Array, "*n"], least: Scalar | float) -> Float[Array, "*n"]:
    """A number whose size is at least `least`, with the derivative of the number itself.

    **Arguments:**

    - `x`: numbers of any shape.
    - `least`: positive.

    **Returns:**

    `x`, or plus or minus `least`.
    """
    nudged = jnp.where(jnp.abs(x) < least, jnp.where(x < 0, -least, least), x)
    return x + jax.lax.stop_gradient(nudged - x)
