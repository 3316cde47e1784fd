"""Beams: the rays of a bundle as lines over depth, and the triangles that they may touch.

In the frame of the bundle's axis, a ray passes the plane at depth `z` at `place + z slope`. Seen
from there, the corners of a triangle are at `a`, `b` and `c`, and its edges pass at `a x b`,
`b x c` and `c x a`: the margins of the exact share of a triangle in a pixel, of which this module
knows whether it is zero in a thirtieth of the operations. Planes about all rays of a bundle tell
before that which triangles none of them touches.
"""

from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Float
from ..flat import Boxes
from ..numerics import safe_normalise, tangents
from ..rays import Ray


# The least cosine between a ray and the axis: bundles that spread more touch everything.
_NARROW = 0.3
# The end of rays without an end, in `t`.
_LONG = 1e6
# Relative to footprints: what is not linear in the pixel.
_CURVED = 0.02
# Relative to distances: the rounding of planes about bundles, and of margins.
_ROUNDING, _MARGIN = 1e-5, 1e-6
# The distance of planes that nothing is beyond, for bundles that touch everything.
NOWHERE = 1e18


class Planes(NamedTuple):
    """Planes about the rays of a bundle: beyond one of them, `n . (x - o) > distance`, is none."""

    origin: Float[Array, "3"]
    normal: Float[Array, "6 3"]
    distance: Float[Array, "6"]


class Beam(NamedTuple):
    """The rays of one bundle, in the frame of its axis."""

    origin: Float[Array, "3"]
    axes: Float[Array, "3 3"]  # two across, and the axis
    place: Float[Array, "2 rays"]
    slope: Float[Array, "2 rays"]
    d_place: Float[Array, "2 2 rays"]  # derivatives by the pixel, along the first axis
    d_slope: Float[Array, "2 2 rays"]
    turn: Float[Array, " rays"]  # by which part margins change with the pixel's direction
    near: Float[Array, " rays"]  # the depth at which a ray begins
    narrow: Bool[Array, ""]
    planes: Planes


def beam_of(rays: Ray, used: Bool[Array, " rays"]) -> Beam:
    """Returns the beam of one bundle."""
    number = jnp.maximum(jnp.sum(used), 1)
    mean = lambda x: jnp.sum(jnp.where(used[:, None], x, 0), axis=0) / number
    unit, origin = safe_normalise(rays.direction), mean(rays.origin)
    axis = safe_normalise(mean(unit))
    axes = jnp.stack([*tangents(axis), axis])
    cosine = _along(axes, unit)[2]
    narrow = jnp.all((cosine > _NARROW) | ~used)
    lines, turn, depths = _lines(rays, axes, origin, cosine > _NARROW)
    near = jnp.where(used, jnp.where(narrow, depths[0], -jnp.inf), jnp.inf)
    begin = jnp.min(jnp.where(used, depths[0], jnp.inf))
    end = jnp.max(jnp.where(used, depths[1], -jnp.inf))
    planes = _planes_about(origin, axes, lines, used, jnp.stack([begin, end]))
    distance = jnp.where(narrow, planes.distance, NOWHERE)
    distance = jnp.where(jnp.any(used), distance, -NOWHERE)
    return Beam(origin, axes, *lines, turn, near, narrow, planes._replace(distance=distance))


