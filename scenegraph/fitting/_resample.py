"""Moments of an optimiser, resampled for leaves of another shape."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array
from ..encodings import Grid
from ..images import Image
from ..lights import EnvironmentLight
from ..shaders import ImageTexture
from ..shapes import SampledDistance


# Powers of the gradient in an optimiser's moments.
_POWERS = {"mu": 1, "trace": 1, "nu": 2, "nu_max": 2}


def resample_moment(
    moment: Array, name: str, field: str, was: Any, now: Any, fresh: Array
) -> Array | None:
    """Returns the moment of a leaf in the shape of `fresh`, or `None` if no rule says how.

    Texels and grid points are interpolated linearly; levels of a `Grid` that are as they were keep
    their rows. `name` is the optimiser's for the moment, such as `mu`; `field` is the leaf's name
    in the Modules that hold the old and the new one.
    """
    if type(was) is not type(now) or moment.ndim != fresh.ndim or name not in _POWERS:
        return None
    if isinstance(was, Grid):
        return _levels(moment, was, now, fresh)
    interpolate = _RULES.get((type(was), field))
    if interpolate is None:
        return None
    # n numbers share the gradient of m: each has m / n of it, (m / n)^2 of its square.
    share = math.prod(moment.shape) / math.prod(fresh.shape)
    return (share ** _POWERS[name] * interpolate(moment, fresh.shape)).astype(fresh.dtype)


def _texels(moment: Array, shape: tuple[int, ...]) -> Array:
    """Resamples numbers at the centres of cells."""
    return jax.image.resize(moment, shape, "linear", antialias=False)


def _points(moment: Array, shape: tuple[int, ...]) -> Array:
    """Resamples numbers at the corners of cells, the first and the last at the ends."""
    # Corner i of n is at i (m - 1) / (n - 1) among the m old ones.
    ends = [jnp.linspace(0, old - 1, new) for old, new in zip(moment.shape, shape, strict=True)]
    return jax.scipy.ndimage.map_coordinates(moment, jnp.meshgrid(*ends, indexing="ij"), order=1)


_RULES: dict[tuple[type, str], Callable[[Array, tuple[int, ...]], Array]] = {
    (ImageTexture, "texels"): _texels,
    (EnvironmentLight, "texels"): _texels,
    (Image, "rgb"): _texels,
    (SampledDistance, "values"): _points,
}


def _levels(moment: Array, was: Grid, now: Grid, fresh: Array) -> Array | None:
    if moment.shape[1:] != fresh.shape[1:]:
        return None
    known = {name: moment[first:last] for name, first, last in _rows(was)}
    for name, first, last in _rows(now):
        fresh = fresh.at[first:last].set(known.get(name, fresh[first:last]))
    return fresh


def _rows(grid: Grid) -> list[tuple[tuple[int, int], int, int]]:
    """Returns resolution and size of each level, and the first and last of its rows."""
    rows, first = [], 0
    for resolution in grid.resolutions:
        size = min((resolution + 1) ** 3, grid.capacity)
        rows.append(((resolution, size), first, first + size))
        first += size
    return rows
