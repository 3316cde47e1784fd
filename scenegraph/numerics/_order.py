"""Orders of small numbers, and of points, in which neighbours are near to each other."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, UInt32


def order_by_number(numbers: UInt32[Array, " n"]) -> Int[Array, " n"]:
    """Returns the stable order of numbers of no more bits than a place leaves of a word."""
    # One number that holds number and place is sorted five times as fast as a pair.
    bits = _bits_of_place(numbers.shape[0])
    places = jnp.arange(numbers.shape[0], dtype=jnp.uint32)
    packed = jax.lax.sort((numbers << bits) | places)
    return (packed & jnp.uint32(2**bits - 1)).astype(jnp.int32)


def _bits_of_place(count: int) -> int:
    return max(count - 1, 1).bit_length()


@jax.jit
def order_by_place(
    points: Float[Array, "points n"], used: Bool[Array, " points"]
) -> Int[Array, " points"]:
    """Sorts points along a curve that fills space, so that runs of them are close together.

    **Source:** Hilbert's curve, whose neighbours are always close: Skilling 2004, "Programming the
    Hilbert curve".
    """
    count, dimensions = points.shape
    # Code and place have to fit a word; many points are sorted by the lower half of the code first.
    place_bits = _bits_of_place(count)
    passes = 1 if count <= _MANY else 2
    bits = (passes * (31 - place_bits)) // dimensions
    lower = jnp.min(jnp.where(used[:, None], points, jnp.inf), axis=0)
    upper = jnp.max(jnp.where(used[:, None], points, -jnp.inf), axis=0)
    extent = jnp.maximum(jnp.max(upper - lower), 1e-30)
    # Cells of a cube about all points, 2^bits along each side.
    cells = jnp.clip((points - lower) / extent * 2**bits, 0, 2**bits - 1).astype(jnp.uint32)
    code = _hilbert([cells[:, axis] for axis in range(dimensions)], bits)
    code = jnp.where(used, code, 2 ** (dimensions * bits))
    return _sort_by_digits(code, passes, place_bits)


# More points than this need cells smaller than one sort distinguishes.
_MANY = 2**15


def _sort_by_digits(code: UInt32[Array, " points"], passes: int, place_bits: int) -> Array:
    """Returns the stable order of codes; a digit has the bits that a place leaves of a word."""
    # A radix sort, lowest digit first; shifting left cuts off the digits above.
    order = order_by_number(code)
    for i in range(1, passes):
        order = order[order_by_number(code[order] >> ((32 - place_bits) * i))]
    return order


def _hilbert(cells: list[UInt32[Array, " points"]], bits: int) -> UInt32[Array, " points"]:
    """Returns the places of cells along Hilbert's curve (Skilling's algorithm)."""
    x = list(cells)
    for bit in reversed(range(1, bits)):
        low = jnp.uint32(2**bit - 1)
        for i in range(len(x)):
            # Where the bit of the i-th coordinate is set, invert the lower bits of the first;
            # elsewhere exchange them with the i-th's.
            inverted = ((x[i] >> bit) & 1) * low
            exchanged = (x[0] ^ x[i]) & (inverted ^ low) if i else jnp.uint32(0)
            x[0] ^= inverted ^ exchanged
            x[i] ^= exchanged
    for i in range(1, len(x)):
        # The last step: Gray encode.
        x[i] ^= x[i - 1]
    # Every bit of the last coordinate inverts all below it.
    flip = x[-1] >> 1
    for step in _steps(bits):
        flip ^= flip >> step
    # The bits of all coordinates in turn, the highest first. No sums over bits: XLA would compute
    # all of the above again for each of them.
    code = jnp.zeros_like(flip)
    for i, own in enumerate(reversed(x)):
        code |= _spread(own ^ flip, bits, len(x)) << i
    return code


def _steps(bits: int) -> list[int]:
    """Returns the powers of two below a number of bits."""
    return [2**i for i in range((bits - 1).bit_length())]


def _spread(number: UInt32[Array, " n"], bits: int, apart: int) -> UInt32[Array, " n"]:
    """Puts the bits of numbers so many places apart."""
    for step in reversed(_steps(bits)):
        # Runs of `2 step` bits become runs of `step` bits, each at `apart` times its place.
        mask = sum(1 << (i + (apart - 1) * step * (i // step)) for i in range(bits))
        number = (number | number << ((apart - 1) * step)) & jnp.uint32(mask & (2**32 - 1))
    return number
