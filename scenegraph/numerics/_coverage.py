"""How much of a pixel lies on one side of an edge: what gives outlines their gradients."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ._safe import safe_norm, safe_normalise


# An edge that is nearly parallel to a side of the pixel is taken as turned by this much: without it
# the corner that it cuts off would be smaller than rounding.
_LEAST_TURN = 1e-4


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
    smaller = (corner**2 / (2 * narrow) + jnp.maximum(rest - narrow, 0)) / wide
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
