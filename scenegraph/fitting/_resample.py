"""What becomes of an optimiser's moments when a leaf is given more numbers, or fewer."""

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


# Of a gradient, of its square.
_POWERS = {"mu": 1, "trace": 1, "nu": 2, "nu_max": 2}


def resample_moment(
    moment: Array, name: str, field: str, was: Any, now: Any, fresh: Array
) -> Array | None:
    """The moment of a leaf whose shape has changed.

    Texels and grid points are interpolated linearly. Where n numbers now share what m had, each of
    them has m / n of the gradient, and the square of that of its square. Levels of a `Grid` that
    are as they were keep their rows.

    **Arguments:**

    - `moment`: of the old leaf.
    - `name`: the optimiser's own for it, such as `mu`.
    - `field`: the leaf's name in its Module.
    - `was`, `now`: the Modules that hold the old and the new leaf.
    - `fresh`: what the optimiser begins with.

    **Returns:**

    The moment; `None` where there is no rule.
    """
    if type(was) is not type(now) or moment.ndim != fresh.ndim or name not in _POWERS:
        return None
    if isinstance(was, Grid):
        return _levels(moment, was, now, fresh)
    interpolate = _RULES.get((type(was), field))
    if interpolate is None:
        return None
    share = math.prod(moment.shape) / math.prod(fresh.shape)
    return (share ** _POWERS[name] * interpolate(moment, fresh.shape)).astype(fresh.dtype)


def _texels(moment: Array, shape: tuple[int, ...]) -> Array:
    """Of numbers that stand in the middles of cells."""
    return jax.image.resize(moment, shape, "linear", antialias=False)


def _points(moment: Array, shape: tuple[int, ...]) -> Array:
    """Of numbers that stand at the corners of cells, the first and the last at the ends."""
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
    """Of every level, what tells it from others, and where its rows begin and end."""
    rows, first = [], 0
    for resolution in grid.resolutions:
        size = min((resolution + 1) ** 3, grid.capacity)
        rows.append(((resolution, size), first, first + size))
        first += size
    return rows
