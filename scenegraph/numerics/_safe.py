"""Functions that have finite gradients at their singular points.

Each uses two `where`s: one gives the untaken branch a harmless input, so that its derivative is
finite, the other picks the branch.
"""

import jax
import jax.numpy as jnp

from .._typing import Array, Float


def safe_sqrt(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Computes the square root, with gradient zero where `x <= 0`.

    **Arguments:**

    - `x`: numbers, any shape.

    **Returns:**

    `sqrt(x)`, and 0 where `x` is not positive.
    """
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)


def safe_divide(
    numerator: Float[Array, "*batch"], denominator: Float[Array, "*batch"], otherwise: float = 0.0
) -> Float[Array, "*batch"]:
    """Divides, with `otherwise` (and gradient zero) where the denominator is zero.

    **Arguments:**

    - `numerator`, `denominator`: numbers, of one shape.
    - `otherwise`: the value where `denominator == 0`.

    **Returns:**

    The quotient, of the same shape.
    """
    divisible = denominator != 0
    value = quotient(numerator, jnp.where(divisible, denominator, 1))
    return jnp.where(divisible, value, otherwise)


@jax.custom_jvp
def quotient(numerator: Array, denominator: Array) -> Array:
    """Divides by what is not zero; the derivative needs no square of it."""
    return numerator / denominator


@quotient.defjvp
def _quotient_jvp(primals, tangents):
    # d(n / d) = (dn - (n / d) dd) / d: JAX's own rule squares d, which may vanish by underflow.
    value, denominator = quotient(*primals), primals[1]
    return value, (tangents[0] - value * tangents[1]) / denominator


def dot(a: Float[Array, "*batch n"], b: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """Computes the scalar product of vectors along the last axis."""
    return jnp.sum(a * b, axis=-1)


def safe_norm(x: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """Computes Euclidean lengths along the last axis, with gradient zero at the zero vector.

    **Arguments:**

    - `x`: vectors, `*batch n`.

    **Returns:**

    The lengths, `*batch`.
    """
    return _norm(x)


@jax.custom_jvp
def _norm(x: Array) -> Array:
    return safe_sqrt(dot(x, x))


@_norm.defjvp
def _norm_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d|x| = x . dx / |x|: fewer operations than the chain rule's, to compile and to run.
    (x,), (change,) = primals, tangents
    length = _norm(x)
    return length, _inverse(length) * dot(x, change)


def _inverse(length: Array) -> Array:
    """Returns `1 / length`; 0 for a vector of no length."""
    return jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1), 0)


def safe_normalise(x: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """Scales vectors to length one; the zero vector stays zero, with gradient zero.

    **Arguments:**

    - `x`: vectors, `*batch n`.

    **Returns:**

    `x / |x|`, of the same shape.
    """
    return _normalised(x)


@jax.custom_jvp
def _normalised(x: Array) -> Array:
    length = safe_norm(x)[..., None]
    return jnp.where(length > 0, x / jnp.where(length > 0, length, 1), 0)


@_normalised.defjvp
def _normalised_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # With u = x / |x|: du = (dx - (u . dx) u) / |x|.
    (x,), (change,) = primals, tangents
    unit = _normalised(x)
    sideways = change - dot(unit, change)[..., None] * unit
    return unit, _inverse(safe_norm(x))[..., None] * sideways
