"""Beams: the rays of a bundle as lines over depth, and the balls that every one of them may touch.

In the frame of the bundle's axis, a ray passes the plane at depth `z` at `place + z slope`, and a
ball is touched if that is within `reach` of its centre: a dozen operations for a ray and a ball,
where the exact share of a triangle takes hundreds.
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
    begin: Float[Array, ""]  # the depth at which the first ray begins; there,
    width: Float[Array, ""]  # footprints reach so far from their rays,
    growth: Float[Array, ""]  # and farther for every unit of depth
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
    planes = jnp.stack([begin, far])[:, None]
    halves = jnp.max(jnp.where(used, _footprint(rays, (planes - start[2]) / speed)[0], 0), axis=1)
    growth = (halves[1] - halves[0]) / jnp.maximum(far - begin, jnp.finfo(far.dtype).tiny)
    near = jnp.where(used, jnp.where(narrow, depth[0] - more[0], -jnp.inf), jnp.inf)
    stretch = 1 / jnp.maximum(jnp.min(jnp.where(used, cosine, 1)), _NARROW)
    place = start[:2] - start[2] * slope
    return Beam(
        origin, axes, place, slope, near, far, begin, halves[0], growth, stretch, narrow
    )


def _along(axes: Float[Array, "3 3"], vectors: Float[Array, "n 3"]) -> Float[Array, "3 n"]:
    return jnp.sum(axes[:, None] * vectors, axis=-1)


def _footprint(rays: Ray, t: Float[Array, "ends rays"]) -> tuple[Array, Array]:
    """Returns how far footprints reach across their rays, and along them."""
    sides = rays.d_origin + t[..., None, None] * rays.d_direction
    unit = safe_normalise(rays.direction)[:, None, :]
    along = jnp.sum(sides * unit, axis=-1)
    x, y = jnp.moveaxis(sides - along[..., None] * unit, -2, 0)
    # Half the longer diagonal of the parallelogram.
    return jnp.maximum(safe_norm(x + y), safe_norm(x - y)) / 2, jnp.sum(jnp.abs(along), axis=-1)


class _Disks(NamedTuple):
    """What balls are over the planes at the depths of their centres."""

    depth: Float[Array, " balls"]
    place: Float[Array, "2 balls"]
    squared: Float[Array, " balls"]  # the largest squared distance of rays; -1 for no ray
    top: Float[Array, " balls"]


def _disks(beam: Beam, balls: Ball) -> _Disks:
    away = balls.center - beam.origin
    *place, depth = _along(beam.axes, away)
    rounding = _ROUNDING * safe_norm(away)
    within = jnp.clip(depth, beam.begin, beam.far) - beam.begin
    width = beam.width + beam.growth * within + jnp.abs(beam.growth) * balls.radius
    reach = beam.stretch * (balls.radius + width) + rounding
    nowhere = (balls.radius < 0) | (depth - balls.radius > beam.far + rounding)
    squared = jnp.where(beam.narrow, reach * reach, jnp.inf)
    squared = jnp.where(nowhere, -1, squared)
    return _Disks(depth, jnp.stack(place), squared, depth + balls.radius + rounding)


def touched_words(beams: Beam, balls: Ball) -> UInt32[Array, "bundles rays"]:
    """Returns for every ray a word: which of the 32 balls of its bundle it may touch.

    Never false for a ball that the ray's footprint touches. Everything has a leading axis.
    """
    disks = jax.vmap(_disks)(beams, balls)
    word = jnp.zeros(beams.near.shape, jnp.uint32)
    for bit in range(balls.radius.shape[1]):
        one = jax.tree.map(lambda x: x[..., bit, None], disks)  # noqa: B023
        away = beams.place + one.depth[:, None] * beams.slope - one.place
        # Written so that a comparison with NaN says "touches".
        outside = jnp.sum(away * away, axis=1) > one.squared
        outside |= one.top < beams.near
        word |= jnp.where(outside, 0, jnp.uint32(1 << bit))
    return word
