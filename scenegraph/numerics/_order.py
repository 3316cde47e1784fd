"""An order of points in which neighbours are near to each other."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, UInt32


def order_by_place(
    points: Float[Array, "points n"], used: Bool[Array, " points"]
) -> Int[Array, " points"]:
    """Sorts points along a curve that fills space, so that runs of them are close together.

    **Source:** Hilbert's curve, whose neighbours are always close: Skilling 2004, "Programming the
    Hilbert curve".
    """
    count, dimensions = points.shape
    # One number that holds code and place is sorted five times as fast as a pair; of many points,
    # first by the lower half of the code.
    place_bits = max(count - 1, 1).bit_length()
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
    digit = 32 - place_bits
    places = jnp.arange(code.shape[0], dtype=jnp.uint32)
    order = places
    for i in range(passes):
        own = (code[order] if i else code) >> (digit * i)
        # A radix sort, lowest digit first; the shift cuts off the digits above. Ties are broken by
        # the places, which makes each pass stable.
        rank = jax.lax.sort((own << place_bits) | places) & jnp.uint32(2**place_bits - 1)
        order = order[rank]
    return order.astype(jnp.int32)


def _hilbert(cells: list[UInt32[Array, " points"]], bits: int) -> UInt32[Array, " points"]:
    """Returns the places of cells along Hilbert's curve (Skilling's algorithm)."""
    x = list(cells)
    for bit in reversed(range(1, bits)):
        low = jnp.uint32(2**bit - 1)
        for i in range(len(x)):
            up = (x[i] >> bit) & 1 == 1
            # Invert the lower bits of the first coordinate, or exchange them with the i-th's.
            swap = jnp.where(up, 0, (x[0] ^ x[i]) & low)
            x[0] ^= jnp.where(up, low, swap)
            x[i] ^= swap
    for i in range(1, len(x)):
        # The last step: Gray encode.
        x[i] ^= x[i - 1]
    flip = jnp.zeros_like(x[0])
    for bit in reversed(range(1, bits)):
        flip ^= jnp.where((x[-1] >> bit) & 1 == 1, jnp.uint32(2**bit - 1), 0)
    # The bits of all coordinates in turn, the highest first.
    code = jnp.zeros_like(x[0])
    for bit in reversed(range(bits)):
        for cell in x:
            code = (code << 1) | (((cell ^ flip) >> bit) & 1)
    return code
