"""The part of a pixel on one side of an edge: what gives outlines their gradients.

A pixel is the square of side one about the origin. An edge is where a linear function
`m + s . p` is zero; `m` is its margin and `s` its gradient. The formulas are derived in
docs/surfaces.md, "Coverage".
"""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ._safe import safe_divide, safe_norm, safe_normalise


# An edge that is nearly parallel to a side of the pixel is taken as turned by this much: without it
# the corner that it cuts off would be smaller than rounding.
_LEAST_TURN = 1e-4

# Edges of a polygon that cross at a smaller angle than this count as parallel, and edges farther
# from the pixel's middle than that as so far away.
_PARALLEL, _FAR = 1e-5, 10.0


@jax.custom_jvp
def half_plane_coverage(margin: Scalar, gradient: Float[Array, "2"]) -> Scalar:
    """Computes the part of a pixel in which a linear function is positive.

    It is the integral of a trapezoid, and its derivative is the integral along the edge.

    **Arguments:**

    - `margin`: the function's value in the middle of the pixel.
    - `gradient`: the function's derivatives by the pixel's x and y, `2`.

    **Returns:**

    A number between 0 and 1, exact; a step where the gradient is zero.

    Example: an edge through the middle covers half of the pixel.

    ```python
    half = sg.numerics.half_plane_coverage(jnp.zeros(()), jnp.array([1.0, 0.3]))
    ```
    """
    # beyond = (c^2 + 2 b max(r - b, 0)) / (2 a b)
    a, b, r, c = _trapezoid(margin, gradient)
    beyond = (c**2 + 2 * b * jnp.maximum(r - b, 0)) / (2 * b * a)
    return jnp.where(margin > 0, 1 - beyond, beyond)


def _least_slope(margin: Scalar) -> float:
    """Returns the slope below which a function is taken to be constant over the pixel."""
    return float(jnp.finfo(margin.dtype).tiny) ** 0.25


def _trapezoid(margin: Scalar, gradient: Float[Array, "2"]) -> tuple[Scalar, ...]:
    """Computes `a`, `b`, `r` and `c` of docs/surfaces.md, "Coverage", one edge."""
    # a >= b are |s_x| and |s_y| in order: the trapezoid's foot is a + b wide, its top a - b.
    x, y = jnp.abs(gradient[0]), jnp.abs(gradient[1])
    a = jnp.maximum(jnp.maximum(x, y), _least_slope(margin))
    b = jnp.maximum(jnp.minimum(x, y), _LEAST_TURN * a)
    # r = max((a + b) / 2 - |m|, 0) of the foot lies beyond the edge, c = min(r, b) on its ramp.
    r = jnp.maximum((a + b) / 2 - jnp.abs(margin), 0)
    return a, b, r, jnp.minimum(r, b)


@half_plane_coverage.defjvp
def _half_plane_coverage_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (margin, gradient), (d_margin, d_gradient) = primals, tangents
    a, b, r, c = _trapezoid(margin, gradient)
    # d coverage / dm = c / (a b), the density of the edge in the pixel. A function and its multiple
    # have the same coverage C, so m C_m + a C_a + b C_b = 0 gives the derivative by a.
    # An edge outside the pixel, or a step, has the derivative zero, and zero further derivatives.
    crosses = (r > 0) & (a > _least_slope(margin))
    a, b, c = jnp.where(crosses, a, 1), jnp.where(crosses, b, 1), jnp.where(crosses, c, 0)
    by_margin = safe_divide(c, b * a)
    side = jnp.where(margin > 0, -1.0, 1.0)
    by_b = side * by_margin * (1 - safe_divide(c, b)) / 2
    by_a = -safe_divide(margin * by_margin + b * by_b, a)
    swapped = jnp.abs(gradient[0]) < jnp.abs(gradient[1])
    by_gradient = jnp.where(swapped, jnp.stack([by_b, by_a]), jnp.stack([by_a, by_b]))
    change = by_margin * d_margin + jnp.sum(by_gradient * jnp.sign(gradient) * d_gradient)
    return half_plane_coverage(margin, gradient), change


def slab_coverage(margins: Float[Array, "2"], gradients: Float[Array, "2 2"]) -> Scalar:
    """Computes the part of a pixel between two edges that do not cross in it.

    **Arguments:**

    - `margins`: the two functions in the middle of the pixel, positive inside, `2`.
    - `gradients`: the functions' derivatives by the pixel's x and y, a row an edge, `2 2`.

    **Returns:**

    A number between 0 and 1.
    """
    return jnp.maximum(jnp.sum(jax.vmap(half_plane_coverage)(margins, gradients)) - 1, 0)


