"""Means of functions over a pixel in closed form."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ._coverage import half_plane_coverage
from ._safe import safe_sqrt


def filtered_sqrt(x: Scalar, slope: Float[Array, "2"]) -> tuple[Scalar, Float[Array, "2"]]:
    """The mean square root of a linear function over the part of a pixel where it is positive.

    Its derivative is finite at the edge of that part, where the root's own is not.

    **Arguments:**

    - `x`: the function in the middle of the pixel.
    - `slope`: its derivatives by the pixel's x and y.

    **Returns:**

    `(mean, slope)`: `sqrt(x)` where the slope is zero, and 0 where `x` is not positive in the
    pixel; and the mean's own derivatives by the pixel's x and y.
    """
    half = (jnp.abs(slope[0]) + jnp.abs(slope[1])) / 2
    high = x + half
    positive = high > 0
    low, high = jnp.maximum(x - half, 0), jnp.where(positive, high, 1)
    p, q = jnp.sqrt(high), safe_sqrt(low)
    mean = _mean_root(low, high)
    rate = jnp.where(positive, 1 / (p + q), 0)
    return jnp.where(positive, mean, 0), rate * slope


@jax.custom_jvp
def _mean_root(low: Scalar, high: Scalar) -> Scalar:
    """The mean of the square root between two numbers, the second of which is positive."""
    p, q = jnp.sqrt(high), safe_sqrt(low)
    return 2 / 3 * (high + p * q + low) / (p + q)


@_mean_root.defjvp
def _mean_root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Written out, because the chain rule would divide zero by zero at `low = 0`."""
    low, high = primals
    p, q = jnp.sqrt(high), safe_sqrt(low)
    scale = 1 / (3 * (p + q) ** 2)
    slope = scale * ((2 * p + q) * tangents[0] + (2 * q + p) * tangents[1])
    return _mean_root(low, high), slope


def filtered_square_wave(x: Scalar, slope: Float[Array, "2"]) -> Scalar:
    """The mean over a pixel of a wave that is +1 on [0, 1), -1 on [1, 2), and so on.

    **Arguments:**

    - `x`: the wave's argument in the middle of the pixel.
    - `slope`: its derivatives by the pixel's x and y.

    **Returns:**

    Between -1 and 1, exact for an argument that is linear over the pixel.
    """
    width = jnp.abs(slope[0]) + jnp.abs(slope[1])
    return jnp.where(width <= 1, _one_edge(x, slope), _many_edges(x, slope))


def _one_edge(x: Scalar, slope: Float[Array, "2"]) -> Scalar:
    """Where at most one change of sign, at a whole number, lies in the pixel."""
    edge = jnp.round(jax.lax.stop_gradient(x))
    after = 1 - 2 * (edge % 2)
    return after * (2 * half_plane_coverage(x - edge, slope) - 1)


def _many_edges(x: Scalar, slope: Float[Array, "2"]) -> Scalar:
    """The second difference of the wave's second antiderivative."""
    a, b = jnp.abs(slope[0]), jnp.abs(slope[1])
    wide = jnp.maximum(jnp.maximum(a, b), 0.5)
    narrow = jnp.maximum(jnp.minimum(a, b), 0.02 * wide)
    reach, flat = (wide + narrow) / 2, (wide - narrow) / 2
    outer, inner = _second(x + reach) + _second(x - reach), _second(x + flat) + _second(x - flat)
    return (outer - inner) / (wide * narrow)


def _second(x: Scalar) -> Scalar:
    """A second antiderivative of the wave, between -1/8 and 1/8."""
    whole = jnp.floor(x)
    rest = x - whole
    return (1 - 2 * (whole % 2)) * 0.5 * rest * (rest - 1)
