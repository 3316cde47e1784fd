"""Beams: the rays of a bundle as lines over depth, and the triangles that they may touch.

In the frame of the bundle's axis, a ray passes two depths at the places `p` and `q`, and in between
at `(1 - f) p + f q`. Seen from there, the corners of a triangle are at `a`, `b` and `c`, and its
edges pass at `a x b`, `b x c` and `c x a`: the margins of the exact share of a triangle in a pixel,
of which this module knows whether it is zero in a tenth of the operations. Planes about all rays of
a bundle tell before that which triangles none of them touches.
"""

from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Float
from ..flat import Boxes
from ..numerics import max_or_nan, min_or_nan, safe_normalise, tangents
from ..rays import Ray
from ..rowwise import store


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


class Sides(NamedTuple):
    """Unit vectors across the two sides of footprints, and where these are along them."""

    across: Float[Array, "2 2 rays"]
    # At two depths, along the second axis:
    middle: Float[Array, "2 2 rays"]
    half: Float[Array, "2 2 rays"]  # half of the width


class Lines(NamedTuple):
    """Rays between two depths, in the frame of a bundle's axis."""

    place: Float[Array, "2 2 rays"]  # at both depths, the two coordinates across
    moves: Float[Array, "2 2 2 rays"]  # half the derivatives by the pixel, along the first axis
    product: Float[Array, " rays"]  # the cross product of both places
    changes: Float[Array, "2 rays"]  # half its derivatives by the pixel
    sides: Sides
    turn: Float[Array, " rays"]  # by which part margins change with the pixel's direction
    near: Float[Array, " rays"]  # the depth at which a ray begins


class Beam(NamedTuple):
    """The rays of one bundle, and the frame of its axis."""

    origin: Float[Array, "3"]
    axes: Float[Array, "3 3"]  # two across, and the axis
    ends: Float[Array, "2"]  # two depths
    lines: Lines
    far: Float[Array, "2"]  # the longest distance of places from the axis, at both depths
    width: Float[Array, "2"]  # the mean width of footprints, at both depths
    narrow: Bool[Array, ""]
    planes: Planes
    origins: Boxes  # bounds of what rays begin at, and of their directions
    ways: Boxes


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
    ends = jnp.where(narrow & jnp.any(used), _ends(depths, used), jnp.arange(2))
    lines = _between(lines, turn, near, ends)
    planes = _planes_about(origin, axes, lines, used, ends)
    distance = jnp.where(narrow, planes.distance, NOWHERE)
    planes = planes._replace(distance=jnp.where(jnp.any(used), distance, -NOWHERE))
    far = _most(jnp.where(used, jnp.sum(jnp.abs(lines.place), axis=1), 0))
    width = jnp.sum(jnp.where(used, jnp.sum(lines.sides.half, axis=0), 0), axis=1) / number
    around = (_bounds(x, used) for x in (rays.origin, rays.direction))
    return Beam(origin, axes, ends, lines, far, width, narrow, planes, *around)


def _ends(depths: Float[Array, "2 rays"], used: Bool[Array, " rays"]) -> Float[Array, "2"]:
    """Returns the depths between which all rays are."""
    begin = -_most(jnp.where(used, -depths[0], -jnp.inf))
    end = _most(jnp.where(used, depths[1], -jnp.inf))
    return jnp.stack([begin, jnp.maximum(end, begin + jnp.finfo(end.dtype).tiny)])


def _bounds(vectors: Float[Array, "rays 3"], used: Bool[Array, " rays"]) -> Boxes:
    """Returns bounds of the vectors of rays."""
    low = min_or_nan(jnp.where(used[:, None], vectors, jnp.inf), 0)
    high = max_or_nan(jnp.where(used[:, None], vectors, -jnp.inf), 0)
    return Boxes((low + high) / 2, (high - low) / 2)


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


def _between(
    lines: tuple[Array, Array, Array, Array], turn: Array, near: Array, ends: Float[Array, "2"]
) -> Lines:
    """Returns rays between two depths."""
    (place, slope, d_place, d_slope), z = lines, ends[:, None, None]
    place, moves = place + z * slope, store((d_place[:, None] + z * d_slope[:, None]) / 2)
    # d (p x q) = dp x q + p x dq
    changes = [_cross(dp, place[1]) + _cross(place[0], dq) for dp, dq in moves]
    wide = 1 + _CURVED + 2 * turn
    return Lines(
        place, moves, _cross(*place), jnp.stack(changes), _sides(place, moves, wide), turn, near
    )


