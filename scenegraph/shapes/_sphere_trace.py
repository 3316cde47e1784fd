"""The search along a ray for the zeros of a function of space; without derivatives."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, PyTree, Scalar, Vector
from ..numerics import safe_norm
from ..rays import Ray, Span
from ..rowwise import loop_rows


# A ray approaches the surface where its distance falls below this part of the largest one before.
_FALL = 0.9
_NEWTON_STEPS = 24

# A function of its constants and a point.
Distance = Callable[[PyTree, Vector], Scalar]


class Line(NamedTuple):
    """The part of a ray that is searched, and the constants of the function."""

    constants: PyTree
    origin: Vector
    direction: Vector
    near: Scalar
    far: Scalar
    near_width: Scalar  # of the cone
    far_width: Scalar
    speed: Scalar
    clearance: Scalar

    def width(self, t: Scalar) -> Scalar:
        """Returns a bound of the cone's width, above zero."""
        # The width is a convex function of t, and so below its chord.
        part = (t - self.near) / jnp.maximum(self.far - self.near, 1e-30)
        width = self.near_width + part * (self.far_width - self.near_width)
        return jnp.maximum(width, 1e-3 * self.clearance)


class Found(NamedTuple):
    """The points where a ray meets a surface, and where it comes nearest."""

    hit: Scalar
    is_hit: Bool[Array, ""]
    nearest: Scalar  # or the deepest point
    seen: Bool[Array, ""]  # false if no part of the surface can be in the pixel


class _March(NamedTuple):
    """The next point of a march, and what is known of those before."""

    t: Scalar
    left: Array  # number of steps
    last_t: Scalar
    last: Scalar
    peak: Scalar  # the largest value that was clear of the surface
    steepest: Scalar
    low_t: Scalar  # the lowest point
    low: Scalar
    low_from: Scalar  # its neighbours
    low_to: Scalar
    root_from: Scalar  # the neighbours of the first root
    root_to: Scalar
    is_hit: Bool[Array, ""]


def search(
    distance: Distance, constants: PyTree, ray: Ray, span: Span, clearance: Scalar, steps: int
) -> Found:
    """Searches a span of a ray: a march, then the least value near an outline, then the root."""
    # docs/surfaces.md, "Functions of space": a march; Newton's method for f' = 0 where an outline
    # may be in the cone; and for f = 0 between the neighbours of a change of sign.
    line = _line(constants, ray, span, clearance)
    start = _start(line, span.near > ray.near, steps)
    end = loop_rows(partial(_advance, distance, steps), line, start, span.far > span.near)
    # Below this, the cone (twice its width) may hold an outline, or the interval between two
    # samples (a step) a part of the surface, of a function that is as steep as it has been so far.
    wide = end.steepest * (2 * line.width(end.low_t) + _spacing(line, steps))
    grazes = (end.low < wide) & ~(end.is_hit & (end.low < -wide))
    derivative = partial(_derivative, distance)
    nearest = _solve(derivative, line, (end.low_from, end.low_to), end.low_t, grazes)
    least = _along(distance, line, nearest)
    better = grazes & (least <= end.low)
    nearest = jnp.where(better, nearest, end.low_t)
    # What is thinner than a step is found only here.
    thin = better & ~end.is_hit & (least < 0)
    # Positive before the nearest point, negative there: the root lies between.
    low = jnp.where(thin, end.low_from, end.root_from)
    high = jnp.where(thin, nearest, end.root_to)
    is_hit = end.is_hit | thin
    fall = lambda line, t: -_along(distance, line, t)
    hit = _solve(fall, line, (low, high), (low + high) / 2, is_hit)
    return Found(hit, is_hit, nearest, is_hit | grazes)


def _line(constants: PyTree, ray: Ray, span: Span, clearance: Scalar) -> Line:
    def width(t: Scalar) -> Scalar:
        # |s_x| + |s_y| with s = d_origin + t d_direction: norms of linear functions are convex.
        sides = ray.d_origin + t * ray.d_direction
        return safe_norm(sides[0]) + safe_norm(sides[1])

    near, far, speed = span.near, span.far, safe_norm(ray.direction)
    widths = width(near), width(far)
    return Line(constants, ray.origin, ray.direction, near, far, *widths, speed, clearance)


def _start(line: Line, entered: Bool[Array, ""], steps: int) -> _March:
    zero, near, infinite = jnp.zeros_like(line.near), line.near, jnp.full_like(line.near, jnp.inf)
    # A ray that comes from outside of the bounds is clear of the surface, if only by a little.
    peak = jnp.where(entered, infinite, zero)
    lowest = (near, infinite, near, near)
    left = jnp.asarray(2 * steps, jnp.int32)
    one = jnp.ones_like(near)
    return _March(near, left, near, zero, peak, one, *lowest, near, near, jnp.zeros((), bool))


