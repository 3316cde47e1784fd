"""Lenses that bend: maps of the plane in front of a camera, and their inverses.

A map goes from where a straight line would be seen to where the lens shows it, both in units of
the focal length about the optical axis. It is the identity near the axis; farther out it may fold
back on itself, and there the inverse ends.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, PyTree


Place = Float[Array, "2"]
LensMap = Callable[[PyTree, Place], Place]

# Newton's steps double the digits, so most places need five; those near a fold gain a bit a step.
_STEPS = 16
# A map that makes areas smaller than this is as good as folded.
_FOLD = 1e-3
# Where on the way out from the axis a map is asked whether it has folded: closely, also if the
# place is a hundred times as far out as the fold.
_LOOKS = tuple(0.8**n for n in range(24))


def undistort(lens: LensMap, coefficients: PyTree, place: Place) -> Place:
    """Inverts a lens map by Newton's method; derivatives of any order are the root's own."""
    return _root(lens, coefficients, place)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _root(lens: LensMap, coefficients: PyTree, place: Place) -> Place:
    """Newton's method from the axis outwards, by steps that end nearer and before the fold."""

    def improve(_: int, state: tuple) -> tuple:
        guess, shown, matrix, part = state
        ahead = guess + part * _solve(matrix, place - shown)
        shown_ahead, matrix_ahead = _jacobian(lens, coefficients, ahead)
        nearer = jnp.sum((place - shown_ahead) ** 2) <= jnp.sum((place - shown) ** 2)
        good = nearer & _is_open(matrix_ahead, _FOLD)
        better = ahead, shown_ahead, matrix_ahead, jnp.minimum(2 * part, 1.0)
        return jax.tree.map(lambda x, y: jnp.where(good, x, y), better, (*state[:3], part / 2))

    axis = jnp.zeros_like(place)
    start = axis, *_jacobian(lens, coefficients, axis), jnp.ones_like(place[0])
    return jax.lax.fori_loop(0, _STEPS, improve, start)[0]


@_root.defjvp
def _root_jvp(lens: LensMap, primals: tuple, tangents: tuple) -> tuple[Place, Place]:
    """What the root is shown at moves with the coefficients, and has to follow the place."""
    coefficients, place = primals
    root = _root(lens, coefficients, place)
    _, drift = jax.jvp(lambda c: lens(c, root), (coefficients,), (tangents[0],))
    _, matrix = _jacobian(lens, coefficients, root)
    return root, _solve(matrix, tangents[1] - drift)


def is_shown(lens: LensMap, coefficients: PyTree, place: Place) -> Bool[Array, ""]:
    """Whether a lens map does not fold between the axis and a place."""
    on_the_way = jnp.asarray(_LOOKS, place.dtype)[:, None] * place
    return jnp.all(
        jax.vmap(lambda x: _is_open(_jacobian(lens, coefficients, x)[1], 0.0))(on_the_way)
    )


def _solve(matrix: Float[Array, "2 2"], right: Place) -> Place:
    (a, b), (c, d) = matrix
    x, y = right
    return jnp.stack([d * x - b * y, a * y - c * x]) / (a * d - b * c)


def _jacobian(lens: LensMap, coefficients: PyTree, place: Place) -> tuple[Place, Array]:
    def twice(place: Place) -> tuple[Place, Place]:
        shown = lens(coefficients, place)
        return shown, shown

    matrix, shown = jax.jacfwd(twice, has_aux=True)(place)
    return shown, matrix


def _is_open(matrix: Float[Array, "2 2"], least: float) -> Bool[Array, ""]:
    """Whether a map with these derivatives turns nothing over, nor shrinks areas to nothing."""
    (a, b), (c, d) = matrix
    return (a * d - b * c > least) & (a + d > 0)
