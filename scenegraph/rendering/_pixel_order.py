"""The order of pixels: row by row, or tile by tile, so that neighbours go the same way."""

import dataclasses

import jax.numpy as jnp

from .._typing import Array, Int


# Pixels along the side of a tile, and of the squares in which tiles go together: what is shaded at
# once is one part of the picture, and its shadow rays are close. A tile is four squares, so that
# the eight rays that walk together are 4 x 2 pixels.
TILE_SIDE, _SQUARE_SIDE = 8, 128


@dataclasses.dataclass(frozen=True)
class PixelOrder:
    """Numbers the pixels of a picture, tile by tile; tiles at the far edges may be smaller."""

    width: int
    height: int
    side: int = 1  # of a tile, in pixels; 1 for row by row

    @property
    def _sides(self) -> tuple[int, ...]:
        return () if self.side == 1 else (_SQUARE_SIDE, self.side, self.side // 2)

    def pixel(self, rank: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """Returns the pixels (row by row) that have given places in the order."""
        left, top, width, height = 0, 0, self.width, self.height
        for side in self._sides:
            # A whole row of tiles has side x width pixels, and a tile of it side x height.
            row, rank = _divmod(rank, side * width)
            height = jnp.minimum(side, height - side * row)
            column, rank = _divmod(rank, side * height)
            width = jnp.minimum(side, width - side * column)
            left, top = left + side * column, top + side * row
        y, x = _divmod(rank, width)
        return (top + y) * self.width + left + x


def _divmod(number: Int[Array, "*n"], by: Int[Array, "*n"] | int) -> tuple[Array, Array]:
    """Returns quotient and remainder of numbers that are not negative.

    Processors divide integers one by one, and floating-point numbers many at a time.
    """
    quotient = (number.astype(jnp.float32) / by).astype(number.dtype)
    rest = number - by * quotient
    # Rounding is off by one at most, because quotients are below 2^22.
    quotient += (rest >= by).astype(number.dtype) - (rest < 0)
    return quotient, number - by * quotient
