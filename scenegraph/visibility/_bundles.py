"""Bundles: rays that leave nearly one place in nearly one direction, bounded by a cone."""

import math
from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar
from ..numerics import AbstractModule, max_or_nan, safe_divide
from ..rays import Ray
from ..transforms import Ball


# Rays in a bundle.
BUNDLE = 64


class Bundle(AbstractModule):
    """A cone that holds a set of rays with their footprints.

    Every point of every ray is within `slack` of a point that lies at most `angle` off the axis,
    seen from the apex, and at most `reach` away from it.

    **Arguments:**

    - `apex`: a point near which all rays begin, or end.
    - `axis`: the unit vector of their mean direction.
    - `angle`: the largest angle between a ray and the axis, in radians.
    - `slack`: the largest distance by which rays and their footprints leave the cone.
    - `reach`: the length of the longest ray, in world units.
    - `stretch`: the factor by which all that is tested is taken as larger, one for narrow rays: a
      wide pixel may see a ball beside the place where its ray is nearest to it.
    """

    apex: Float[Array, "*bundles 3"]
    axis: Float[Array, "*bundles 3"]
    angle: Float[Array, "*bundles"]
    slack: Float[Array, "*bundles"]
    reach: Float[Array, "*bundles"]
    stretch: Float[Array, "*bundles"]


def bound_rays(rays: Ray, used: Bool[Array, " rays"]) -> Bundle:
    """Bounds a set of rays by a cone.

    **Arguments:**

    - `rays`: the rays, with one leading axis.
    - `used`: the rays that count; the cone of none holds nothing.

    **Returns:**

    One bundle.
    """
    over_used = _Statistics(used)
    begin, way, widths = _from_tight_end(rays, over_used)
    distance = _length(way)
    unit = way * _inverse(distance)
    apex, axis = over_used.mean(begin), over_used.mean(unit)
    axis = axis * _inverse(_length(axis))
    # The angle between unit vectors u and v is 2 asin(|u - v| / 2), which is exact for small ones.
    chord = jnp.sqrt(over_used.most(_square(unit - axis[:, None])))
    off = 2 * jnp.arcsin(jnp.minimum(chord / 2, 1))
    # The footprint grows from w_0 to w_1 along the ray: its balls fit a cone with that sine. Those
    # of points near the horizon are wider than they are far away, and are all around.
    speed = _length(rays.direction.T)
    stretch = _stretch(rays, speed)
    growth = jnp.maximum(widths[1] - widths[0], 0) * stretch
    near, far = _bounds(rays)
    slope = over_used.most(jnp.where(growth > 0, growth / ((far - near) * speed), 0))
    wider = jnp.where(slope < 1, jnp.arcsin(jnp.minimum(slope, 1)), jnp.pi)
    slack = over_used.most(_length(begin - apex[:, None]) + widths[0])
    angle = jnp.where(jnp.any(used), jnp.minimum(off + wider, jnp.pi), 0)
    reach = over_used.most(distance + jnp.maximum(widths[0], widths[1]) * stretch) + slack
    reach = jnp.where(jnp.any(used), reach, -jnp.inf)
    stretch = jnp.maximum(over_used.most(stretch), 1)
    return Bundle(apex, axis, angle, slack, reach, stretch)


# Rays lie along the last axis: XLA computes these several times as fast as rows of short vectors.
_Vectors = Float[Array, "n *rays"]


def _length(vectors: _Vectors) -> Float[Array, "*rays"]:
    # NaN stays NaN, of which `may_touch` says that it touches: no `safe_sqrt`.
    return jnp.sqrt(_square(vectors))


def _square(vectors: _Vectors) -> Float[Array, "*rays"]:
    return jnp.sum(vectors * vectors, axis=0)


def _inverse(length: Float[Array, "*rays"]) -> Float[Array, "*rays"]:
    """Returns `1 / length`; 0 for a vector of no length."""
    return safe_divide(jnp.ones_like(length), length)


class _Statistics(NamedTuple):
    """Means and maxima over the rays that count."""

    used: Bool[Array, " rays"]

    def mean(self, vectors: Float[Array, "n rays"]) -> Float[Array, " n"]:
        count = jnp.maximum(jnp.sum(self.used), 1)
        return jnp.sum(jnp.where(self.used, vectors, 0), axis=1) / count

    def most(self, values: Float[Array, " rays"]) -> Scalar:
        return max_or_nan(jnp.where(self.used, values, 0), 0)


