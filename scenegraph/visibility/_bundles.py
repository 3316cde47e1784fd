"""Bundles: rays that leave nearly one place in nearly one direction, bounded by a cone."""

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Scalar
from ..numerics import AbstractModule, dot, safe_divide, safe_norm, safe_normalise
from ..rays import Ray
from ..shapes import footprint_width
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
    count = jnp.maximum(jnp.sum(used), 1)
    mean = lambda points: jnp.sum(jnp.where(used[:, None], points, 0), axis=0) / count
    most = lambda values: jnp.max(jnp.where(used, values, 0))
    begin, way, widths = _from_tight_end(rays, used, mean, most)
    unit, apex = safe_normalise(way), mean(begin)
    axis = safe_normalise(mean(unit))
    # The angle between unit vectors u and v is 2 asin(|u - v| / 2), which is exact for small ones.
    off = 2 * jnp.arcsin(jnp.clip(safe_norm(unit - axis) / 2, 0, 1))
    # The footprint grows from w_0 to w_1 along the ray: its balls fit a cone with that sine. Those
    # of points near the horizon are wider than they are far away, and are all around.
    stretch = _stretch(rays)
    growth = jnp.maximum(widths[1] - widths[0], 0) * stretch
    near, far = _bounds(rays)
    slope = growth / ((far - near) * safe_norm(rays.direction))
    wider = jnp.where(slope < 1, jnp.arcsin(jnp.minimum(slope, 1)), jnp.pi)
    wider = jnp.where(slope > 0, wider, 0)
    slack = most(safe_norm(begin - apex) + widths[0])
    angle = jnp.where(jnp.any(used), jnp.minimum(most(off + wider), jnp.pi), 0)
    reach = most(safe_norm(way) + jnp.maximum(widths[0], widths[1]) * stretch) + slack
    reach = jnp.where(jnp.any(used), reach, -jnp.inf)
    return Bundle(apex, axis, angle, slack, reach, jnp.maximum(most(stretch), 1))


def _stretch(rays: Ray) -> Float[Array, " rays"]:
    """Returns how many times as far away as it is large `cone_touches` takes a ball to be seen."""
    slope = safe_divide(footprint_width(rays.d_direction), safe_norm(rays.direction))
    return 1 / jnp.maximum(1 - slope**2 / 4, 1e-6)


_LONG = 1e6


def _bounds(rays: Ray) -> tuple[Float[Array, " rays"], Float[Array, " rays"]]:
    """Returns where rays begin and end, in `t`."""
    return jnp.minimum(rays.near, 0), jnp.minimum(rays.far, _LONG)


def _from_tight_end(rays: Ray, used: Array, mean, most) -> tuple[Array, Array, Array]:
    """Returns where rays begin, their ways to the other end, and the widths of both.

    Shadow rays meet at their lamp, so they are taken from there: from the end that spreads less.
    """
    unit, ends, widths = safe_normalise(rays.direction), [], []
    for t, sign in zip(_bounds(rays), (-1, 1), strict=True):
        width = footprint_width(rays.d_origin + t[:, None, None] * rays.d_direction)
        # Other rays of the footprint begin earlier, and end later.
        ends.append(rays.origin + t[:, None] * rays.direction + sign * width[:, None] * unit)
        widths.append(width)
    spread = [most(safe_norm(end - mean(end))) for end in ends]
    # The apex is where rays are closer together.
    turn = spread[1] < spread[0]
    begin = jnp.where(turn, ends[1], ends[0])
    other = jnp.where(turn, ends[0], ends[1])
    ordered = jnp.where(turn, jnp.stack(widths[::-1]), jnp.stack(widths))
    return begin, other - begin, ordered


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
    away = ball.center - bundle.apex
    along = dot(away, bundle.axis)
    across = safe_norm(away - along * bundle.axis)
    distance = safe_norm(away)
    # The cone, widened by `slack`, touches balls whose centres are that and a radius away.
    gap = _distance_to_cone(along, across, distance, bundle.angle)
    radius, rounding = ball.radius * bundle.stretch, _ROUNDING * distance
    # Written so that a comparison with NaN says "touches".
    outside = gap > radius + bundle.slack * bundle.stretch + rounding
    outside |= distance - radius > bundle.reach + rounding
    return ~outside


def _distance_to_cone(along: Scalar, across: Scalar, distance: Scalar, angle: Scalar) -> Scalar:
    """Returns a point's distance from a cone's surface, negative inside."""
    # In the plane of the point and the axis, the surface is the ray (cos angle, sin angle).
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    beside = along * cosine + across * sine > 0
    return jnp.where(beside | (angle >= jnp.pi / 2), across * cosine - along * sine, distance)
