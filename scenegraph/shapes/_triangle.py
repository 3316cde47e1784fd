"""One triangle and one pixel: the exact share, and what is seen there."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar, Vector
from ..numerics import (
    AbstractModule,
    dot,
    matmul,
    max_or_nan,
    polygon_coverage,
    safe_divide,
    safe_norm,
)
from ..rays import pixel_jvp, Ray
from ..rows import any_in_packet
from ..transforms import Ball
from ._base import away_from_zero
from ._bounds import AbstractBounded


# The least cosine of incidence at which footprints grow no more: they would have no end.
_GRAZING = 0.02
# A face thinner than this part of the pixel is a line: what is seen of it moves with its corners.
_THIN = 1e-2


class Triangle(AbstractBounded):
    """One face of a mesh, in any frame: its corners, and what is interpolated between them."""

    corners: Float[Array, "*faces 3 3"]
    normals: Float[Array, "*faces 3 3"]
    uv: Float[Array, "*faces 3 2"]
    colors: Float[Array, "*faces 3 3"]
    places: Float[Array, "*faces 3 3"]  # the corners in the mesh's own frame

    def bounding_ball(self) -> Ball:
        center = jnp.mean(self.corners, axis=0)
        return Ball(center, max_or_nan(safe_norm(self.corners - center), 0))


class Fragment(AbstractModule):
    """The visible part of one triangle in a pixel."""

    coverage: Float[Array, "*rays"]
    t: Float[Array, "*rays"]
    weights: Float[Array, "*rays 3"]  # the shares of the corners in the fragment's point
    d_weights: Float[Array, "*rays 3 2"]  # derivatives by the pixel's x and y
    facing: Float[Array, "*rays"]  # -1 if its corners run counter-clockwise, seen from the eye


def cross_triangle(ray: Ray, corners: Float[Array, "3 3"], *, in_search: bool = False) -> Fragment:
    """Intersects the cone of a pixel with a triangle.

    The point is where the ray meets the triangle; beside it, the one of the pixel nearest to that.
    With `in_search` it takes less time, has more code, and is the same but for rounding.
    """
    (edges, plane, speed), (d_edges, d_plane, d_speed) = pixel_jvp(
        lambda origin, direction: _volumes(corners, origin, direction), ray
    )
    # Where a triangle is met ahead, a . n and d . n have one sign. Seen from the edge, d . n
    # changes it within the pixel, and from a point in its plane, a . n: the steadier one counts.
    change = jnp.sum(jnp.abs(jnp.stack([d_plane, d_speed])), axis=1)
    steady = jnp.abs(plane) * change[1] >= jnp.abs(speed) * change[0]
    # |d . n| = |d| |n| cos(incidence)
    size = safe_norm(_normal(corners)) * safe_norm(ray.direction)
    # All parallel lines along a face miss it.
    edge_on = jnp.abs(speed) + change[1] <= _ROUNDINGS * jnp.finfo(size.dtype).eps * size
    facing = jnp.where(edge_on, 0, jnp.sign(jnp.where(steady, plane, speed)))
    values, rates = (edges, plane, speed), (d_edges, d_plane, d_speed)
    coverage = _coverage(ray, corners, facing, values, rates, in_search)
    # The volumes de_i are as large as the pixel is wide, d . n as the face is high.
    line = _THIN * jnp.max(jnp.abs(d_edges))
    least = jnp.maximum(_GRAZING * size, jnp.maximum(_THIN * line, jnp.finfo(size.dtype).tiny))
    steep = away_from_zero(speed, jax.lax.stop_gradient(least))
    # w_i = e_i / sum(e), so dw_i = (de_i - w_i d sum(e)) / sum(e).
    changes = lambda weights: (d_edges - weights[:, None] * d_speed) / steep
    inside = jnp.maximum(_moved_inside(edges / steep, changes(edges / steep)), 0)
    total = jnp.sum(inside)
    third = jnp.full_like(inside, 1 / 3)
    weights = jnp.where(total > 0, inside / jnp.where(total > 0, total, 1), third)
    d_weights = changes(weights)
    fixed = jax.lax.stop_gradient((weights, d_weights))
    weights, d_weights = (
        jnp.where(size < line, x, y) for x, y in zip(fixed, (weights, d_weights), strict=True)
    )
    away = matmul(weights, corners) - ray.origin
    # Where the ray is nearest to the point p = sum_i w_i c_i: t = (p - o) . d / |d|^2.
    t = safe_divide(dot(away, ray.direction), dot(ray.direction, ray.direction))
    return Fragment(coverage, t, weights, d_weights, facing)


def _moved_inside(weights: Vector, gradients: Float[Array, "3 2"]) -> Vector:
    """Returns the weights of the point of a pixel that is nearest to its middle and in a triangle.

    Edge by edge, so that near corners, of which the pixel's middle is beyond two edges, they may
    still be a little below zero.
    """
    for i in range(3):
        # From w_i < 0, a step p with g_i . p = -w_i along g_i.
        gradient = gradients[i]
        step = safe_divide(-jnp.minimum(weights[i], 0), dot(gradient, gradient)) * gradient
        weights = weights + matmul(gradients, step)
    return weights


def may_cover(ray: Ray, corners: Float[Array, "3 3"]) -> Bool[Array, ""]:
    """Returns false only if an edge of a triangle, or its plane, leaves nothing of a pixel."""
    # All is compared in the sum norm, which is the larger one.
    size = lambda x: jnp.sum(jnp.abs(x))
    away = corners - ray.origin
    turns = jnp.cross(ray.direction, ray.d_origin)
    rounding = _ROUNDINGS * jnp.finfo(away.dtype).eps * size(ray.direction)
    some_before = some_behind = jnp.zeros((), bool)
    for k in range(3):
        # Of an edge from p to q, seen from the origin, with m = p x q: e = d . m, and its
        # derivatives are de = dd . m - (q - p) . (d x do).
        p, q = away[k], away[(k + 1) % 3]
        side, double = q - p, p + q
        moment = jnp.cross(double / 2, side)
        changes = matmul(ray.d_direction, moment) - matmul(turns, side)
        error = rounding * size(double) * size(side)
        half, edge = size(changes) / 2 + error, dot(ray.direction, moment)
        some_before |= edge + half < 0
        some_behind |= edge - half > 0
    # Nothing of it is met before the ray begins: (a . n - near d . n) / (d . n) < 0. Shadow rays
    # leave a mesh past many faces.
    normal = _normal(corners)
    speed, d_speed = dot(ray.direction, normal), matmul(ray.d_direction, normal)
    past = dot(away[0], normal) - ray.near * speed
    d_past = matmul(ray.d_origin, normal) + ray.near * d_speed
    error = _ROUNDINGS * jnp.finfo(away.dtype).eps * size(normal)
    error *= size(away[0]) + jnp.abs(ray.near) * size(ray.direction)
    half = size(d_past) / 2 + error
    turned = jnp.abs(speed) > size(d_speed) / 2
    begins = turned & (jnp.sign(speed) * past + half < 0)
    # Written so that a comparison with NaN says "covers".
    return ~(some_before & some_behind) & ~begins


def cross_line(
    ray: Ray, corners: Float[Array, "3 3"]
) -> tuple[Scalar, Bool[Array, ""], Bool[Array, ""]]:
    """Returns where a line meets a triangle's plane, whether inside its edges, and from behind.

    An edge belongs to both of its triangles, and a vertex to all of its own, to within rounding: no
    line passes between them.
    """
    edges, plane, speed = _volumes(corners, ray.origin, ray.direction)
    t = safe_divide(plane, speed)
    rounding = _rounding_of(ray, corners)
    inside = jnp.all(edges >= -rounding) | jnp.all(edges <= rounding)
    # Of a face seen from the edge, only rounding is left.
    inside &= jnp.abs(speed) > jnp.sum(rounding)
    return t, inside & (t >= ray.near) & (t <= ray.far), speed > 0


# The error of a volume, in roundings of the product of its lengths.
_ROUNDINGS = 4


def _rounding_of(ray: Ray, corners: Float[Array, "3 3"]) -> Vector:
    """Returns the errors of the volumes of edges."""
    sizes = _sizes(corners - ray.origin, _normal(corners))[:3] * safe_norm(ray.direction)
    return _ROUNDINGS * jnp.finfo(sizes.dtype).eps * sizes


def _normal(corners: Float[Array, "3 3"]) -> Vector:
    """Returns twice the area, along the normal."""
    a, b, c = corners
    return jnp.cross(b - a, c - a)


# With a, b, c the corners seen from the origin of a line along d, and n = (b - a) x (c - a), the
# line passes the edges at volumes e_c = d . (a x b), e_a = d . (b x c), e_b = d . (c x a): the
# weights of the corners opposite to them, whose sum is d . n. It meets the plane at
# t = (a . n) / (d . n). All are linear in d, hence over the picture of a pinhole camera, also for
# triangles that reach behind the eye.


def _volumes(
    corners: Float[Array, "3 3"], origin: Vector, direction: Vector
) -> tuple[Vector, Scalar, Scalar]:
    """Returns the volumes of the edges, `a . n` and `d . n`."""
    normal, away = _normal(corners), corners - origin
    return (
        _edge_volumes(away, direction),
        # All corners have the same a . n; their mean is symmetric in rounding, too.
        dot(jnp.mean(away, axis=0), normal),
        dot(direction, normal),
    )


def _edge_volumes(away: Float[Array, "3 3"], direction: Vector) -> Vector:
    return jnp.stack([dot(direction, moment) for moment in _moments(away)])


def _moments(away: Float[Array, "3 3"]) -> list[Vector]:
    """Returns `b x c`, `c x a` and `a x b`, exactly opposite for an edge run the other way."""
    # a x b = (a + b) / 2 x (b - a)
    pairs = ((away[1], away[2]), (away[2], away[0]), (away[0], away[1]))
    return [jnp.cross((p + q) / 2, q - p) for p, q in pairs]


def _coverage(
    ray: Ray,
    corners: Float[Array, "3 3"],
    facing: Scalar,
    values: tuple,
    gradients: tuple,
    in_search: bool,
) -> Scalar:
    """Returns the part of the pixel within the edges, and between `near` and `far`."""
    # near < t < far, times d . n.
    far = jnp.minimum(ray.far, _LONG)
    between = lambda plane, speed: jnp.stack([plane - ray.near * speed, far * speed - plane])
    scale = jax.lax.stop_gradient(facing / _sizes(corners - ray.origin, _normal(corners)))
    margins = jnp.concatenate([values[0], between(*values[1:])])
    rates = jnp.concatenate([gradients[0], between(*gradients[1:])])
    margins, rates = scale * margins, scale[:, None] * rates
    if not in_search:
        return jnp.where(facing == 0, 0, polygon_coverage(margins, rates))
    # Where all of the pixel meets the plane between both ends, the edges alone count.
    cut = jnp.any(~(margins[3:] > jnp.sum(jnp.abs(rates[3:]), axis=1) / 2))
    covered = jax.lax.cond(
        any_in_packet(cut),
        lambda: polygon_coverage(margins, rates),
        lambda: polygon_coverage(margins[:3], rates[:3]),
    )
    return jnp.where(facing == 0, 0, covered)


# The end of rays without an end, in `t`.
_LONG = 1e6


def _sizes(away: Float[Array, "3 3"], normal: Vector) -> Float[Array, "5"]:
    """Returns the sizes of margins: coverage has no units, and must not be lost to underflow."""
    pairs = ((away[1], away[2]), (away[2], away[0]), (away[0], away[1]))
    edges = jnp.stack([safe_norm(p + q) * safe_norm(q - p) for p, q in pairs])
    sizes = jnp.concatenate([edges, jnp.broadcast_to(safe_norm(normal), (2,))])
    return jnp.where(sizes > 0, sizes, 1)
