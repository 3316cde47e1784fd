"""The part of a pixel on one side of an edge: what gives outlines their gradients.

A pixel is the square of side one about the origin. An edge is where a linear function
`m + s . p` is zero; `m` is its margin and `s` its gradient. The formulas are derived in
docs/surfaces.md, "Coverage".
"""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ._products import matmul
from ._safe import descending, magnitude, quotient, safe_norm, safe_normalise, safe_sqrt


# An edge that is nearly parallel to a side of the pixel is taken as turned by this much: without it
# the corner that it cuts off would be smaller than rounding.
_LEAST_TURN = 1e-4


@jax.jit
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
    return _covered(margin, gradient)


@jax.custom_jvp
def _covered(margin: Scalar, gradient: Float[Array, "2"]) -> Scalar:
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
    # Over the pixel, m + s . p is a sum of two numbers that are even over widths a and b: its
    # density is a trapezoid of height 1 / a, with ramps that are b wide.
    a, b = descending(magnitude(gradient))
    a = jnp.maximum(a, _least_slope(margin))
    b = jnp.maximum(b, _LEAST_TURN * a)
    # r = max((a + b) / 2 - |m|, 0) of the foot lies beyond the edge, c = min(r, b) on its ramp.
    r = jnp.maximum((a + b) / 2 - magnitude(margin), 0)
    return a, b, r, jnp.minimum(r, b)


@_covered.defjvp
def _covered_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (margin, gradient), (d_margin, d_gradient) = primals, tangents
    a, b, r, c = _trapezoid(margin, gradient)
    # d coverage / dm = c / (a b), the density of the edge in the pixel. A function and its multiple
    # have the same coverage C, so m C_m + a C_a + b C_b = 0 gives the derivative by a.
    # An edge outside the pixel, or a step, has the derivative zero, and zero further derivatives.
    crosses = (r > 0) & (a > _least_slope(margin))
    a, b, c = jnp.where(crosses, a, 1), jnp.where(crosses, b, 1), jnp.where(crosses, c, 0)
    # The part beyond the edge has d/db = c / (a b) (1 - c / b) / 2, which is 0 where r > b.
    ramp = quotient(c, b)
    by_margin = quotient(ramp, a)
    side = jnp.where(margin > 0, -1.0, 1.0)
    by_b = side * by_margin * (1 - ramp) / 2
    by_a = -quotient(margin * by_margin + b * by_b, a)
    swapped = jnp.abs(gradient[0]) < jnp.abs(gradient[1])
    by_gradient = jnp.where(swapped, jnp.stack([by_b, by_a]), jnp.stack([by_a, by_b]))
    change = by_margin * d_margin + jnp.sum(by_gradient * jnp.sign(gradient) * d_gradient)
    return _covered(margin, gradient), change


@jax.jit
def slab_coverage(margins: Float[Array, "2"], gradients: Float[Array, "2 2"]) -> Scalar:
    """Computes the part of a pixel between two edges that do not cross in it."""
    # What is beyond one edge is not beyond the other: 1 - (1 - c_0) - (1 - c_1).
    return jnp.maximum(jnp.sum(jax.vmap(half_plane_coverage)(margins, gradients)) - 1, 0)