def _sides(
    place: Float[Array, "2 2 rays"], moves: Float[Array, "2 2 2 rays"], wide: Float[Array, " rays"]
) -> Sides:
    """Returns the sides of footprints, which are wider by some factors than to first order."""
    # Between both depths; elsewhere, they need not be just across.
    u, v = jnp.moveaxis(jnp.sum(moves, axis=1), 1, 0)
    length = jnp.maximum(jnp.sqrt(u * u + v * v), jnp.finfo(u.dtype).tiny ** 0.5)
    across = jnp.stack([-v / length, u / length], axis=1)
    along = lambda x: jnp.stack([jnp.sum(n * x, axis=-2) for n in across])
    half = wide * jnp.sum(jnp.abs(along(moves)), axis=1)
    return Sides(across, along(place), half)


def _along(axes: Float[Array, "3 3"], vectors: Float[Array, "n 3"]) -> Float[Array, "3 n"]:
    return jnp.sum(axes[:, None] * vectors, axis=-1)


def _most(values: Float[Array, "*n rays"]) -> Float[Array, "*n"]:
    """Returns the largest value of all rays; on CPUs, eight at a time compare sooner."""
    rays = values.shape[-1]
    if rays % 8 == 0:
        values = store(max_or_nan(values.reshape(*values.shape[:-1], -1, 8), -2))
    return max_or_nan(values, -1)


def _planes_about(
    origin: Float[Array, "3"],
    axes: Float[Array, "3 3"],
    lines: Lines,
    used: Bool[Array, " rays"],
    ends: Float[Array, "2"],
) -> Planes:
    """Returns the planes at both ends, and on four sides."""
    width = (1 + _CURVED + 2 * lines.turn) * jnp.sum(jnp.abs(lines.moves), axis=0)
    low = -_most(jnp.where(used, width - lines.place, -jnp.inf))
    high = _most(jnp.where(used, lines.place + width, -jnp.inf))
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


def faces_turned(
    beam: Beam, corners: Float[Array, "bundles 9 faces"], way: int
) -> Bool[Array, "bundles faces"]:
    """Returns true only for triangles of which all rays of their bundle see the same side.

    For `way` 1 it is the back, for -1 the front.
    """
    a, b, c = ([corners[:, 3 * k + i] for i in range(3)] for k in range(3))
    one, two = ([y - x for x, y in zip(a, end, strict=True)] for end in (b, c))
    normal = [way * (one[i - 2] * two[i - 1] - one[i - 1] * two[i - 2]) for i in range(3)]
    size = sum(abs(x) for x in one) * sum(abs(x) for x in two)

    def above(boxes: Boxes, sign: int, to: list[Array]) -> Array:
        # n . (x - m) - sum_i |n_i| h_i > 0
        total = jnp.zeros_like(size)
        for i in range(3):
            middle, half = boxes.center[:, i, None], boxes.half[:, i, None]
            total += sign * normal[i] * (middle - to[i]) - abs(normal[i]) * half
            total -= _MARGIN * size * (abs(middle) + abs(to[i]) + half)
        return total > 0

    # The eye of every ray is on this side of the plane, and its way leads from it.
    return above(beam.origins, -1, a) & above(beam.ways, 1, [jnp.zeros_like(size)] * 3)


class Seen(NamedTuple):
    """The corners of a triangle in the frame of a beam."""

    across: Float[Array, "2 3"]
    part: Float[Array, "3"]  # where they are between the beam's two depths
    deepest: Float[Array, ""]
    size: Float[Array, ""]  # the distance of all three


def see_triangle(beam: Beam, corners: Float[Array, "3 3"]) -> Seen:
    """Returns the corners of a triangle in the frame of a beam."""
    away = corners - beam.origin
    *across, depth = _along(beam.axes, away)
    part = (depth - beam.ends[0]) / (beam.ends[1] - beam.ends[0])
    return Seen(jnp.stack(across), part, jnp.max(depth), jnp.sum(jnp.abs(away)))


