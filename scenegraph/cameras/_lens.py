"""Lens maps of the plane in front of a camera, and their inverses.

A map goes from where a straight line would be seen to where the lens shows it, both in units of
the focal length about the optical axis. It is the identity near the axis; farther out it may fold
back on itself, and there the inverse ends (docs/captures.md, "Lenses").
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, PyTree


Point2 = Float[Array, "2"]
LensMap = Callable[[PyTree, Point2], Point2]

# Newton's steps double the digits, so most points need five; those near a fold gain a bit a step.
_STEPS = 16
# A map that makes areas smaller than this is as good as folded.
_FOLD = 1e-3
# The shares of the way out from the axis at which a map is tested for folds: closely, also if the
# point is a hundred times as far out as the fold.
_TESTED = tuple(0.8**n for n in range(24))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def undistort(lens: LensMap, coefficients: PyTree, shown: Point2) -> Point2:
    """Inverts a lens map by Newton's method; derivatives of any order are the root's own."""
    # x <- x + s J^-1 (shown - lens(x)) from the axis outwards. A step that does not come nearer, or
    # that passes the fold, is halved: beyond the fold, where the lens shows nothing, the result is
    # a point near the fold, with finite derivatives.

    def improve(_: int, state: tuple) -> tuple:
        guess, reached, matrix, length = state
        ahead = guess + length * _solve(matrix, shown - reached)
        reached_ahead, matrix_ahead = _jacobian(lens, coefficients, ahead)
        nearer = jnp.sum((shown - reached_ahead) ** 2) <= jnp.sum((shown - reached) ** 2)
        good = nearer & _is_unfolded(matrix_ahead, _FOLD)
        better = ahead, reached_ahead, matrix_ahead, jnp.minimum(2 * length, 1.0)
        return jax.tree.map(lambda x, y: jnp.where(good, x, y), better, (*state[:3], length / 2))

    axis = jnp.zeros_like(shown)
    start = axis, *_jacobian(lens, coefficients, axis), jnp.ones_like(shown[0])
    return jax.lax.fori_loop(0, _STEPS, improve, start)[0]


@undistort.defjvp
def _undistort_jvp(lens: LensMap, primals: tuple, tangents: tuple) -> tuple[Point2, Point2]:
    # lens(c, x) = shown gives dx = J^-1 (d shown - d lens/dc dc)
    coefficients, shown = primals
    root = undistort(lens, coefficients, shown)
    _, drift = jax.jvp(lambda c: lens(c, root), (coefficients,), (tangents[0],))
    _, matrix = _jacobian(lens, coefficients, root)
    return root, _solve(matrix, tangents[1] - drift)


def is_before_fold(lens: LensMap, coefficients: PyTree, point: Point2) -> Bool[Array, ""]:
    """Returns true if a lens map does not fold between the axis and a point."""
    on_the_way = jnp.asarray(_TESTED, point.dtype)[:, None] * point
    return jnp.all(
        jax.vmap(lambda x: _is_unfolded(_jacobian(lens, coefficients, x)[1], 0.0))(on_the_way)
    )


def _solve(matrix: Float[Array, "2 2"], right: Point2) -> Point2:
    (a, b), (c, d) = matrix
    x, y = right
    # ((a, b), (c, d))^-1 = ((d, -b), (-c, a)) / (a d - b c)
    return jnp.stack([d * x - b * y, a * y - c * x]) / (a * d - b * c)


def _jacobian(lens: LensMap, coefficients: PyTree, point: Point2) -> tuple[Point2, Array]:
    """Computes a lens map's value and its derivatives by the point."""

    def twice(point: Point2) -> tuple[Point2, Point2]:
        shown = lens(coefficients, point)
        return shown, shown

    matrix, shown = jax.jacfwd(twice, has_aux=True)(point)
    return shown, matrix


def _is_unfolded(matrix: Float[Array, "2 2"], least: float) -> Bool[Array, ""]:
    """Returns true if a map with these derivatives has `det J > least` and `tr J > 0`."""
    (a, b), (c, d) = matrix
    return (a * d - b * c > least) & (a + d > 0)
