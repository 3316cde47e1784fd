"""Pyramids of textures: a picture at all its sizes, and averages over the footprint of a pixel."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int, Scalar
from ..numerics import matmul, safe_normalise, safe_sqrt
from ._coordinates import footprint_area


# The four texels around a position, as steps down and to the right.
_AROUND = np.array(list(itertools.product((0, 1), repeat=2)))


class Pyramid(NamedTuple):
    """A picture at full size, at half and so on: the texels of all levels in one row.

    Pairs are of the picture's axes: downwards, to the right.
    """

    texels: Float[Array, "texels channels"]
    size: tuple[int, int]
    repeat: tuple[bool, bool]
    mirror: tuple[bool, bool]  # every second tile, where it repeats

    def average(
        self, at: Float[Array, "2"], footprint: Float[Array, "2 2"], probes: int
    ) -> Float[Array, " channels"]:
        """Averages over a footprint at parts of height and width.

        `footprint` has a row for each of the picture's axes, in texels: its derivatives by the
        pixel's x and y. With several probes, these lie along the footprint's long axis.
        """
        if probes == 1:
            return self.trilinear(at, footprint_area(footprint))
        step, covered = along_axis(footprint, probes)
        size = jnp.asarray(self.size, at.dtype)
        places = jnp.arange(probes, dtype=at.dtype) - (probes - 1) / 2
        look = lambda place: self.trilinear(at + place * step / size, covered)
        return jnp.mean(jax.vmap(look)(places), axis=0)

    def trilinear(self, at: Float[Array, "2"], covered: Scalar) -> Float[Array, " channels"]:
        """Averages over `covered` texels, between the two nearest levels."""
        sizes = np.array(level_sizes(*self.size))
        first = np.concatenate([[0], np.cumsum(np.prod(sizes, axis=1))[:-1]])
        last = len(sizes) - 1
        # A texel of level l stands for 4^l texels: l = log4(covered) = log2(covered) / 2.
        level = jnp.log2(jnp.clip(covered, 1, 4.0**last)) / 2
        finer = jnp.floor(level).astype(int)
        coarser = jnp.minimum(finer + 1, last)
        one, other = (
            self._bilinear(jnp.asarray(first)[n], jnp.asarray(sizes)[n], at)
            for n in (finer, coarser)
        )
        return one + (level - finer) * (other - one)

    def _bilinear(
        self, first: Int[Array, ""], size: Int[Array, "2"], at: Float[Array, "2"]
    ) -> Float[Array, " channels"]:
        """Interpolates between the four nearest texels of one level, which starts at `first`."""
        # The centre of texel i is at (i + 1/2) / n.
        inside = at * size - 0.5
        low = jnp.floor(inside)
        rest = inside - low
        weights = jnp.prod(jnp.where(_AROUND == 1, rest, 1 - rest), axis=1)
        row, column = self._wrapped(low + _AROUND, size).astype(int).T
        return jnp.sum(weights[:, None] * self.texels[first + row * size[1] + column], axis=0)

    def _wrapped(self, cells: Float[Array, "4 2"], size: Int[Array, "2"]) -> Float[Array, "4 2"]:
        """Returns the cells of the picture that stand for those beyond it.

        Wrapped while still floating: far away, the numbers are too large for integers.
        """
        clamped = jnp.clip(cells, 0, size - 1)
        if not any(self.repeat):
            return clamped
        repeated = _remainder(cells, size)
        if any(self.mirror):
            # ... 1 0 | 0 1 ... n-1 | n-1 ... 1 0 | 0 1 ...
            there_and_back = _remainder(cells, 2 * size)
            mirrored = jnp.minimum(there_and_back, 2 * size - 1 - there_and_back)
            repeated = jnp.where(np.array(self.mirror), mirrored, repeated)
        return jnp.where(np.array(self.repeat), repeated, clamped)


def _remainder(x: Float[Array, "4 2"], by: Int[Array, "2"]) -> Float[Array, "4 2"]:
    """Returns remainders of whole numbers: processors take them one by one, and this at once."""
    # Halves keep rounding away from whole quotients.
    return jnp.clip(x - by * jnp.floor((x + 0.5) / by), 0, by - 1)


def along_axis(footprint: Float[Array, "2 2"], probes: int) -> tuple[Float[Array, "2"], Scalar]:
    """Returns the step between probes, and the texels that each of them covers.

    A square of side `w` at every probe, and the probes' places together, have the second moment of
    the footprint along its long axis. The pyramid's own blur is taken into account.
    """
    # The squares L^2 >= S^2 of the sides of a rectangle with the footprint's second moments are the
    # eigenvalues of J J^T = ((a, b), (b, c)): (a + c) / 2 +- r, r^2 = ((a - c) / 2)^2 + b^2.
    (a, b), (_, c) = matmul(footprint, footprint.T)
    middle, half = (a + c) / 2, (a - c) / 2
    radius = safe_sqrt(half**2 + b**2)
    long, short = middle + radius, jnp.maximum(middle - radius, 0)
    # w = S, or L / n for a footprint longer than n squares.
    square = jnp.maximum(short, long / probes**2)
    # Places i d for i = 0 ... n-1 have the variance d^2 (n^2 - 1) / 12, which with w^2 / 12 is
    # to be L^2 / 12: d^2 = (L^2 - w^2) / (n^2 - 1).
    spread = jnp.maximum(long - square, 0) / (probes**2 - 1)
    # The eigenvector is (L^2 - c, b), or (b, L^2 - a): the one that is not nearly nothing.
    axis = jnp.where(half < 0, jnp.stack([b, radius - half]), jnp.stack([half + radius, b]))
    # Interpolated, a level of 4^l texels each blurs by the variance 4^l / 4 - 1 / 12. Interpolated
    # texels under a square of side w have w^2 / 12 + 1 / 6: as much, if 4^l = 1 + w^2 / 3. But a
    # pixel as large as a texel is to show it: w^2 counts from 1 on.
    covered = 1 + jnp.maximum(square - 1, 0) / 3
    return safe_sqrt(spread) * safe_normalise(axis), covered


def level_sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Returns the heights and widths of all levels."""
    sizes = [(height, width)]
    while max(sizes[-1]) > 1:
        sizes.append((max(sizes[-1][0] // 2, 1), max(sizes[-1][1] // 2, 1)))
    return sizes


def build_levels(texels: Float[Array, "height width channels"]) -> Float[Array, "_ channels"]:
    """Returns the texels of all levels in one row."""
    channels = texels.shape[2]
    return jnp.concatenate([level.reshape(-1, channels) for level in halved(texels)])


def halved(texels: Float[Array, "height width channels"]) -> list[Float[Array, "_ _ channels"]]:
    """Makes a mip map: the picture at full size, at half and so on, all with the same mean."""
    levels = [texels]
    while max(levels[-1].shape[:2]) > 1:
        shorter = _halve(levels[-1])
        levels.append(jnp.swapaxes(_halve(jnp.swapaxes(shorter, 0, 1)), 0, 1))
    return levels


def _halve(rows: Float[Array, "n m channels"]) -> Float[Array, "_ m channels"]:
    count = rows.shape[0]
    half = count // 2
    if count == 1:
        return rows
    if count % 2 == 0:
        return (rows[0::2] + rows[1::2]) / 2
    # Of n = 2 h + 1 rows, the new row i covers n / h of them:
    # ((h - i) row[2i] + h row[2i+1] + (i + 1) row[2i+2]) / n.
    i = jnp.arange(half, dtype=rows.dtype)[:, None, None]
    above, below = rows[:-1:2], rows[2::2]
    return ((half - i) * above + half * rows[1::2] + (i + 1) * below) / count
