"""The part of a pixel inside a convex polygon, which is given by its edges.

A pixel is the square of side one about the origin. Edge `i` is where `m_i + s_i . p` is zero; it
has the unit normal `n_i = s_i / |s_i|`, into the polygon, and the distance `d_i = m_i / |s_i|`. Its
points are `q_i(u) = u (-n_iy, n_ix) - d_i n_i`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Scalar
from ._safe import safe_norm


# Edges farther from the pixel's middle than this count as so far away, and two that cross at a
# smaller angle (its sine) than that as parallel.
_FAR, _LEAST_SINE = 10.0, 1e-5
# An edge at a smaller angle (its sine) to a side of the pixel counts as parallel to it, and leaves
# the pixel there over a distance as long as that: on the side itself, it is half inside.
_ON_SIDE = 2e-4


@jax.jit
def polygon_coverage(margins: Float[Array, " edges"], gradients: Float[Array, "edges 2"]) -> Scalar:
    """Computes the part of a pixel in which several linear functions are all positive.

    Exact, corners included; its derivative is the integral along the edges.

    **Arguments:**

    - `margins`: the functions in the middle of the pixel, `edges`.
    - `gradients`: the functions' derivatives by the pixel's x and y, a row an edge, `edges 2`.

    **Returns:**

    A number between 0 and 1.

    Example: a corner in the middle of the pixel.

    ```python
    quarter = sg.numerics.polygon_coverage(jnp.zeros(2), jnp.eye(2))
    ```
    """
    return _covered(margins, gradients)


@jax.custom_jvp
def _covered(margins: Float[Array, " edges"], gradients: Float[Array, "edges 2"]) -> Scalar:
    edges = _edges_of(margins, gradients)
    return _area(edges, _clip(edges))


@_covered.defjvp
def _covered_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d coverage = sum_i l_i / |s_i| (d m_i + q_i . d s_i), with q_i the middle of what is left.
    # At its point q, edge i moves outwards by (d m_i + q . d s_i) / |s_i|.
    (margins, gradients), (d_margins, d_gradients) = primals, tangents
    edges = _edges_of(margins, gradients)
    left = _clip(edges)
    # An edge on a side of the pixel is half inside, which makes its derivative the mean of both.
    lengths = left.length * left.share * (0.5 - _past_side(edges))
    density = (lengths / edges.steepness).astype(margins.dtype)
    change = jnp.sum(density * (d_margins + jnp.sum(left.middle * d_gradients.T, axis=0)))
    return _area(edges, left), change


class _Edges(NamedTuple):
    """The edges of a polygon: `|s|`, `d`, `n`, and the components of `n` that are nearly zero."""

    steepness: Float[Array, " edges"]
    distance: Float[Array, " edges"]
    normal: Float[Array, "2 edges"]
    flat: Bool[Array, "2 edges"]  # the edge is parallel to sides of the pixel


def _edges_of(margins: Array, gradients: Array) -> _Edges:
    # Where a function is constant, |s| is tiny, so that its edge is far away.
    steepness = jnp.maximum(safe_norm(gradients), jnp.finfo(gradients.dtype).tiny ** 0.25)
    distance = jnp.clip(margins / steepness, -_FAR, _FAR)
    normal = (gradients / steepness[:, None]).T
    return _Edges(steepness, distance, normal, jnp.abs(normal) < _ON_SIDE)


class _Remains(NamedTuple):
    """The rest of each edge within the pixel and the other edges."""

    length: Float[Array, " edges"]
    middle: Float[Array, "2 edges"]
    share: Float[Array, " edges"]  # the part that parallel edges leave: half of one in one place
    kept: Bool[Array, " edges"]  # whether they leave any


def _clip(edges: _Edges) -> _Remains:
    """Cuts the edges off; those parallel to sides of the pixel by the other two sides alone."""
    # q_i(u) remains between the largest lower and the least upper bound of u: l_i = high - low.
    lower, upper, share, kept = _bounds_by_others(edges)
    pixel = _bounds_by_pixel(edges)
    low = jnp.max(jnp.concatenate([pixel[0], lower]), axis=0, initial=-_FAR)
    high = jnp.min(jnp.concatenate([pixel[1], upper]), axis=0, initial=_FAR)
    near = jnp.abs(edges.distance) < 1
    length = jnp.where(near, jnp.maximum(high - low, 0), 0)
    x, y = edges.normal
    middle = jnp.stack([-y, x]) * (low + high) / 2 - edges.normal * edges.distance
    return _Remains(length, middle, share, kept)


def _bounds_by_pixel(edges: _Edges) -> tuple[Float[Array, "2 edges"], Float[Array, "2 edges"]]:
    """Returns the bounds of `u` in the pixel, from below and from above."""
    # |q_x| <= 1/2 is |u + d n_x / n_y| <= 1 / (2 |n_y|); |q_y| <= 1/2, |u - d n_y / n_x| <= ...
    x, y = edges.normal
    flat = edges.flat[::-1]
    inverse = 1 / jnp.where(flat, 1, edges.normal[::-1])
    middle, half = edges.distance * jnp.stack([-x, y]) * inverse, jnp.abs(inverse) / 2
    return jnp.where(flat, -_FAR, middle - half), jnp.where(flat, _FAR, middle + half)


def _bounds_by_others(edges: _Edges) -> tuple[Array, Array, Array, Array]:
    """Returns the bounds of `u` by the other edges, from below and from above.

    Returns also which parts of edges those parallel to them leave, and whether any.
    """
    # Edge j keeps d_j + n_j . q_i(u) >= 0, that is gap_ij + u cross_ij >= 0 with
    # gap_ij = d_j - d_i n_i . n_j and cross_ij = n_i x n_j: a lower or an upper bound of u.
    (x, y), distance, count = edges.normal, edges.distance, len(edges.distance)
    if count == 1:
        none = jnp.full((1, 1), _FAR, x.dtype)
        return -none, none, jnp.ones_like(x), jnp.ones(1, bool)
    turns, numbers = np.arange(1, count)[:, None], np.arange(count)
    other = lambda values: jnp.stack([jnp.roll(values, -turn) for turn in range(1, count)])
    cross, along = x * other(y) - y * other(x), x * other(x) + y * other(y)
    # Of parallel edges in one place, half of each remains: of two that look alike, the first one
    # bounds the area; between two that look at each other, it has no width.
    parallel = jnp.abs(cross) < _LEAST_SINE
    gap = other(distance) - distance * jnp.where(parallel, jnp.sign(along), along)
    first = (along < 0) | (numbers < (numbers + turns) % count)
    kept = jnp.all(~parallel | (gap > 0) | ((gap == 0) & first), axis=0)
    shares = jnp.where(parallel, jnp.clip(0.5 + gap / _LEAST_SINE, 0, 1), 1)
    bound = -gap / jnp.where(parallel, 1, cross)
    low = jnp.where(~parallel & (cross > 0), bound, -_FAR)
    high = jnp.where(~parallel & (cross < 0), bound, _FAR)
    return low, high, jnp.prod(shares, axis=0), kept


def _past_side(edges: _Edges) -> Float[Array, " edges"]:
    """Returns how far an edge along a side of the pixel is from it, outwards, in `_ON_SIDE`s."""
    flat = edges.flat[0] | edges.flat[1]
    past = (jnp.abs(edges.distance) - 0.5) / _ON_SIDE
    return jnp.where(flat, jnp.clip(past, -0.5, 0.5), -0.5)


def _area(edges: _Edges, left: _Remains) -> Scalar:
    """Computes the area that is left of the pixel."""
    # The integral of x dy around it: along edge i that is -n_ix l_i q_ix; along the right and the
    # left side of the pixel, of which lengths l are left, it is l / 2.
    upright, sides = _upright_sides(edges)
    inside = left.kept & jnp.where(edges.flat[1], upright[0] != upright[1], True)
    around = -jnp.sum(jnp.where(inside, edges.normal[0] * left.length * left.middle[0], 0))
    # An edge leaves over a distance, not at once: the integral of both from afar, less each other.
    gap = jnp.where(left.kept, 0.5 - jnp.abs(_past_side(edges)), 0)
    less = jnp.sum(jnp.sign(edges.distance) * left.length * _ON_SIDE / 2 * gap**2)
    return jnp.clip(around + jnp.sum(sides) / 2 - less, 0, 1)


def _upright_sides(edges: _Edges) -> tuple[Bool[Array, "2 edges"], Float[Array, "2"]]:
    """Returns which edges leave the right and the left side of the pixel, if they are parallel to
    it, and the lengths of what all of them leave of both."""
    # At x = +-1/2 edge j keeps d_j +- n_jx / 2 + y n_jy > 0: a lower or an upper bound of y; where
    # it is parallel, all or nothing.
    half = jnp.array([[0.5], [-0.5]], edges.distance.dtype)
    (x, y), upright = edges.normal, edges.flat[1]
    margin = edges.distance + half * jnp.sign(x)
    # Of two that look at each other in one place, one keeps the side.
    kept = jnp.where(x > 0, margin >= 0, margin > 0)
    slope = jnp.where(upright, 1, y)
    bound = -(edges.distance + half * x) / slope
    low = jnp.max(jnp.where(~upright & (y > 0), bound, -0.5), axis=1, initial=-0.5)
    high = jnp.min(jnp.where(~upright & (y < 0), bound, 0.5), axis=1, initial=0.5)
    left = jnp.all(kept | ~upright, axis=1)
    return kept, jnp.where(left, jnp.maximum(high - low, 0), 0)
