import itertools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Color, Float, Int, Scalar, Vector
from ..images import as_color
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


# The lattices of the octaves are shifted against each other, or all would be zero at one point.
_SHIFT = 0.618034
# Gradient noise rarely comes near its bounds: it is amplified, and bent back within them.
_CONTRAST = 2.0
# An odd number with bits all over, so that consecutive seeds differ in many of them.
_STRIDE = np.uint32(0x9E3779B9)


class Noise(AbstractShader):
    """Clouds of two colours: gradient noise in several octaves.

    Each octave has half the cell size and half the amplitude of the one before. An octave fades as
    the pixel grows to the size of its cells, as the mean over the pixel would, and is gone at twice
    that size, so that the pattern does not flicker in the distance.

    **Arguments:**

    - `scale`: the side of the largest cells, in units of the coordinates.
    - `color_a`, `color_b`: two colours, mixed half and half on average.
    - `octaves`: number of octaves; static.
    - `seed`: the seed of the pattern; static.
    - `coordinates`: `InSpace()`, or `OnSurface()`.

    **Source:** Perlin 2002, "Improving Noise", with hashed gradients of length one.
    """

    scale: Scalar = eqx.field(converter=as_float_leaf, default=1.0)
    color_a: Color = eqx.field(converter=as_color, default=(0.9, 0.9, 0.9))
    color_b: Color = eqx.field(converter=as_color, default=(0.1, 0.1, 0.1))
    octaves: int = eqx.field(static=True, default=4)
    seed: int = eqx.field(static=True, default=0)
    coordinates: AbstractCoordinates = InSpace()

    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_positive(self, "scale")
        require_finite(self, "color_a", "color_b")
        if self.octaves < 1:
            raise ValueError(f"`Noise.octaves` must be at least 1; got {self.octaves}.")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        del view, lights
        position, derivatives = self.coordinates(hit)
        number = jnp.arange(self.octaves)
        finer = (2.0**number).astype(position.dtype)

        def octave(number: Int[Array, ""], finer: Scalar) -> Scalar:
            seed = _mix(_STRIDE * number.astype(jnp.uint32) + np.uint32(self.seed % 2**32))
            wave = _perlin(finer * position / self.scale + _SHIFT * (number + 1), seed)
            # Per octave: 1 - area / 2 for small footprints, like the mean of a wave with 0.55
            # periods to a cell; and zero from an area of 4 cells on, smoothly.
            area = footprint_area(finer * derivatives / self.scale)
            return wave * jnp.maximum(1 - area / 4, 0) ** 2

        waves = jax.vmap(octave)(number, finer)
        # The sum of waves / 2^i, by the root of the sum of their squared amplitudes.
        total = jnp.sum(waves / finer) / safe_norm(1 / finer)
        share = 0.5 + 0.5 * jnp.tanh(_CONTRAST * total)
        return self.color_b + share * (self.color_a - self.color_b)


def _perlin(x: Float[Array, " n"], seed: Int[Array, ""]) -> Scalar:
    """Returns gradient noise between -1 and 1, which is 0 at integer positions."""
    corners = np.array(list(itertools.product((0, 1), repeat=x.shape[0])))
    low = jnp.floor(x)
    rest = x - low
    # The quintic 6 x^5 - 15 x^4 + 10 x^3 has zero first and second derivatives at 0 and at 1.
    rising = rest**3 * (rest * (6 * rest - 15) + 10)
    # sum_c prod_i w(c_i) g_c . (x - c) over the corners c of the cell
    weights = jnp.prod(jnp.where(corners == 1, rising, 1 - rising), axis=1)
    gradients = jax.vmap(lambda corner: _gradient(corner, seed, x.dtype))(
        low.astype(jnp.int32) + corners.astype(np.int32)
    )
    # No corner is further than half the diagonal from the positions where it counts most.
    largest = x.shape[0] ** 0.5 / 2
    return dot(weights, dot(gradients, rest - corners)) / largest


def _gradient(corner: Int[Array, " n"], seed: Int[Array, ""], dtype) -> Float[Array, " n"]:
    """Hashes a corner of the lattice to a unit vector."""
    # The hash of (x, y, ...): h_0 = seed, h_i = mix(h_(i-1) ^ x_i); from the last one, a number for
    # each component.
    bits = seed
    for number in corner:
        bits = _mix(bits ^ number.astype(jnp.uint32))
    several = _mix(bits + _STRIDE * jnp.arange(1, corner.shape[0] + 1, dtype=jnp.uint32))
    # The upper 24 bits, from -1 to 1.
    return safe_normalise((several >> 8).astype(dtype) / 2**23 - 1)


def _mix(bits: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """Hashes 32 bits (Wellons 2018, "Prospecting for Hash Functions")."""
    bits = (bits ^ (bits >> 16)) * np.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * np.uint32(0x846CA68B)
    return bits ^ (bits >> 16)
