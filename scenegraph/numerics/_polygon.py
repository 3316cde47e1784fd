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
# smaller angle (its sine) than that as crossing at that angle.
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
    return _area(edges, *_clip(edges))


@_covered.defjvp
def _covered_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d coverage = sum_i l_i / |s_i| (d m_i + q_i . d s_i), with q_i the middle of what is left.
    # At its point q, edge i moves outwards by (d m_i + q . d s_i) / |s_i|.
    (margins, gradients), (d_margins, d_gradients) = primals, tangents
    edges = _edges_of(margins, gradients)
    lengths, middles = _clip(edges)
    density = (lengths * _inside(edges) / edges.steepness).astype(margins.dtype)
    change = jnp.sum(density * (d_margins + jnp.sum(middles * d_gradients.T, axis=0)))
    return _area(edges, lengths, middles), change


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


def _clip(edges: _Edges) -> tuple[Float[Array, " edges"], Float[Array, "2 edges"]]:
    """Returns the lengths of what the pixel and the other edges leave of each, and the middles.

    Edges that are parallel to sides of the pixel are cut by the other two sides alone.
    """
    # q_i(u) remains between the largest lower and the least upper bound of u: l_i = high - low.
    bounds = zip(_bounds_by_pixel(edges), _bounds_by_others(edges), strict=True)
    low, high = (jnp.concatenate(both) for both in bounds)
    low, high = jnp.max(low, axis=0, initial=-_FAR), jnp.min(high, axis=0, initial=_FAR)
    near = jnp.abs(edges.distance) < 1
    lengths = jnp.where(near, jnp.maximum(high - low, 0), 0)
    x, y = edges.normal
    middles = jnp.stack([-y, x]) * (low + high) / 2 - edges.normal * edges.distance
    return lengths, middles


def _bounds_by_pixel(edges: _Edges) -> tuple[Float[Array, "2 edges"], Float[Array, "2 edges"]]:
    """Returns the bounds of `u` in the pixel, from below and from above."""
    # |q_x| <= 1/2 is |u + d n_x / n_y| <= 1 / (2 |n_y|); |q_y| <= 1/2, |u - d n_y / n_x| <= ...
    x, y = edges.normal
    flat = edges.flat[::-1]
    inverse = 1 / jnp.where(flat, 1, edges.normal[::-1])
    middle, half = edges.distance * jnp.stack([-x, y]) * inverse, jnp.abs(inverse) / 2
    return jnp.where(flat, -_FAR, middle - half), jnp.where(flat, _FAR, middle + half)


def _bounds_by_others(edges: _Edges) -> tuple[Array, Array]:
    """Returns the bounds of `u` by the other edges, from below and from above."""
    # Edge j keeps d_j + n_j . q_i(u) >= 0, that is gap_ij + u cross_ij >= 0 with
    # gap_ij = d_j - d_i n_i . n_j and cross_ij = n_i x n_j: a lower or an upper bound of u.
    (x, y), distance, count = edges.normal, edges.distance, len(edges.distance)
    if count == 1:
        return jnp.full((1, 1), -_FAR, x.dtype), jnp.full((1, 1), _FAR, x.dtype)
    turns, numbers = np.arange(1, count)[:, None], np.arange(count)
    other = lambda values: jnp.stack([jnp.roll(values, -turn) for turn in range(1, count)])
    cross, along = x * other(y) - y * other(x), x * other(x) + y * other(y)
    # Parallel edges are turned against each other, both by the same angle: they cross far away
    # or, if they coincide, where each leaves half of the other.
    parallel = jnp.abs(cross) < _LEAST_SINE
    turned = np.where(numbers < (numbers + turns) % count, _LEAST_SINE, -_LEAST_SINE)
    cross = jnp.where(parallel, turned.astype(cross.dtype), cross)
    gap = other(distance) - distance * jnp.where(parallel, jnp.sign(along), along)
    bound = -gap / cross
    return jnp.where(cross > 0, bound, -_FAR), jnp.where(cross < 0, bound, _FAR)


def _past_side(edges: _Edges) -> Float[Array, " edges"]:
    """Returns how far an edge along a side of the pixel is from it, outwards, in `_ON_SIDE`s."""
    flat = edges.flat[0] | edges.flat[1]
    past = (jnp.abs(edges.distance) - 0.5) / _ON_SIDE
    return jnp.where(flat, jnp.clip(past, -0.5, 0.5), -0.5)


def _inside(edges: _Edges) -> Float[Array, " edges"]:
    """Returns the part of each edge that counts as inside of the pixel: half of one on a side."""
    return 0.5 - _past_side(edges)


def _area(edges: _Edges, lengths: Array, middles: Array) -> Scalar:
    """Computes the area that is left of the pixel."""
    # The integral of x dy around it: along edge i that is -n_ix l_i q_ix; along the right and the
    # left side of the pixel, of which lengths l are left, it is l / 2.
    upright, sides = _upright_sides(edges)
    inside = jnp.where(edges.flat[1], upright[0] != upright[1], True)
    around = -jnp.sum(jnp.where(inside, edges.normal[0] * lengths * middles[0], 0))
    # The integral of `_inside` over the edge's distance, less that of a step.
    gap = 0.5 - jnp.abs(_past_side(edges))
    less = jnp.sum(jnp.sign(edges.distance) * lengths * _ON_SIDE / 2 * gap**2)
    return jnp.clip(around + jnp.sum(sides) / 2 - less, 0, 1)


def _upright_sides(edges: _Edges) -> tuple[Bool[Array, "2 edges"], Float[Array, "2"]]:
    """Returns which edges leave the right and the left side of the pixel, if they are parallel to
    it, and the lengths of what all of them leave of both."""
    # At x = +-1/2 edge j keeps d_j +- n_jx / 2 + y n_jy > 0: a lower or an upper bound of y; where
    # it is parallel, all or nothing.
    half = jnp.array([[0.5], [-0.5]], edges.distance.dtype)
    (x, y), upright = edges.normal, edges.flat[1]
    kept = edges.distance + half * jnp.sign(x) >= 0
    slope = jnp.where(upright, 1, y)
    bound = -(edges.distance + half * x) / slope
    low = jnp.max(jnp.where(~upright & (y > 0), bound, -0.5), axis=1, initial=-0.5)
    high = jnp.min(jnp.where(~upright & (y < 0), bound, 0.5), axis=1, initial=0.5)
    left = jnp.all(kept | ~upright, axis=1)
    return kept, jnp.where(left, jnp.maximum(high - low, 0), 0)