def touched_by(
    beam: Beam,
    triangle: Seen,
    one_sided: Bool[Array, ""] | None = None,
    way: int = 1,
    *,
    margins: bool = True,
) -> Bool[Array, " rays"]:
    """Returns which rays may touch a triangle; never false for one that a footprint touches.

    One that has one side is touched only if that is turned to the eye, for `way` 1, or away.
    Without `margins`, most of what it takes is saved, and triangles much larger than footprints are
    said to touch more of these.
    """
    across, part, deepest, size = triangle
    seen = across, part, _MARGIN * size
    outside = _beside(beam.lines.sides, *seen)
    if margins:
        least, most = _margins(beam, *seen)
        # Seen from the front, all margins may be negative if their lower bounds are; from behind,
        # all positive if their upper bounds are. A comparison with NaN says "touches".
        no_front, no_back = most > 0, least < 0
        outside |= no_front & no_back
        if one_sided is not None:
            outside |= one_sided & (no_front if way > 0 else no_back)
    before = deepest + _ROUNDING * size < beam.lines.near
    return ~(outside & beam.narrow | before)


def size_in_footprints(beam: Beam, triangle: Seen) -> Float[Array, ""]:
    """Returns how many footprints of the bundle are about as large as the box of a triangle."""
    extents = jnp.max(triangle.across, axis=1) - jnp.min(triangle.across, axis=1)
    f = jnp.clip(jnp.mean(triangle.part), 0, 1)
    return jnp.prod(extents / ((1 - f) * beam.width[0] + f * beam.width[1]))


def _margins(
    beam: Beam, across: Float[Array, "2 3"], part: Float[Array, "3"], tolerance: Array
) -> tuple[Float[Array, " rays"], Float[Array, " rays"]]:
    """Returns the least upper bound of margins over a footprint, and the greatest lower bound."""
    (p, q), steep = beam.lines.place, beam.lines.turn + _MARGIN
    far = jnp.max(abs(1 - part) * beam.far[0] + abs(part) * beam.far[1])
    least, most = jnp.asarray(jnp.inf), jnp.asarray(-jnp.inf)
    for one, other in ((0, 1), (1, 2), (2, 0)):
        a, b, f, g = across[:, one], across[:, other], part[one], part[other]
        # (a - (1 - f) p - f q) x (b - (1 - g) p - g q)
        #     = a x b + p x ((1 - g) a - (1 - f) b) + q x (g a - f b) + (g - f) p x q
        u, v, w = (1 - g) * a - (1 - f) * b, g * a - f * b, g - f
        margin = _cross(a, b) + _cross(p, u) + _cross(q, v) + w * beam.lines.product
        # In the pixel, to first order, it differs from that in the middle by (|m_x| + |m_y|) / 2.
        differs = steep * abs(margin) + tolerance * (jnp.sum(abs(a) + abs(b)) + 2 * far)
        for (dp, dq), change in zip(beam.lines.moves, beam.lines.changes, strict=True):
            differs += (1 + _CURVED) * abs(_cross(dp, u) + _cross(dq, v) + w * change)
        least = jnp.minimum(least, margin + differs)
        most = jnp.maximum(most, margin - differs)
    return least, most


def _beside(
    sides: Sides, across: Float[Array, "2 3"], part: Float[Array, "3"], tolerance: Array
) -> Bool[Array, " rays"]:
    """Returns true where all corners lie on one side of the footprint."""
    low, high = jnp.min(part), jnp.max(part)
    f, depth = (low + high) / 2, (high - low) / 2
    shares, beside = (jnp.max(abs(1 - part)), jnp.max(abs(part))), jnp.asarray(False)
    for (n_u, n_v), (p, q), half in zip(*sides, strict=True):
        corners = [n_u * u + n_v * v for u, v in across.T]
        low, high = (reduce(pick, corners) for pick in (jnp.minimum, jnp.maximum))
        # Within the depths of the triangle, the ray is at p + f (q - p).
        ray, width = p + f * (q - p), depth * abs(q - p) + tolerance
        width += shares[0] * half[0] + shares[1] * half[1]
        beside |= (low > ray + width) | (high < ray - width)
    return beside


def _cross(a: Array, b: Array) -> Array:
    return a[0] * b[1] - a[1] * b[0]
