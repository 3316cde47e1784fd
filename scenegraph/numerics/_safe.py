"""Functions that have finite gradients at their singular points.

Each has a derivative of its own, in which a `where` gives the untaken branch a harmless input; the
value alone needs none.
"""

import functools

import jax
import jax.numpy as jnp

from .._typing import Array, Float


@jax.jit
def safe_sqrt(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Computes the square root, with gradient zero where `x <= 0`.

    **Arguments:**

    - `x`: numbers, any shape.

    **Returns:**

    `sqrt(x)`, and 0 where `x` is not positive.
    """
    return _root(x)


@jax.custom_jvp
def _root(x: Array) -> Array:
    return jnp.where(x > 0, jnp.sqrt(x), 0)


@_root.defjvp
def _root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d sqrt(x) = dx / (2 sqrt(x))
    root = _root(primals[0])
    return root, 0.5 * _inverse(root) * tangents[0]


@functools.partial(jax.jit, static_argnames="otherwise")
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
    return _ratio(numerator, denominator, otherwise)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _ratio(numerator: Array, denominator: Array, otherwise: float) -> Array:
    return jnp.where(denominator != 0, numerator / denominator, otherwise)


@_ratio.defjvp
def _ratio_jvp(otherwise: float, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    divisible = primals[1] != 0
    safe = primals[0], jnp.where(divisible, primals[1], 1)
    value, change = _quotient_jvp(safe, tangents)
    return jnp.where(divisible, value, otherwise), jnp.where(divisible, change, 0)


@jax.custom_jvp
def quotient(numerator: Array, denominator: Array) -> Array:
    """Divides by what is not zero; the derivative needs no square of it."""
    return numerator / denominator


@quotient.defjvp
def _quotient_jvp(primals, tangents):
    # d(n / d) = (dn - (n / d) dd) / d: JAX's own rule squares d, which may vanish by underflow.
    value, denominator = quotient(*primals), primals[1]
    return value, (tangents[0] - value * tangents[1]) / denominator


@jax.custom_jvp
def magnitude(x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Computes the size of numbers, with derivative zero at zero: the mean of both sides."""
    # JAX's own derivative of `abs` is that of the right side.
    return jnp.abs(x)


@magnitude.defjvp
def _magnitude_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d|x| = sign(x) dx
    return magnitude(primals[0]), jnp.sign(primals[0]) * tangents[0]


def descending(pair: Float[Array, "2"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns two numbers in order, the larger first; equal ones are different in derivatives."""
    # max and min would have half of each, and functions of both wrong second derivatives.
    return _in_order(pair[0], pair[1])


@jax.custom_jvp
def _in_order(x: Array, y: Array) -> tuple[Array, Array]:
    return jnp.maximum(x, y), jnp.minimum(x, y)


@_in_order.defjvp
def _in_order_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    (x, y), (x_dot, y_dot) = primals, tangents
    first = x >= y
    return _in_order(x, y), (jnp.where(first, x_dot, y_dot), jnp.where(first, y_dot, x_dot))


def clip_within(x: Float[Array, "*batch"], low: float, high: float) -> Float[Array, "*batch"]:
    """Clips numbers; their derivative is one up to both ends, where JAX's own is a half."""
    clipped = jax.lax.stop_gradient(jnp.clip(x, low, high))
    return jnp.where((x >= low) & (x <= high), with_value(x, clipped), clipped)


def with_value(x: Float[Array, "*batch"], value: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Returns a value with the derivative of `x`, which differs from it by rounding."""
    return jax.lax.stop_gradient(value) + (x - jax.lax.stop_gradient(x))


@jax.jit
def dot(a: Float[Array, "*batch n"], b: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """Computes the scalar product of vectors along the last axis."""
    return jnp.sum(a * b, axis=-1)


@jax.jit
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
    return jnp.sqrt(dot(x, x))


@_norm.defjvp
def _norm_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # d|x| = x . dx / |x|: fewer operations than the chain rule's, to compile and to run.
    (x,), (change,) = primals, tangents
    length = _norm(x)
    return length, _inverse(length) * dot(x, change)


def _inverse(length: Array) -> Array:
    """Returns `1 / length`; 0 for a vector of no length."""
    return jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1), 0)


@jax.jit
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
    return x / jnp.maximum(_norm(x), jnp.finfo(x.dtype).tiny ** 0.5)[..., None]


@_normalised.defjvp
def _normalised_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # With u = x / |x|: du = (dx - (u . dx) u) / |x|.
    (x,), (change,) = primals, tangents
    unit = _normalised(x)
    sideways = change - dot(unit, change)[..., None] * unit
    return unit, _inverse(_norm(x))[..., None] * sideways


# On CPUs, jaxlib 0.12 leaves NaN out of the greatest and the least of more than a thousand numbers,
# also where each row has but three of them; 0.10 keeps it.
_KEEPS_NAN = jax.__version_info__ < (0, 11)


def max_or_nan(x: Array, axis: int) -> Array:
    """Returns the greatest of numbers along an axis, or NaN where one of them is NaN."""
    return _or_nan(x, jnp.max(x, axis), axis)


def min_or_nan(x: Array, axis: int) -> Array:
    """Returns the least of numbers along an axis, or NaN where one of them is NaN."""
    return _or_nan(x, jnp.min(x, axis), axis)


def _or_nan(x: Array, value: Array, axis: int) -> Array:
    return value if _KEEPS_NAN else jnp.where(jnp.any(jnp.isnan(x), axis), jnp.nan, value)