def _lines(
    rays: Ray, axes: Float[Array, "3 3"], origin: Float[Array, "3"], ahead: Bool[Array, " rays"]
) -> tuple[tuple[Array, Array, Array, Array], Array, Array]:
    """Returns rays in the frame, how their margins turn, and the depths at which they are there."""
    start, way = _along(axes, rays.origin - origin), _along(axes, rays.direction)
    along = lambda sides: jnp.stack([_along(axes, sides[:, k]) for k in range(2)])
    d_start, d_way = along(rays.d_origin), along(rays.d_direction)
    speed = jnp.where(ahead, way[2], 1)
    # With o + t d = p + z s: s = d / d_z and p = o - o_z s, and so their derivatives.
    slope = way[:2] / speed
    place = start[:2] - start[2] * slope
    d_slope = (d_way[:, :2] - slope * d_way[:, 2:]) / speed
    d_place = d_start[:, :2] - slope * d_start[:, 2:] - start[2] * d_slope
    turn = jnp.sum(jnp.abs(d_way[:, 2] / speed), axis=0) / 2
    # Other rays of the footprint begin earlier, and end later.
    ends = jnp.stack([rays.near, jnp.minimum(rays.far, _LONG)])
    more = jnp.sum(jnp.abs(d_start[:, 2] + ends[:, None] * d_way[:, 2]), axis=1)
    depths = start[2] + ends * speed + jnp.array([[-1], [1]]) * more
    return (place, slope, d_place, d_slope), turn, depths


def _along(axes: Float[Array, "3 3"], vectors: Float[Array, "n 3"]) -> Float[Array, "3 n"]:
    return jnp.sum(axes[:, None] * vectors, axis=-1)


def _planes_about(
    origin: Float[Array, "3"],
    axes: Float[Array, "3 3"],
    lines: tuple,
    used: Bool[Array, " rays"],
    ends: Float[Array, "2"],
) -> Planes:
    """Returns the planes at both ends, and on four sides."""
    place, slope, d_place, d_slope = lines
    z = ends[:, None, None]
    middle = place + z * slope
    width = (1 + _CURVED) / 2 * jnp.sum(jnp.abs(d_place[:, None] + z * d_slope[:, None]), axis=0)
    low = jnp.min(jnp.where(used, middle - width, jnp.inf), axis=2)
    high = jnp.max(jnp.where(used, middle + width, -jnp.inf), axis=2)
    # The sides of all footprints are convex over depth: they lie within what joins their ends.
    length = jnp.maximum(ends[1] - ends[0], jnp.finfo(ends.dtype).tiny)
    grow = lambda side: (side[1] - side[0]) / length
    # u < h_0 + h' (z - z_0) is (e_u - h' e_z) . x < h_0 - h' z_0.
    normal, distance = [axes[2], -axes[2]], [ends[1], -ends[0]]
    for i in range(2):
        for sign, side in ((1, high[:, i]), (-1, low[:, i])):
            normal.append(sign * (axes[i] - grow(side) * axes[2]))
            distance.append(sign * (side[0] - grow(side) * ends[0]))
    return Planes(origin, jnp.stack(normal), jnp.stack(distance))


def beyond_all(planes: Planes) -> Planes:
    """Returns planes that nothing is beyond."""
    return planes._replace(distance=jnp.full_like(planes.distance, NOWHERE))


def may_meet(planes: Planes, box: Boxes) -> Bool[Array, ""]:
    """Returns false only if a box lies beyond one of the planes."""
    # Component by component: sums over short axes are slow on CPUs.
    away = [box.center[i] - planes.origin[i] for i in range(3)]
    size, outside = sum(abs(x) for x in away), jnp.asarray(False)
    for normal, distance in zip(planes.normal, planes.distance, strict=True):
        # The corner nearest to the plane is beyond it if n . (c - o) - sum_i |n_i| h_i > distance.
        reach = sum(abs(normal[i]) * box.half[i] for i in range(3))
        height = sum(normal[i] * away[i] for i in range(3)) - reach
        steep = 1 + sum(abs(normal[i]) for i in range(3))
        # Written so that a comparison with NaN says "meets".
        outside |= height - distance > _ROUNDING * steep * size
    return ~outside


