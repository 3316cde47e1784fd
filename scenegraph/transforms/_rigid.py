"""Rigid motions near the identity and their tangent vectors, right in every derivative.

A tangent vector holds a shift and a rotation vector `w`. With `W` the matrix of the cross product
by `w`, and `a = |w|`, the motion is the rotation `1 + sin(a) / a W + (1 - cos(a)) / a^2 W^2` and a
shift by `V = 1 + (1 - cos(a)) / a^2 W + (a - sin(a)) / a^3 W^2` times the first part.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jaxlie

from .._typing import Array, Float, Matrix3, Matrix4, Scalar, Vector
from ..numerics import dot, matmul
from ._base import rotate


# Below this squared angle a power series of so many terms is exact to rounding.
_SMALL, _TERMS = 1.0, 9


class Motion(NamedTuple):
    """A rotation and a shift, in this order."""

    turn: Matrix3
    shift: Vector


def split_motion(matrix: Matrix4) -> Motion:
    """Takes rotation and shift from a matrix."""
    return Motion(matrix[:3, :3], matrix[:3, 3])


def motion_of(tangent: Float[Array, "6"]) -> Motion:
    """Computes the motion of a tangent vector: the exponential map of SE(3)."""
    shift, turn = tangent[:3], tangent[3:]
    # V s = s + B w x s + C w x (w x s)
    once = jnp.cross(turn, shift)
    by_once, by_twice = _shares(dot(turn, turn))
    moved = shift + by_once * once + by_twice * jnp.cross(turn, once)
    return Motion(jaxlie.SO3.exp(turn).as_matrix(), moved)


def _shares(square: Scalar) -> tuple[Scalar, Scalar]:
    """Returns `(1 - cos(a)) / a^2` and `(a - sin(a)) / a^3` of a squared angle."""
    small = square < _SMALL
    # sum_k (-a^2)^k / (2 k + 2)!  and  sum_k (-a^2)^k / (2 k + 3)!
    near = jnp.where(small, square, 0)
    series = [
        _power_series([1 / math.factorial(2 * k + n) for k in range(_TERMS)], -near) for n in (2, 3)
    ]
    far = jnp.where(small, 1, square)
    angle = jnp.sqrt(far)
    closed = (1 - jnp.cos(angle)) / far, (angle - jnp.sin(angle)) / (far * angle)
    return jnp.where(small, series[0], closed[0]), jnp.where(small, series[1], closed[1])


def _power_series(coefficients: list[float], x: Scalar) -> Scalar:
    """Evaluates a polynomial, the constant first, by Horner's rule."""
    total = jnp.zeros_like(x)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def small_tangent(motion: Motion) -> Float[Array, "6"]:
    """Computes the tangent vector of a motion close to the identity: the logarithm of SE(3)."""
    # (R - R^T) / 2 is sin(a) times the unit axis' cross product; w = v arcsin(|v|) / |v| of it.
    skew = 0.5 * (motion.turn - motion.turn.T)
    sine = jnp.stack([skew[2, 1], skew[0, 2], skew[1, 0]])
    turn = sine * _power_series([1, 1 / 6, 3 / 40, 5 / 112, 35 / 1152], dot(sine, sine))
    # V^-1 s = s - w x s / 2 + D w x (w x s) with D = 1 / 12 + a^2 / 720 + a^4 / 30240 + ...
    once = jnp.cross(turn, motion.shift)
    share = _power_series([1 / 12, 1 / 720, 1 / 30240, 1 / 1209600], dot(turn, turn))
    shift = motion.shift - 0.5 * once + share * jnp.cross(turn, once)
    return jnp.concatenate([shift, turn])


def tangent_from(base: Matrix4) -> Float[Array, "6"]:
    """Returns zero, with the derivatives of the tangent from `base`, held fixed, to `base`."""
    tangent = small_tangent(_between(*map(split_motion, (jax.lax.stop_gradient(base), base))))
    return tangent - jax.lax.stop_gradient(tangent)


# Every step of Newton's method with a fixed derivative makes one more order of derivatives right.
_STEPS = 3


def moved_tangent(base: Matrix4, delta: Float[Array, "6"]) -> Float[Array, "6"]:
    """Returns `delta`, with derivatives of the `x` by which `base`, held fixed, times `exp(x)` is
    `base @ exp(delta)`; those of the first three orders."""
    fixed, start = jax.lax.stop_gradient((split_motion(base), delta))
    wanted = _product(split_motion(base), motion_of(delta))

    def missing(tangent: Float[Array, "6"], wanted: Motion) -> Float[Array, "6"]:
        return small_tangent(_between(_product(fixed, motion_of(tangent)), wanted))

    # x <- x - J^-1 log((base exp(x))^-1 wanted), with J its derivative at the start.
    derivative = jax.jacfwd(missing)(start, jax.lax.stop_gradient(wanted))
    inverse = jax.lax.stop_gradient(jnp.linalg.inv(derivative))
    tangent = start
    for _ in range(_STEPS):
        tangent = tangent - matmul(inverse, missing(tangent, wanted))
    return start + (tangent - jax.lax.stop_gradient(tangent))


def _product(outer: Motion, inner: Motion) -> Motion:
    return Motion(matmul(outer.turn, inner.turn), rotate(outer.turn, inner.shift) + outer.shift)


def _between(start: Motion, end: Motion) -> Motion:
    """Returns `start^-1 @ end`."""
    back = start.turn.T
    return Motion(matmul(back, end.turn), rotate(back, end.shift - start.shift))