def _stretch(rays: Ray, speed: Float[Array, " rays"]) -> Float[Array, " rays"]:
    """Returns how many times as far away as it is large `cone_touches` takes a ball to be seen."""
    slope = safe_divide(_width(_sides(rays.d_direction)), speed)
    return 1 / jnp.maximum(1 - slope**2 / 4, 1e-6)


def _sides(footprints: Float[Array, "rays 2 3"]) -> Float[Array, "6 rays"]:
    return footprints.reshape(-1, 6).T


def _width(sides: Float[Array, "6 rays"]) -> Float[Array, " rays"]:
    """Returns the widths of footprints, as `cone_touches` takes them."""
    # |a| + |b| <= sqrt(2) sqrt(|a|^2 + |b|^2)
    return math.sqrt(2) * _length(sides)


_LONG = 1e6


def _bounds(rays: Ray) -> tuple[Float[Array, " rays"], Float[Array, " rays"]]:
    """Returns where rays begin and end, in `t`."""
    return jnp.minimum(rays.near, 0), jnp.minimum(rays.far, _LONG)


def _from_tight_end(
    rays: Ray, over_used: _Statistics
) -> tuple[Float[Array, "3 rays"], Float[Array, "3 rays"], tuple[Array, Array]]:
    """Returns where rays begin, their ways to the other end, and the widths of both.

    Shadow rays meet at their lamp, so they are taken from there: from the end that spreads less.
    """
    origin, direction = rays.origin.T, rays.direction.T
    first, growth = _sides(rays.d_origin), _sides(rays.d_direction)
    inverse, ends, widths = _inverse(_length(direction)), [], []
    for t, sign in zip(_bounds(rays), (-1, 1), strict=True):
        width = _width(first + t * growth)
        # Other rays of the footprint begin earlier, and end later.
        ends.append(origin + (t + sign * width * inverse) * direction)
        widths.append(width)
    spread = lambda end: over_used.most(_square(end - over_used.mean(end)[:, None]))
    # The apex is where rays are closer together.
    turn = spread(ends[1]) < spread(ends[0])
    pick = lambda x, y: jnp.where(turn, x, y)
    begin, other = pick(*ends[::-1]), pick(*ends)
    return begin, other - begin, (pick(*widths[::-1]), pick(*widths))


# Relative to distances: the rounding of the test itself.
_ROUNDING = 1e-5


def may_touch(bundle: Bundle, ball: Ball) -> Bool[Array, ""]:
    """Tests whether a bundle may touch a ball; never false if it does.

    **Arguments:**

    - `bundle`: one bundle.
    - `ball`: one ball, in world coordinates. One that is not finite is touched.

    **Returns:**

    True unless the ball is outside of the cone.
    """
    # Axis by axis: sums over short arrays are slow on CPUs.
    (x, y, z), (u, v, w) = ball.center - bundle.apex, bundle.axis
    along, distance = x * u + y * v + z * w, _norm_of(x, y, z)
    across = _norm_of(x - along * u, y - along * v, z - along * w)
    # The cone, widened by `slack`, touches balls whose centres are that and a radius away.
    gap = _distance_to_cone(along, across, distance, bundle.angle)
    radius, rounding = ball.radius * bundle.stretch, _ROUNDING * distance
    # Written so that a comparison with NaN says "touches".
    outside = gap > radius + bundle.slack * bundle.stretch + rounding
    outside |= distance - radius > bundle.reach + rounding
    return ~outside


def _norm_of(x: Scalar, y: Scalar, z: Scalar) -> Scalar:
    return jnp.sqrt(x * x + y * y + z * z)


def _distance_to_cone(along: Scalar, across: Scalar, distance: Scalar, angle: Scalar) -> Scalar:
    """Returns a point's distance from a cone's surface, negative inside."""
    # In the plane of the point and the axis, the surface is the ray (cos angle, sin angle).
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    beside = along * cosine + across * sine > 0
    return jnp.where(beside | (angle >= jnp.pi / 2), across * cosine - along * sine, distance)