def _along(distance: Distance, line: Line, t: Scalar) -> Scalar:
    return distance(line.constants, line.origin + t * line.direction)


def _derivative(distance: Distance, line: Line, t: Scalar) -> Scalar:
    return jax.jvp(lambda t: _along(distance, line, t), (t,), (jnp.ones_like(t),))[1]


def _spacing(line: Line, steps: int) -> Scalar:
    """Returns the length of a step if all are equally long."""
    return line.speed * (line.far - line.near) / steps


def _step_length(line: Line, old: _March, value: Scalar, clear: Array, steps: int) -> Scalar:
    """Returns the function's value, but half of the cone's width at least.

    The rest of the ray, divided by the number of steps that are left, is the least length of all.
    """
    # Until it is clear of the surface at its start, a ray goes on by the clearance at least.
    size = jnp.where(clear, jnp.abs(value), jnp.maximum(value, line.clearance))
    least = jnp.minimum(line.width(old.t) / 2, _spacing(line, steps))
    least = jnp.maximum(least, line.speed * (line.far - old.t) / old.left)
    return jnp.maximum(size, least)


def _advance(distance: Distance, steps: int, line: Line, old: _March) -> tuple[_March, Array]:
    """Takes a step, and notes the first change of sign and the lowest value so far."""
    t, value, width = old.t, _along(distance, line, old.t), line.width(old.t)
    begins = old.left == 2 * steps
    # A ray that starts on the surface is near to it, or even inside, without approaching it.
    peak = jnp.where(begins, jnp.where(old.peak > 0, jnp.maximum(value, 0), 0), old.peak)
    peak = jnp.maximum(peak, jnp.where(value > line.clearance, value, 0))
    clear = peak > 0
    length = _step_length(line, old, value, clear, steps)
    following = jnp.minimum(t + length / line.speed, line.far)
    # |f - f_last| / (|d| (t - t_last)), the slope along the ray; of a distance it is 1 at most.
    change = jnp.abs(value - old.last) / jnp.maximum(line.speed * (t - old.last_t), 1e-30)
    steepest = jnp.where(begins, 1, jnp.maximum(old.steepest, change))
    enters = clear & (value <= 0) & (old.last > 0) & ~old.is_hit
    is_hit = old.is_hit | enters
    lower = (((value < _FALL * peak) & clear) | is_hit) & (value < old.low)
    new = _March(
        following,
        old.left - 1,
        t,
        value,
        peak,
        steepest,
        jnp.where(lower, t, old.low_t),
        jnp.where(lower, value, old.low),
        jnp.where(lower, old.last_t, old.low_from),
        jnp.where(lower, following, old.low_to),
        jnp.where(enters, old.last_t, old.root_from),
        jnp.where(enters, t, old.root_to),
        is_hit,
    )
    # From here on, the surface is farther away than the cone is wide: no outline is in the pixel.
    deep = is_hit & (value < -2 * steepest * (width + _spacing(line, steps)))
    return new, (t < line.far) & (old.left > 1) & ~deep


def _solve(
    function: Callable[[Line, Scalar], Scalar],
    line: Line,
    ends: tuple[Scalar, Scalar],
    guess: Scalar,
    wanted: Bool[Array, ""],
) -> Scalar:
    """Finds where a function rises through zero, by Newton's method within an interval.

    Where a step leaves the interval, or is not half as long as the last, the interval is halved.
    """

    def step(line: Line, state: tuple) -> tuple[tuple, Bool[Array, ""]]:
        t, low, high, last, left = state
        value, rate = jax.jvp(lambda t: function(line, t), (t,), (jnp.ones_like(t),))
        # The interval keeps f(low) < 0 <= f(high).
        low, high = jnp.where(value < 0, t, low), jnp.where(value < 0, high, t)
        newton = t - value / rate
        good = (newton >= low) & (newton <= high) & (2 * jnp.abs(newton - t) < last)
        following = jnp.where(good, newton, (low + high) / 2)
        moved = jnp.abs(following - t)
        tiny = 2 * jnp.finfo(t.dtype).eps * jnp.maximum(jnp.abs(t), line.far - line.near)
        more = (moved > tiny) & (left > 1) & (value != 0)
        return (jnp.where(value == 0, t, following), low, high, moved, left - 1), more

    steps = jnp.asarray(_NEWTON_STEPS, jnp.int32)
    start = guess, *ends, jnp.full_like(guess, jnp.inf), steps
    return loop_rows(step, line, start, wanted)[0]
