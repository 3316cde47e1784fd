"""Beams: the rays of a bundle as lines over depth, and the balls that every one of them may touch.

In the frame of the bundle's axis, a ray passes the plane at depth `z` at `place + z slope`, and its
footprint reaches `width + z growth` along three directions there: the plane's axes, and across the
footprint's longer side. It touches a ball if none of the three tells them apart: some thirty
operations, where the exact share of a triangle takes thousands.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, UInt32
from ..numerics import safe_norm, safe_normalise, tangents
from ..rays import Ray
from ..transforms import Ball


# The least cosine between a ray and the axis: bundles that spread more touch everything.
_NARROW = 0.5
# The end of rays without an end, in `t`.
_LONG = 1e6
# Relative to footprints: what is not linear in the pixel.
_CURVED = 0.02
# Relative to distances: the rounding of the test itself.
_ROUNDING = 1e-5


class Beam(NamedTuple):
    """The rays of one bundle, in the frame of its axis."""

    origin: Float[Array, "3"]
    axes: Float[Array, "3 3"]  # two across, and the axis
    place: Float[Array, "2 rays"]
    slope: Float[Array, "2 rays"]
    near: Float[Array, " rays"]  # the depth at which a ray begins
    far: Float[Array, ""]  # the depth at which the last ray ends
    begin: Float[Array, ""]  # the depth at which the first ray begins
    across: Float[Array, "2 rays"]  # the direction across the footprint's longer side
    width: Float[Array, "3 rays"]  # how far a footprint reaches along the three directions,
    growth: Float[Array, "3 rays"]  # and farther for every unit of depth
    steepest: Float[Array, ""]  # the largest growth
    stretch: Float[Array, ""]  # by which planes across the axis cut obliquely through rays
    narrow: Bool[Array, ""]


def beam_of(rays: Ray, used: Bool[Array, " rays"]) -> Beam:
    """Returns the beam of one bundle."""
    number = jnp.maximum(jnp.sum(used), 1)
    mean = lambda x: jnp.sum(jnp.where(used[:, None], x, 0), axis=0) / number
    unit, origin = safe_normalise(rays.direction), mean(rays.origin)
    axis = safe_normalise(mean(unit))
    axes = jnp.stack([*tangents(axis), axis])
    start, way = _along(axes, rays.origin - origin), _along(axes, rays.direction)
    cosine = _along(axes, unit)[2]
    narrow = jnp.all((cosine > _NARROW) | ~used)
    speed = jnp.where(cosine > _NARROW, way[2], 1)
    slope = way[:2] / speed
    # The ends of every ray; other rays of the footprint begin earlier, and end later.
    ends = jnp.stack([rays.near, jnp.minimum(rays.far, _LONG)])
    depth, more = start[2] + ends * speed, _footprint(rays, ends)[1]
    begin = jnp.min(jnp.where(used, depth[0] - more[0], jnp.inf))
    far = jnp.max(jnp.where(used, depth[1] + more[1], -jnp.inf))
    # The width is convex over depth: between two planes it is at most what joins its values there.
    planes = (jnp.stack([begin, far])[:, None] - start[2]) / speed
    across, first, last = _widths_between(_sides(rays, axes, planes, slope))
    growth = (last - first) / jnp.maximum(far - begin, jnp.finfo(far.dtype).tiny)
    steepest = jnp.max(jnp.where(used, jnp.abs(growth), 0))
    near = jnp.where(used, jnp.where(narrow, depth[0] - more[0], -jnp.inf), jnp.inf)
    stretch = 1 / jnp.maximum(jnp.min(jnp.where(used, cosine, 1)), _NARROW)
    place, width = start[:2] - start[2] * slope, first - growth * begin
    lines = (origin, axes, place, slope, near, far, begin)
    return Beam(*lines, across, width, growth, steepest, stretch, narrow)


def _widths_between(sides: Float[Array, "..."]) -> tuple[Array, Array, Array]:
    """Returns the direction across longer sides, and half widths in the two planes."""
    across = _across(jnp.sum(sides, axis=0))
    return across, *_half_widths(sides, across)


def _along(axes: Float[Array, "3 3"], vectors: Float[Array, "n 3"]) -> Float[Array, "3 n"]:
    return jnp.sum(axes[:, None] * vectors, axis=-1)


def _footprint(rays: Ray, t: Float[Array, "ends rays"]) -> tuple[Array, Array]:
    """Returns the sides of footprints, and how far they reach along their rays."""
    sides = rays.d_origin + t[..., None, None] * rays.d_direction
    along = jnp.sum(sides * safe_normalise(rays.direction)[:, None, :], axis=-1)
    return sides, jnp.sum(jnp.abs(along), axis=-1)


def _sides(
    rays: Ray, axes: Float[Array, "3 3"], t: Float[Array, "ends rays"], slope: Array
) -> Float[Array, "ends 2 rays 2"]:
    """Returns the two sides of footprints, the last axis, in the planes across the axis."""
    sides = _footprint(rays, t)[0]
    # Moved along the ray into the plane: s - s_z slope.
    u, v, z = (jnp.sum(sides * axis, axis=-1) for axis in axes)
    return jnp.stack([u - z * slope[0][:, None], v - z * slope[1][:, None]], axis=1)


def _across(sides: Float[Array, "2 rays 2"]) -> Float[Array, "2 rays"]:
    """Returns unit vectors across the longer sides; any for footprints without sides."""
    lengths = jnp.sum(sides * sides, axis=0)
    u, v = jnp.where(lengths[:, 0] > lengths[:, 1], sides[..., 0], sides[..., 1])
    return safe_normalise(jnp.stack([-v, u], axis=-1)).T


def _half_widths(
    sides: Float[Array, "ends 2 rays 2"], across: Float[Array, "2 rays"]
) -> Float[Array, "ends 3 rays"]:
    """Returns how far footprints reach along the plane's axes, and across their longer sides."""
    other = jnp.sum(sides * across[..., None], axis=1, keepdims=True)
    along = jnp.concatenate([sides, other], axis=1)
    return (1 + _CURVED) * jnp.sum(jnp.abs(along), axis=-1) / 2


