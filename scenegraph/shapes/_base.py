import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox import AbstractClassVar

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import AbstractModule, dot, filtered_sqrt, magnitude, safe_divide, slab_coverage
from ..rays import batched_jvp, Hit, Ray


class Crossing(AbstractModule):
    """The ray parameter at which a ray crosses a smooth surface, and its derivatives.

    **Arguments:**

    - `t`: the ray parameter.
    - `gradient`: derivatives of `t` by the pixel's x and y.
    """

    t: Float[Array, "*rays"]
    gradient: Float[Array, "*rays 2"]


class AbstractShape(AbstractModule):
    """A surface in its own frame, which is intersected with one cone at a time.

    A shape consists of smooth parts, such as the three faces of a box that the eye can see. Inside
    the outline the parts cover the pixel together, without overlap. A shape of one part is easier
    to write as an `AbstractSmoothShape`.

    A subclass declares two class attributes: `is_convex`, true if the surface cannot cast a shadow
    on itself, and `has_uv`, true if `uv` are surface coordinates that patterns can use.
    """

    is_convex: AbstractClassVar[bool]
    has_uv: AbstractClassVar[bool]

    @abc.abstractmethod
    def parts(self, ray: Ray) -> Hit:
        """Intersects a ray with every smooth part; see `smooth_part` and `join_parts`.

        **Arguments:**

        - `ray`: one ray, in the shape's frame.

        **Returns:**

        A hit with a leading axis over parts. A part outside the pixel has coverage 0 and finite
        numbers; one that overlaps the pixel but not its middle is hit at the nearest point of its
        outline.
        """

    @abc.abstractmethod
    def coverage(self, ray: Ray) -> Scalar:
        """Computes the part of a cone that the shape blocks between the ray's `near` and `far`.

        **Arguments:**

        - `ray`: one ray in the shape's frame: a camera ray or a shadow ray.

        **Returns:**

        A scalar between 0 and 1.
        """

    def intersect(self, ray: Ray) -> Hit:
        """Intersects a ray with the shape as a whole.

        **Arguments:**

        - `ray`: one ray, in the shape's frame.

        **Returns:**

        The hit on the part that covers most of the pixel, with the coverage of all of them.
        """
        parts = self.parts(ray)
        most = jnp.argmax(parts.coverage)
        # Parts do not overlap: their coverages add, to one but for rounding.
        total = jnp.minimum(jnp.sum(parts.coverage), 1)
        hit = jax.tree.map(lambda x: x[most], parts)
        return eqx.tree_at(lambda hit: hit.coverage, hit, total)


class AbstractSmoothShape(AbstractShape):
    """A shape of one smooth part, given by three methods: `cross`, `normal_at` and `uv_at`.

    Derivatives by the pixel come from `pixel_jvp`, and coverage from `scenegraph.numerics`:
    `half_plane_coverage`, `slab_coverage`, `polygon_coverage` and `disk_coverage`.

    Example: a ring in the plane z = 0.

    ```python
    class Ring(sg.shapes.AbstractSmoothShape):
        inner: jax.Array = eqx.field(converter=jnp.asarray)
        outer: jax.Array = eqx.field(converter=jnp.asarray)
        is_convex: ClassVar[bool] = True
        has_uv: ClassVar[bool] = True

        def cross(self, ray):
            def intersect_line(origin, direction):
                t = sg.numerics.safe_divide(-origin[2], direction[2])
                return t, (origin + t * direction)[:2]

            (t, offset), (dt, d_offset) = sg.rays.pixel_jvp(intersect_line, ray)
            disk = lambda radius: sg.numerics.disk_coverage(offset, d_offset, radius)
            crossing = sg.shapes.Crossing(t, dt)
            covered = disk(self.outer) - disk(self.inner)
            return crossing, covered * sg.shapes.within_reach(ray, crossing)

        def normal_at(self, point):
            return jnp.array([0.0, 0.0, 1.0])

        def uv_at(self, point):
            return point[:2]


    ring = sg.Surface(Ring(0.5, 1.0), [0.8, 0.2, 0.1])
    ```
    """

    @abc.abstractmethod
    def cross(self, ray: Ray) -> tuple[Crossing, Scalar]:
        """Intersects a ray with the surface.

        **Arguments:**

        - `ray`: one ray, in the shape's frame.

        **Returns:**

        `(crossing, coverage)`: the crossing, for a ray that misses the one at the nearest point of
        the outline; and the part of the pixel that the surface covers between the ray's `near` and
        `far`, from 0 to 1. All numbers and derivatives are finite for every ray.
        """

    @abc.abstractmethod
    def normal_at(self, point: Vector) -> Vector:
        """Computes the surface's normal.

        **Arguments:**

        - `point`: a point of the surface, in the shape's frame.

        **Returns:**

        A unit vector, to either side.
        """

    @abc.abstractmethod
    def uv_at(self, point: Vector) -> Float[Array, "2"]:
        """Computes the surface coordinates of a point.

        **Arguments:**

        - `point`: a point of the surface, in the shape's frame.

        **Returns:**

        Two coordinates, differentiable by the point; any numbers if `has_uv` is false.
        """

    def coverage(self, ray: Ray) -> Scalar:
        return _cross(self, ray)[1]

    def parts(self, ray: Ray) -> Hit:
        crossing, covered = _cross(self, ray)
        return join_parts(smooth_part(ray, crossing, self.normal_at, self.uv_at, covered))


@eqx.filter_jit
def _cross(shape: AbstractSmoothShape, ray: Ray) -> tuple[Crossing, Scalar]:
    return shape.cross(ray)


