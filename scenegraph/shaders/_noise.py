import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Int, Scalar, Vector
from ..numerics import (
    as_float_leaf,
    dot,
    require_finite,
    require_positive,
    safe_norm,
    safe_normalise,
)
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._coordinates import AbstractCoordinates, footprint_area, InSpace


# The lattices of the octaves are moved against each other, or all of them would be zero together.
_SHIFT = 0.618034
# Gradient noise hardly ever comes near its bounds: it is made stronger, and bent back within them.
_CONTRAST = 2.0
# An odd number with bits all over, so that consecutive seeds differ in many of them.
_STRIDE = np.uint32(0x9E3779B9)


class Noise(AbstractShader):
    """Clouds of two colours: gradient noise of several sizes.

    Each octave has half the size and half the strength of the one before. An octave fades as
    the pixel grows to the size of its cells, as the mean over the pixel would, and is gone at twice
    that size, so that the pattern does not flicker far away.

    **Arguments:**

    - `scale`: the side of the largest cells, in units of the coordinates.
    - `color_a`, `color_b`: mixed half and half on average, and never beyond either.
    - `octaves`: how many sizes; static.
    - `seed`: which noise; static.
    - `coordinates`: `InSpace()`, or `OnSurface()`.

    **Source:** Perlin 2002, "Improving Noise", with hashed gradients of length one.
    """

    scale: Scalar = eqx.field(converter=as_float_leaf, default=1.0)
    color_a: Color = eqx.field(converter=as_float_leaf, default=(0.9, 0.9, 0.9))
    color_b: Color = eqx.field(converter=as_float_leaf, default=(0.1, 0.1, 0.1))
    octaves: int = eqx.field(static=True, default=4)
    seed: int = eqx.field(static=True, default=0)
    coordinates: AbstractCoordinates = InSpace()

    def __check_init__(self):
        require_positive(self, "scale")
        require_finite(self, "color_a", "color_b")
        if self.octaves < 1:
            raise ValueError(f"`Noise.octaves` must be at least 1; got {self.octaves}.")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        place, slopes = self.coordinates(hit)
        number = jnp.arange(self.octaves)
        finer = (2.0**number).astype(place.dtype)

        def octave(number: Int[Array, ""], finer: Scalar) -> Scalar:
            seed = _mix(_STRIDE * number.astype(jnp.uint32) + np.uint32(self.seed % 2**32))
            wave = _perlin(finer * place / self.scale + _SHIFT * (number + 1), seed)
            return wave * _fading(finer * slopes / self.scale)

        waves = jax.vmap(octave)(number, finer)
        total = jnp.sum(waves / finer) / safe_norm(1 / finer)
        share = 0.5 + 0.5 * jnp.tanh(_CONTRAST * total)
        return self.color_b + share * (self.color_a - self.color_b)


def _perlin(x: Float[Array, " n"], seed: Int[Array, ""]) -> Scalar:
    """Between -1 and 1, and 0 at whole numbers: slopes at the corners of a cell, interpolated."""
    corners = np.array(list(itertools.product((0, 1), repeat=x.shape[0])))
    low = jnp.floor(x)
    rest = x - low
    rising = _quintic(rest)
    weights = jnp.prod(jnp.where(corners == 1, rising, 1 - rising), axis=1)
    gradients = jax.vmap(lambda corner: _gradient(corner, seed, x.dtype))(
        low.astype(jnp.int32) + corners.astype(np.int32)
    )
    # No corner is further than half the diagonal from the places where it counts most.
    largest = x.shape[0] ** 0.5 / 2
    return dot(weights, dot(gradients, rest - corners)) / largest


def _gradient(corner: Int[Array, " n"], seed: Int[Array, ""], dtype) -> Float[Array, " n"]:
    """A direction for a corner of the lattice, the same for every ray."""
    bits = seed
    for number in corner:
        bits = _mix(bits ^ number.astype(jnp.uint32))
    several = _mix(bits + _STRIDE * jnp.arange(1, corner.shape[0] + 1, dtype=jnp.uint32))
    return safe_normalise((several >> 8).astype(dtype) / 2**23 - 1)


def _mix(bits: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """A hash of 32 bits (Wellons 2018, "Prospecting for Hash Functions")."""
    bits = (bits ^ (bits >> 16)) * np.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * np.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


def _fading(slopes: Float[Array, "n 2"]) -> Scalar:
    """How much a pixel keeps of noise with cells of size one.

    It begins like the mean of a wave of 0.55 to a cell, as `1 - area / 2`, and ends smoothly.
    """
    return jnp.maximum(1 - footprint_area(slopes) / 4, 0) ** 2


def _quintic(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """From 0 to 1, with first and second derivatives zero at both."""
    return x**3 * (x * (6 * x - 15) + 10)
