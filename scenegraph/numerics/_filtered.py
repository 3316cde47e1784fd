"""Means of functions over a pixel in closed form; see docs/surfaces.md."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ._coverage import half_plane_coverage
from ._safe import descending, magnitude, safe_sqrt


@jax.jit
def filtered_sqrt(x: Scalar, gradient: Float[Array, "2"]) -> tuple[Scalar, Float[Array, "2"]]:
    """Averages the square root of a linear function over the part of a pixel where it is positive.

    The derivative of the mean is finite at the edge of that part, where the root's own is not.
    Returns the mean and its derivatives by the pixel's x and y.
    """
    # docs/surfaces.md, "Coverage": l and h are the least and the largest value in the pixel,
    # mean = 2/3 (h^(3/2) - l^(3/2)) / (h - l) = 2/3 (h + sqrt(h l) + l) / (sqrt(h) + sqrt(l)), and
    # the mean of d sqrt(x)/dx = 1 / (2 sqrt(x)) is 1 / (sqrt(h) + sqrt(l)).
    half = jnp.sum(magnitude(gradient)) / 2
    high = x + half
    positive = high > 0
    low, high = jnp.maximum(x - half, 0), jnp.where(positive, high, 1)
    mean = _mean_root(low, high)
    rate = jnp.where(positive, 1 / (jnp.sqrt(high) + safe_sqrt(low)), 0)
    return jnp.where(positive, mean, 0), rate * gradient


@jax.custom_jvp
def _mean_root(low: Scalar, high: Scalar) -> Scalar:
    """Averages the square root between two numbers, the second of which is positive."""
    p, q = jnp.sqrt(high), safe_sqrt(low)
    return 2 / 3 * (high + p * q + low) / (p + q)


@_mean_root.defjvp
def _mean_root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # Written out, because the chain rule would divide zero by zero at `low = 0`:
    # d mean = ((2 p + q) dl + (2 q + p) dh) / (3 (p + q)^2).
    low, high = primals
    p, q = jnp.sqrt(high), safe_sqrt(low)
    scale = 1 / (3 * (p + q) ** 2)
    change = scale * ((2 * p + q) * tangents[0] + (2 * q + p) * tangents[1])
    return _mean_root(low, high), change


@jax.jit
def filtered_square_wave(x: Scalar, gradient: Float[Array, "2"]) -> Scalar:
    """Averages over a pixel the wave that is +1 on [0, 1), -1 on [1, 2), and so on.

    **Arguments:**

    - `x`: the wave's argument in the middle of the pixel.
    - `gradient`: the argument's derivatives by the pixel's x and y, `2`.

    **Returns:**

    A number between -1 and 1, exact for an argument that is linear over the pixel.
    """
    # docs/surfaces.md, "Filtered patterns". Where the argument spans at most 1, one change of sign
    # can lie in the pixel, and the mean is +-(2 coverage - 1).
    width = jnp.sum(magnitude(gradient))
    edge = jnp.round(jax.lax.stop_gradient(x))
    one_edge = _sign(edge) * (2 * half_plane_coverage(x - edge, gradient) - 1)
    return jnp.where(width <= 1, one_edge, _many_edges(x, gradient))


def _many_edges(x: Scalar, gradient: Float[Array, "2"]) -> Scalar:
    """Averages the wave by the second difference of its second antiderivative `W`."""
    # mean = (W(x + (a+b)/2) - W(x + (a-b)/2) - W(x - (a-b)/2) + W(x - (a+b)/2)) / (a b)
    # Used where a + b > 1, and so a > 1/2: the bounds keep the branch that is not taken finite, and
    # the difference of nearly equal numbers above rounding where b is tiny.
    a, b = descending(magnitude(gradient))
    a = jnp.maximum(a, 0.5)
    b = jnp.maximum(b, 0.02 * a)
    # The mean over a width is a difference of antiderivatives: over a and then b, a second one.
    far, near = (a + b) / 2, (a - b) / 2
    outer = _second_antiderivative(x + far) + _second_antiderivative(x - far)
    inner = _second_antiderivative(x + near) + _second_antiderivative(x - near)
    return (outer - inner) / (a * b)


def _second_antiderivative(x: Scalar) -> Scalar:
    """Computes `W`, a parabola on every interval between whole numbers, from -1/8 to 1/8."""
    whole = jnp.floor(x)
    rest = x - whole
    # W = +-r (r - 1) / 2 with r = x - floor(x): W'' = +-1, and W and W' are continuous.
    return _sign(whole) * 0.5 * rest * (rest - 1)


def _sign(whole: Scalar) -> Scalar:
    """Returns +1 for an even number, and -1 for an odd one."""
    # whole % 2, bit for bit: processors take remainders one by one.
    return 1 - 2 * (whole - 2 * jnp.floor(whole / 2))