def smooth_part(
    ray: Ray,
    crossing: Crossing,
    normal: Callable[[Vector], Vector],
    uv: Callable[[Vector], Float[Array, "2"]],
    coverage: Scalar,
    within: Callable[[Vector, Vector], tuple[Vector, Vector]] | None = None,
) -> Hit:
    """Makes the hit on one smooth part, with its footprint.

    **Arguments:**

    - `ray`: one ray.
    - `crossing`: the crossing of the ray and the part.
    - `normal`, `uv`: functions of a point that return the unit normal and the coordinates there.
    - `coverage`: the part of the pixel that is covered, between 0 and 1.
    - `within`: a function of the lower and the upper corner of the box that holds the pixel's
      footprint on the surface, which returns the corners of what the part has of it; `None` where
      footprints are on the part already.

    **Returns:**

    One hit.
    """
    t, point = crossing.t, ray.at(crossing.t)
    # p = o + t d, differentiated by the pixel: dp = do + t dd + dt d.
    d_point = ray.d_origin + t * ray.d_direction + crossing.gradient[:, None] * ray.direction
    if within is not None:
        half = jnp.sum(magnitude(d_point), axis=0) / 2
        low, high = within(point - half, point + half)
        t, point = _moved(ray, t, point, (low + high) / 2)
        # Of a small part, or one seen from aside, the pixel's sides are no longer than it is.
        d_point *= safe_divide(high - low, 2 * half)
    coordinates, duv = batched_jvp(uv, (point,), (d_point.T,))
    return Hit(t, point, normal(point), coordinates, duv.T, coverage, d_point=d_point)


def _moved(ray: Ray, t: Scalar, point: Vector, middle: Vector) -> tuple[Scalar, Vector]:
    """Returns the middle of what is seen of a part, and where, if it is not the crossing itself."""
    # A point p is seen at t = (p - o) . d / |d|^2.
    squared = dot(ray.direction, ray.direction)
    seen = safe_divide(dot(middle - ray.origin, ray.direction), squared)
    return jnp.where(jnp.all(middle == point), t, seen), middle


def join_parts(*hits: Hit) -> Hit:
    """Stacks the hits on several parts.

    **Arguments:**

    - `hits`: hits of one ray.

    **Returns:**

    One hit with a leading axis over parts.
    """
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *hits)


@jax.jit
def within_reach(ray: Ray, crossing: Crossing) -> Scalar:
    """Computes the part of a pixel in which a surface lies between the ray's `near` and `far`.

    It is computed in `1 / t`, which is linear over the picture of a plane, and passes through zero
    where the surface goes out of sight at the horizon.

    **Arguments:**

    - `ray`: one ray.
    - `crossing`: the crossing of the ray and the surface.

    **Returns:**

    A scalar between 0 and 1.
    """
    one = jnp.ones_like(ray.near)
    # Two edges: 1/near - 1/t >= 0 and 1/t - 1/far >= 0, with d(1/t) = -dt / t^2.
    inverse = safe_divide(one, crossing.t)
    gradient = -(inverse**2) * crossing.gradient
    nearest = safe_divide(one, jnp.maximum(ray.near, 1e-12))
    margins = jnp.stack([nearest - inverse, inverse - safe_divide(one, ray.far)])
    # The opposite gradient gives as much: a pixel looks alike from both sides.
    return slab_coverage(margins, jnp.stack([gradient, gradient]))


# --- Internal: what round shapes share


def choose(condition: Bool[Array, ""], one: Crossing, other: Crossing) -> Crossing:
    """Returns the first crossing where the condition holds, else the second."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), one, other)


# The square of a line's slant to an axis below which it runs along it.
ALONG_AXIS = 1e-12


@jax.jit
def chord(
    start: Float[Array, " n"], direction: Float[Array, " n"], squared: Scalar, radius: Scalar
) -> tuple[Scalar, Float[Array, " n"], Scalar]:
    """Intersects a line and a ball about the origin: middle of the chord (in `t`), offset of the
    line from the origin there, and the square of half the chord (in `t`; negative for a miss).

    `squared` is `|direction|^2`; of a line along the axis of an endless cylinder, whose chord has
    no end to speak of, it is more.
    """
    # t_m = -(o . d) / |d|^2,  offset = o + t_m d,  half^2 = (r^2 - |offset|^2) / |d|^2
    middle = -safe_divide(dot(start, direction), squared)
    offset = start + middle * direction
    return middle, offset, safe_divide(radius**2 - dot(offset, offset), squared)


@jax.jit
def round_crossings(
    middle: Crossing, square: Scalar, gradient: Float[Array, "2"]
) -> tuple[Crossing, Crossing]:
    """Returns the crossings at both ends of a chord, from its middle and its squared half length.

    They are means over the part of the pixel that does not miss, which keeps their derivatives
    finite at the outline.
    """
    # docs/surfaces.md, "Coverage": t = t_m -+ mean of sqrt(half^2) over the pixel.
    half, d_half = filtered_sqrt(square, gradient)
    enter = Crossing(middle.t - half, middle.gradient - d_half)
    return enter, Crossing(middle.t + half, middle.gradient + d_half)


def first_ahead(ray: Ray, enter: Crossing, leave: Crossing) -> Crossing:
    """Returns the first of two crossings beyond `near`: `leave` for a ray that starts inside."""
    return choose(enter.t > ray.near, enter, leave)


def away_from_zero(x: Float[Array, "*n"], least: Scalar | float) -> Float[Array, "*n"]:
    """Moves numbers to a size of at least `least`; the derivative stays that of the identity."""
    # Straight-through: the value of `nudged`, the derivative of `x`.
    nudged = jnp.where(jnp.abs(x) < least, jnp.where(x < 0, -least, least), x)
    return x + jax.lax.stop_gradient(nudged - x)
