"""How much of a pixel lies on one side of an edge: what gives outlines their gradients."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ._safe import safe_norm, safe_normalise


# An edge that is nearly parallel to a side of the pixel is taken as turned by this much: without it
# the corner that it cuts off would be smaller than rounding.
_LEAST_TURN = 1e-4

# Edges of a polygon that cross at a smaller angle than this count as parallel, and edges farther
# from the pixel's middle than that as so far away.
_PARALLEL, _FAR = 1e-5, 10.0


@jax.custom_jvp
def half_plane_coverage(margin: Scalar, slope: Float[Array, "2"]) -> Scalar:
    """The part of a pixel in which a linear function is positive.

    It is the integral of a trapezoid, and its derivative is the integral along the edge.

    **Arguments:**

    - `margin`: the function in the middle of the pixel.
    - `slope`: its derivatives by the pixel's x and y.

    **Returns:**

    Between 0 and 1, exact; a step where the slope is zero.

    Example: an edge through the middle covers half of the pixel.

    ```python
    half = sg.numerics.half_plane_coverage(jnp.zeros(()), jnp.array([1.0, 0.3]))
    ```
    """
    wide, narrow, rest, corner = _trapezoid(margin, slope)
    smaller = (corner**2 + 2 * narrow * jnp.maximum(rest - narrow, 0)) / (2 * narrow * wide)
    return jnp.where(margin > 0, 1 - smaller, smaller)


def _trapezoid(margin: Scalar, slope: Float[Array, "2"]) -> tuple[Scalar, ...]:
    """Its widths at foot and top, and how much lies beyond the edge: in all, and of one foot."""
    x, y = jnp.abs(slope[0]), jnp.abs(slope[1])
    wide = jnp.maximum(jnp.maximum(x, y), jnp.finfo(margin.dtype).tiny ** 0.25)
    narrow = jnp.maximum(jnp.minimum(x, y), _LEAST_TURN * wide)
    rest = jnp.maximum((wide + narrow) / 2 - jnp.abs(margin), 0)
    return wide, narrow, rest, jnp.minimum(rest, narrow)


@half_plane_coverage.defjvp
def _half_plane_coverage_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """The length of the edge in the pixel, for the margin; the rest follows, because a function and
    its multiple have the same coverage."""
    (margin, slope), (d_margin, d_slope) = primals, tangents
    wide, narrow, _, corner = _trapezoid(margin, slope)
    density = corner / (narrow * wide)
    side = jnp.where(margin > 0, -1.0, 1.0)
    by_narrow = side * density * (1 - corner / narrow) / 2
    by_wide = -(margin * density + narrow * by_narrow) / wide
    swapped = jnp.abs(slope[0]) < jnp.abs(slope[1])
    by_slope = jnp.where(swapped, jnp.stack([by_narrow, by_wide]), jnp.stack([by_wide, by_narrow]))
    change = density * d_margin + jnp.sum(by_slope * jnp.sign(slope) * d_slope)
    return half_plane_coverage(margin, slope), change


def slab_coverage(margins: Float[Array, "2"], slopes: Float[Array, "2 2"]) -> Scalar:
    """The part of a pixel between two edges that do not cross in it.

    **Arguments:**

    - `margins`: of both edges in the middle of the pixel, positive inside.
    - `slopes`: a row an edge: its derivatives by the pixel's x and y.

    **Returns:**

    Between 0 and 1.
    """
    return jnp.maximum(jnp.sum(jax.vmap(half_plane_coverage)(margins, slopes)) - 1, 0)


@jax.custom_jvp
def polygon_coverage(margins: Float[Array, " edges"], slopes: Float[Array, "edges 2"]) -> Scalar:
    """The part of a pixel in which several linear functions are all positive.

    Exact, corners included: half the sum, over the sides of what is left of the pixel, of length
    times distance from the middle. Its derivative is the integral along the edges.

    **Arguments:**

    - `margins`: the functions in the middle of the pixel.
    - `slopes`: a row an edge: its derivatives by the pixel's x and y.

    **Returns:**

    Between 0 and 1.

    Example: a corner in the middle of the pixel.

    ```python
    quarter = sg.numerics.polygon_coverage(jnp.zeros(2), jnp.eye(2))
    ```
    """
    distances, lengths, _ = _sides(margins, slopes)
    return jnp.clip(jnp.sum(distances * lengths) / 2, 0, 1)


def _sides(margins: Array, slopes: Array) -> tuple[Array, Array, Array]:
    """Of all edges, those of the pixel last: the distance from the middle, and the length and the
    middle of what the other edges leave of it."""
    steep = _steepness(slopes)
    edges = jnp.clip(margins / steep, -_FAR, _FAR)
    outer = jnp.asarray([[1, 0], [-1, 0], [0, 1], [0, -1]], slopes.dtype)
    distances = jnp.concatenate([edges, jnp.full(4, 0.5, edges.dtype)])
    x, y = jnp.concatenate([slopes / steep[:, None], outer]).T
    turn, same = x[:, None] * y - y[:, None] * x, x[:, None] * x + y[:, None] * y
    parallel = jnp.abs(turn) < _PARALLEL
    room = distances - distances[:, None] * jnp.where(parallel, jnp.sign(same), same)
    bound = -room / jnp.where(parallel, 1, turn)
    low = jnp.max(jnp.where(~parallel & (turn > 0), bound, -_FAR), axis=1)
    high = jnp.min(jnp.where(~parallel & (turn < 0), bound, _FAR), axis=1)
    # Of edges that coincide the first counts.
    first = jnp.triu(jnp.ones_like(parallel))
    left = jnp.all(~parallel | (room > 0) | ((room == 0) & first), axis=1)
    left = left & (jnp.abs(distances) < 1)
    lengths = jnp.where(left, jnp.maximum(high - low, 0), 0)
    middles = jnp.stack([-y, x]) * (low + high) / 2 - jnp.stack([x, y]) * distances
    return distances, lengths, middles.T


def _steepness(slopes: Array) -> Array:
    """Of linear functions; tiny where they are constant, so that their edges are far away."""
    return jnp.maximum(safe_norm(slopes), jnp.finfo(slopes.dtype).tiny ** 0.25)


@polygon_coverage.defjvp
def _polygon_coverage_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """How far the middle of each side moves outwards, times its length."""
    (margins, slopes), (d_margins, d_slopes) = primals, tangents
    distances, lengths, middles = _sides(margins, slopes)
    density = (lengths[:-4] / _steepness(slopes)).astype(margins.dtype)
    change = jnp.sum(density * (d_margins + jnp.sum(middles[:-4] * d_slopes, axis=1)))
    return jnp.clip(jnp.sum(distances * lengths) / 2, 0, 1), change


def disk_coverage(
    offset: Float[Array, " n"], slopes: Float[Array, "n 2"], radius: Scalar
) -> Scalar:
    """The part of a pixel within a distance of a point.

    Exact where the circle is locally straight; a disk much smaller than the pixel has its area.

    **Arguments:**

    - `offset`: from the disk's centre to the pixel's middle, in a plane of two or three dimensions.
    - `slopes`: its derivatives by the pixel's x and y, as columns.
    - `radius`: of the disk, in the same units.

    **Returns:**

    Between 0 and 1.
    """
    centred = jnp.all(offset == 0)
    outward = safe_normalise(jnp.where(centred, slopes[:, 0], offset))
    distance = safe_norm(offset)
    radial = outward @ slopes
    across = safe_norm((slopes - outward[:, None] * radial).T)
    half = jnp.pi / 4 * radius
    margins = jnp.stack([radius - distance, radius + distance, half, half])
    edges = jax.vmap(half_plane_coverage)(margins, jnp.stack([-radial, radial, across, across]))
    return jnp.maximum(edges[0] + edges[1] - 1, 0) * jnp.maximum(edges[2] + edges[3] - 1, 0)
