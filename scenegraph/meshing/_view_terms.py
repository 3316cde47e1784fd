"""Textures of colours that depend on the view: harmonics by least squares, on coarser texels."""

import math
from typing import NamedTuple

import numpy as np

from ._atlas import spread, Texels
from ._colors import color_moments, Seen
from ._opacity_grid import Track


# Texels of a texture along a texel of coefficients: gloss is smoother than what is painted.
_COARSER = 4
# What is added to the mean squares of harmonics: little is known of directions seen by few views.
_RIDGE = 1e-3
# The first harmonic.
_FIRST = 1 / math.sqrt(4 * math.pi)


class ViewTexture(NamedTuple):
    """Mean colours, and the coefficients of harmonics that are added to them."""

    colors: np.ndarray  # of the texels, n 3
    terms: np.ndarray  # rows columns harmonics 3


def view_texture(
    seen: Seen, texels: Texels, shape: tuple[int, int], bands: int, track: Track
) -> ViewTexture:
    """Returns the colours of a texture's texels, whose points are seen from several places.

    The texels of a coarser one share the terms T that fit best: of all `c - mean c` and
    `T (Y - mean Y)`, for colours c and harmonics Y, the weighted squared distances are least.
    """
    rows, columns = (-(-n // _COARSER) for n in shape)
    cell = texels.row // _COARSER * columns + texels.column // _COARSER
    count, size = bands**2 - 1, rows * columns
    square, product = np.zeros((size, count, count)), np.zeros((size, count, 3))
    weight, harmonics = np.zeros(size), np.zeros((size, count))
    colors = np.zeros((len(cell), 3), np.float32)
    for block, found in color_moments(seen, bands, track):
        colors[block], own = found.color, cell[block]
        for total, part in ((square, found.square), (product, found.product)):
            np.add.at(total, own, part)
        np.add.at(weight, own, found.weight)
        np.add.at(harmonics, own, found.weight[:, None] * found.harmonics)
    covered = weight > 0
    terms = np.zeros((size, count + 1, 3), np.float32)
    terms[covered] = _solve(*(x[covered] for x in (square, product, weight, harmonics)))
    terms = terms.reshape(rows, columns, count + 1, 3)
    return ViewTexture(colors, spread(terms, covered.reshape(rows, columns)))


def _solve(
    square: np.ndarray, product: np.ndarray, weight: np.ndarray, harmonics: np.ndarray
) -> np.ndarray:
    """Returns terms, the constant one included, whose mean over all views is zero."""
    # (sum w (Y - mean Y) (Y - mean Y)^T + ridge sum w) T = sum w (Y - mean Y) (c - mean c)^T
    ridge = _RIDGE * weight[:, None, None] * np.eye(square.shape[1])
    terms = np.linalg.solve(square + ridge, product)
    # Y_0 T_0 + mean Y . T = 0
    mean = harmonics / weight[:, None]
    constant = -np.einsum("nk,nkc->nc", mean, terms) / _FIRST
    return np.concatenate([constant[:, None], terms], axis=1)