def faces_within(
    planes: Planes, corners: Float[Array, "bundles 9 faces"]
) -> Bool[Array, "bundles faces"]:
    """Returns false only for triangles beyond one of the planes of their bundle."""
    away = [corners[:, k] - planes.origin[:, k % 3, None] for k in range(9)]
    size = sum((abs(x) for x in away[1:]), abs(away[0]))
    outside = jnp.zeros(size.shape, bool)
    for k in range(6):
        x, y, z = (planes.normal[:, k, i, None] for i in range(3))
        # A triangle is beyond a plane if the least n . (x - o) of its corners is.
        heights = [x * away[j] + y * away[j + 1] + z * away[j + 2] for j in (0, 3, 6)]
        least = jnp.minimum(jnp.minimum(heights[0], heights[1]), heights[2])
        steep = 1 + abs(x) + abs(y) + abs(z)
        outside |= least - planes.distance[:, k, None] > _ROUNDING * steep * size
    return ~outside


def touched_by(beam: Beam, corners: Float[Array, "3 3"]) -> Bool[Array, " rays"]:
    """Returns which rays may touch a triangle; never false for one that a footprint touches."""
    away = corners - beam.origin
    frame = _along(beam.axes, away)
    tolerance = _MARGIN * jnp.sum(jnp.abs(away))
    points = [_seen(beam, frame[:, i]) for i in range(3)]
    least, most = jnp.asarray(jnp.inf), jnp.asarray(-jnp.inf)
    for one, other in ((0, 1), (1, 2), (2, 0)):
        (a, da), (b, db) = points[one], points[other]
        # In the pixel, to first order, m differs from that in the middle by (|m_x| + |m_y|) / 2.
        margin = _cross(a, b)
        # d (a x b) = da x b + a x db
        change = sum(abs(_cross(x, b) + _cross(a, y)) for x, y in zip(da, db, strict=True)) / 2
        rounding = tolerance * (abs(a[0]) + abs(a[1]) + abs(b[0]) + abs(b[1]))
        change = (1 + _CURVED) * change + (beam.turn + _MARGIN) * abs(margin) + rounding
        least = jnp.minimum(least, margin + change)
        most = jnp.maximum(most, margin - change)
    # A triangle is seen from one side or the other; a comparison with NaN says "touches".
    # Seen from one side, all margins may be positive if their upper bounds are; from the other, all
    # negative if their lower bounds are.
    outside = (least < 0) & (most > 0) & beam.narrow
    outside |= _beside(beam, points, tolerance) & beam.narrow
    before = jnp.max(frame[2]) + _ROUNDING * jnp.sum(jnp.abs(away)) < beam.near
    return ~(outside | before)


def _beside(beam: Beam, points: list, tolerance: Array) -> Array:
    """Returns true where all corners lie on one side of the footprint."""
    wide, beside = 1 + _CURVED + 2 * beam.turn, jnp.asarray(False)
    crosses = [_cross(*moves) for _, moves in points]
    for k in range(2):
        least, most = jnp.asarray(jnp.inf), jnp.asarray(-jnp.inf)
        for (place, moves), turned in zip(points, crosses, strict=True):
            # From the pixel's middle, a corner is at -(a x d_y, d_x x a) / (d_x x d_y).
            other = moves[1 - k]
            along = _cross(place, other) * jnp.sign(turned) * (1 - 2 * k)
            reach = wide / 2 * abs(turned) + tolerance * (abs(other[0]) + abs(other[1]))
            least, most = jnp.minimum(least, along - reach), jnp.maximum(most, along + reach)
        beside |= (least > 0) | (most < 0)
    return beside


def _seen(beam: Beam, point: Float[Array, "3"]) -> tuple[list[Array], list[list[Array]]]:
    """Returns where rays see a point in its plane, and the derivatives by the pixel."""
    # p - (place + z slope), of the two coordinates across.
    z = point[2]
    place = [point[i] - beam.place[i] - z * beam.slope[i] for i in range(2)]
    moves = [[-beam.d_place[k, i] - z * beam.d_slope[k, i] for i in range(2)] for k in range(2)]
    return place, moves


def _cross(a: list[Array], b: list[Array]) -> Array:
    return a[0] * b[1] - a[1] * b[0]