class _Disks(NamedTuple):
    """Balls over the planes at the depths of their centres."""

    depth: Float[Array, " balls"]
    place: Float[Array, "2 balls"]
    within: Float[Array, " balls"]  # the depth, where the bundle has rays
    radius: Float[Array, " balls"]  # -inf for balls that no ray touches
    top: Float[Array, " balls"]


def _disks(beam: Beam, balls: Ball) -> _Disks:
    away = balls.center - beam.origin
    *place, depth = _along(beam.axes, away)
    rounding = _ROUNDING * safe_norm(away)
    # Over the ball, footprints grow on.
    radius = beam.stretch * balls.radius + beam.steepest * balls.radius + rounding
    beyond = beam.narrow & (depth - balls.radius > beam.far + rounding)
    radius = jnp.where(beam.narrow, radius, jnp.inf)
    radius = jnp.where((balls.radius < 0) | beyond, -jnp.inf, radius)
    within = jnp.clip(depth, beam.begin, beam.far)
    return _Disks(depth, jnp.stack(place), within, radius, depth + balls.radius + rounding)


def touched_words(beams: Beam, balls: Ball) -> UInt32[Array, "bundles rays"]:
    """Returns for every ray a word: which of the 32 balls of its bundle it may touch.

    Never false for a ball that the ray's footprint touches. Everything has a leading axis.
    """
    disks = jax.vmap(_disks)(beams, balls)
    word = jnp.zeros(beams.near.shape, jnp.uint32)
    for bit in range(balls.radius.shape[1]):
        one = jax.tree.map(lambda x: x[..., bit, None], disks)  # noqa: B023
        u, v = (
            beams.place[:, side] + one.depth * beams.slope[:, side] - one.place[:, side]
            for side in range(2)
        )
        away = u, v, u * beams.across[:, 0] + v * beams.across[:, 1]
        outside = one.top < beams.near
        for direction, distance in enumerate(away):
            width = beams.width[:, direction] + one.within * beams.growth[:, direction]
            # Written so that a comparison with NaN says "touches".
            outside |= jnp.abs(distance) > one.radius + width
        word |= jnp.where(outside, 0, jnp.uint32(1 << bit))
    return word
