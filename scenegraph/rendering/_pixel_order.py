"""The order of pixels: row by row, or tile by tile, so that neighbours go the same way."""

import dataclasses

import jax.numpy as jnp

from .._typing import Array, Int


# Pixels along the side of a tile that is a bundle of rays.
TILE_SIDE = 8


@dataclasses.dataclass(frozen=True)
class PixelOrder:
    """Numbers the pixels of a picture, tile by tile; tiles at the far edges may be smaller."""

    width: int
    height: int
    side: int = 1  # of a tile, in pixels; 1 for row by row

    def pixel(self, rank: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """Returns the pixels (row by row) that have given places in the order."""
        if self.side == 1:
            return rank
        row, rank = jnp.divmod(rank, self.side * self.width)
        tall = jnp.minimum(self.side, self.height - self.side * row)
        column, rank = jnp.divmod(rank, self.side * tall)
        wide = jnp.minimum(self.side, self.width - self.side * column)
        y, x = jnp.divmod(rank, wide)
        return (self.side * row + y) * self.width + self.side * column + x

    def rank(self, pixel: Int[Array, "*n"]) -> Int[Array, "*n"]:
        """Returns the places of pixels in the order: the inverse of `pixel`."""
        if self.side == 1:
            return pixel
        y, x = jnp.divmod(pixel, self.width)
        (row, y), (column, x) = jnp.divmod(y, self.side), jnp.divmod(x, self.side)
        tall = jnp.minimum(self.side, self.height - self.side * row)
        wide = jnp.minimum(self.side, self.width - self.side * column)
        return self.side * (row * self.width + column * tall) + y * wide + x
