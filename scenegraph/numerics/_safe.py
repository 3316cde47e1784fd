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
    quotient = _quotient(numerator, jnp.where(divisible, denominator, 1))
    return jnp.where(divisible, quotient, otherwise)


@jax.custom_jvp
def _quotient(numerator: Array, denominator: Array) -> Array:
    return numerator / denominator


@_quotient.defjvp
def _quotient_jvp(primals, tangents):
    # d(n / d) = (dn - (n / d) dd) / d: JAX's own rule squares d, which may vanish by underflow.
    quotient, denominator = _quotient(*primals), primals[1]
    return quotient, (tangents[0] - quotient * tangents[1]) / denominator


def dot(a: Float[Array, "*batch n"], b: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """Computes the scalar product of vectors along the last axis.

    **Arguments:**

    - `a`, `b`: vectors, `*batch n`.

    **Returns:**

    The products, `*batch`.
    """
    return jnp.sum(a * b, axis=-1)


def safe_norm(x: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """Computes Euclidean lengths along the last axis, with gradient zero at the zero vector.

    **Arguments:**

    - `x`: vectors, `*batch n`.

    **Returns:**

    The lengths, `*batch`.
    """
    return safe_sqrt(dot(x, x))


def safe_normalise(x: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """Scales vectors to length one; the zero vector stays zero, with gradient zero.

    **Arguments:**

    - `x`: vectors, `*batch n`.

    **Returns:**

    `x / |x|`, of the same shape.
    """
    length = safe_norm(x)[..., None]
    return jnp.where(length > 0, x / jnp.where(length > 0, length, 1), 0)