@jax.jit
def disk_coverage(
    offset: Float[Array, " n"], gradients: Float[Array, "n 2"], radius: Scalar
) -> Scalar:
    """Computes the part of a pixel within a distance of a point.

    Exact for a disk that is no more than some pixels large; for a larger one, the circle is taken
    for straight within the pixel.

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
    # The offset's derivatives split in two: d distance = outward . d offset, and what is across it.
    distance = safe_norm(offset)
    radial = matmul(outward, gradients)
    rests = gradients - outward[:, None] * radial
    across = safe_norm(rests.T)
    # In the frame of the offset and the longer one of what is across it.
    aside = safe_normalise(jnp.where(across[0] > across[1], rests[:, 0], rests[:, 1]))
    sides = jnp.stack([radial, matmul(aside, rests)])
    size, area = jnp.sum(sides**2), jnp.abs(_cross(sides[:, 0], sides[:, 1]))
    # A pixel that is large beside the disk, unless it is seen from its edge.
    part = jnp.clip((size - (_STRAIGHT * radius) ** 2) / (_BENT * radius) ** 2, 0, 1)
    share = jnp.where(area > _EDGE_ON * size, part**2 * (3 - 2 * part), 0)
    straight = _straight_disk(distance, radial, across, radius)
    bent = lambda: _disk_and_parallelogram(distance, sides, radius)
    exact = jax.lax.cond(share > 0, bent, lambda: straight)
    return straight + share * (exact - straight)


# Beside a disk's radius: pixels of this size see its outline as straight, those of so much more as
# bent; of a pixel's squared size, the least area at which it has two sides.
_STRAIGHT, _BENT, _EDGE_ON = 0.2, 0.2, 1e-3


def _straight_disk(
    distance: Scalar, radial: Float[Array, "2"], across: Float[Array, "2"], radius: Scalar
) -> Scalar:
    """Returns the part of a pixel in a disk that is straight in it, or much smaller."""
    # Two edges at -radius and radius, times a slab of half the width pi/4 radius across them:
    # a rectangle with the disk's area, (2 radius) (pi/2 radius). A pixel looks the same from the
    # other side, so that both edges of a slab may have one gradient.
    margins = jnp.stack([radius - distance, radius + distance, jnp.pi / 4 * radius])
    edges = jax.vmap(half_plane_coverage)(margins, jnp.stack([radial, radial, across]))
    return jnp.maximum(edges[0] + edges[1] - 1, 0) * jnp.maximum(2 * edges[2] - 1, 0)


def _cross(first: Float[Array, "2"], second: Float[Array, "2"]) -> Scalar:
    return first[0] * second[1] - first[1] * second[0]


def _disk_and_parallelogram(distance: Scalar, sides: Float[Array, "2 2"], radius: Scalar) -> Scalar:
    """Returns the part of a parallelogram in a disk; its sides are columns.

    Its middle is at (distance, 0), seen from the disk's centre.
    """
    u, v = sides[:, 0] / 2, sides[:, 1] / 2
    middle = jnp.stack([distance, jnp.zeros_like(distance)])
    corners = jnp.stack([middle + u + v, middle - u + v, middle - u - v, middle + u - v])
    parts = [_disk_and_triangle(corners[i], corners[i - 3], radius) for i in range(4)]
    # The parallelogram's area is 4 |u x v|.
    area = 4 * _cross(u, v)
    covered = quotient(jnp.sum(jnp.stack(parts)), area)
    # All and nothing are not left to rounding.
    rounding = 8 * jnp.finfo(area.dtype).eps * quotient(radius**2, jnp.abs(area))
    covered = jnp.where(covered > 1 - rounding, 1, covered)
    return jnp.where(covered < rounding, 0, covered)


def _disk_and_triangle(start: Float[Array, "2"], end: Float[Array, "2"], radius: Scalar) -> Scalar:
    """Returns the signed area that a disk has in common with the triangle from its centre."""
    edge = end - start
    length = safe_norm(edge)
    along = quotient(edge, jnp.where(length > 0, length, 1))
    # On the edge's line, places count from where it is nearest to the centre, at the signed height
    # h = start x end / length; within the disk it is a chord of the half length sqrt(r^2 - h^2).
    height = _cross(start, along)
    first, last = jnp.sum(start * along), jnp.sum(end * along)
    square = radius**2 - height**2
    half = safe_sqrt(square)
    enter, leave = (jnp.where(square > 0, jnp.clip(x, -half, half), 0) for x in (first, last))

    def turn(begin: Scalar, stop: Scalar) -> Scalar:
        # The angle between two places: atan2 of their cross and dot products.
        product = begin * stop + height**2
        apart = product != 0
        return jnp.arctan2(
            jnp.where(apart, height * (stop - begin), 0), jnp.where(apart, product, 1)
        )

    # A triangle within the disk, and a sector before and after it.
    sectors = radius**2 * (turn(first, enter) + turn(leave, last))
    return (height * (leave - enter) + sectors) / 2