@jax.custom_jvp
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
    # coverage = 1/2 sum_i d_i l_i: the triangles between the middle and each side that is left.
    distances, lengths, _ = _sides(margins, gradients)
    return jnp.clip(jnp.sum(distances * lengths) / 2, 0, 1)


def _sides(margins: Array, gradients: Array) -> tuple[Array, Array, Array]:
    """Cuts all edges and the four sides of the pixel: distances, lengths left, their middles."""
    # Edge i has the unit normal n_i = s_i / |s_i| and the distance d_i = m_i / |s_i|; its points
    # are q(u) = u (-n_iy, n_ix) - d_i n_i.
    steep = _steepness(gradients)
    edges = jnp.clip(margins / steep, -_FAR, _FAR)
    outer = jnp.asarray([[1, 0], [-1, 0], [0, 1], [0, -1]], gradients.dtype)
    distances = jnp.concatenate([edges, jnp.full(4, 0.5, edges.dtype)])
    x, y = jnp.concatenate([gradients / steep[:, None], outer]).T
    # Edge j keeps d_j + n_j . q(u) >= 0, that is gap_ij + u cross_ij >= 0 with
    # gap_ij = d_j - d_i n_i . n_j and cross_ij = n_i x n_j: a lower or an upper bound of u.
    cross, along = x[:, None] * y - y[:, None] * x, x[:, None] * x + y[:, None] * y
    parallel = jnp.abs(cross) < _PARALLEL
    gap = distances - distances[:, None] * jnp.where(parallel, jnp.sign(along), along)
    bound = -gap / jnp.where(parallel, 1, cross)
    low = jnp.max(jnp.where(~parallel & (cross > 0), bound, -_FAR), axis=1)
    high = jnp.min(jnp.where(~parallel & (cross < 0), bound, _FAR), axis=1)
    # Of edges that coincide the first counts.
    first = jnp.triu(jnp.ones_like(parallel))
    left = jnp.all(~parallel | (gap > 0) | ((gap == 0) & first), axis=1)
    left = left & (jnp.abs(distances) < 1)
    lengths = jnp.where(left, jnp.maximum(high - low, 0), 0)
    middles = jnp.stack([-y, x]) * (low + high) / 2 - jnp.stack([x, y]) * distances
    return distances, lengths, middles.T


def _steepness(gradients: Array) -> Array:
    """Computes `|s|`; tiny where a function is constant, so that its edge is far away."""
    return jnp.maximum(safe_norm(gradients), jnp.finfo(gradients.dtype).tiny ** 0.25)


@polygon_coverage.defjvp
def _polygon_coverage_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d coverage = sum_i l_i / |s_i| (d m_i + q_i . d s_i), with q_i the middle of what is left.
    (margins, gradients), (d_margins, d_gradients) = primals, tangents
    distances, lengths, middles = _sides(margins, gradients)
    density = (lengths[:-4] / _steepness(gradients)).astype(margins.dtype)
    change = jnp.sum(density * (d_margins + jnp.sum(middles[:-4] * d_gradients, axis=1)))
    return jnp.clip(jnp.sum(distances * lengths) / 2, 0, 1), change


def disk_coverage(
    offset: Float[Array, " n"], gradients: Float[Array, "n 2"], radius: Scalar
) -> Scalar:
    """Computes the part of a pixel within a distance of a point.

    Exact where the circle is locally straight; a disk much smaller than the pixel has its area.

    **Arguments:**

    - `offset`: the vector from the disk's centre to the pixel's middle, in a plane of two or
      three dimensions.
    - `gradients`: the vector's derivatives by the pixel's x and y, as columns.
    - `radius`: the disk's radius, in the same units.

    **Returns:**

    A number between 0 and 1.
    """
    centred = jnp.all(offset == 0)
    outward = safe_normalise(jnp.where(centred, gradients[:, 0], offset))
    distance = safe_norm(offset)
    radial = outward @ gradients
    across = safe_norm((gradients - outward[:, None] * radial).T)
    # Two edges at -radius and radius, times a slab of half the width pi/4 radius across them:
    # a rectangle with the disk's area, (2 radius) (pi/2 radius).
    half = jnp.pi / 4 * radius
    margins = jnp.stack([radius - distance, radius + distance, half, half])
    edges = jax.vmap(half_plane_coverage)(margins, jnp.stack([-radial, radial, across, across]))
    return jnp.maximum(edges[0] + edges[1] - 1, 0) * jnp.maximum(edges[2] + edges[3] - 1, 0)
