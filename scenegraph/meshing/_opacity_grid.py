"""The opacity of a volume's cells, on a regular grid."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, Vector
from ..encodings import Grid
from ..fields import AbstractField, GridField
from ..numerics import unfreeze
from ..rays import Gaussian
from ..scene import Volume
from ._options import MeshOptions


# Steps through blocks of work, and shows progress.
Track: TypeAlias = Callable[[list[int]], Iterable[int]]

# Points that are evaluated at a time, and cells along the longest side where the field has none.
_BLOCK, _USUAL = 2**15, 256
_COARSEST, _FINEST = 128, 512
# The level is the opacity of a layer that is this part of the longest side thick, so that it means
# the same at all resolutions.
_LAYERS = 64


class OpacityGrid(NamedTuple):
    """The opacities of a layer of each cell's medium, and where the cells lie."""

    opacity: np.ndarray  # x y z, from 0 to 1
    lower: np.ndarray  # the corner of the first cell, 3
    cell: np.ndarray  # the edges of a cell, 3
    thickness: float  # of the layer

    @property
    def width(self) -> float:
        """The longest edge of a cell."""
        return float(self.cell.max())


def measure_opacity(volume: Volume, options: MeshOptions, track: Track) -> OpacityGrid:
    """Evaluates the density of a volume in the middle of cells, where it is not known to be empty.

    The field is averaged over each cell: over a Gaussian with the variance of the cell.
    """
    lower, upper = _corners(volume, options)
    extent = upper - lower
    resolution = options.resolution or _default_resolution(volume.field)
    shape = np.maximum(np.round(resolution * extent / extent.max()), 1).astype(int)
    # docs/meshes.md, "The surface of a fitted field"
    thickness = float(extent.max()) / _LAYERS
    grid = OpacityGrid(np.zeros(shape, np.float32), lower, extent / shape, thickness)
    places = np.flatnonzero(_occupied(volume, grid))
    starts = list(range(0, len(places), _BLOCK))
    for start in track(starts):
        block = places[start : start + _BLOCK]
        index = np.stack(np.unravel_index(block, shape), axis=1)
        density = densities(volume.field, lower + (index + 0.5) * grid.cell, grid.width)
        # 1 - exp(-density * thickness)
        grid.opacity.reshape(-1)[block] = -np.expm1(-density * thickness)
    return grid


def _corners(volume: Volume, options: MeshOptions) -> tuple[np.ndarray, np.ndarray]:
    """Returns the corners of what is searched."""
    if options.box is not None:
        lower, upper = np.reshape(np.asarray(options.box, float), (2, 3))
        return lower, upper
    box = unfreeze(volume).box()
    if box is None:
        raise ValueError(
            "the volume has no bounds, so that there is no end to where its surface may be; pass "
            "the corners of a box (`box`, on the command line `--box -1 -1 -1 1 1 1`)."
        )
    return np.asarray(box.lower, float), np.asarray(box.upper, float)


def _default_resolution(field: AbstractField) -> int:
    """Returns two cells for each of the field's finest grid, which spans the same cube."""
    if isinstance(field, GridField) and isinstance(field.encoding, Grid):
        return int(np.clip(2 * max(field.encoding.resolutions), _COARSEST, _FINEST))
    return _USUAL


def _occupied(volume: Volume, grid: OpacityGrid) -> np.ndarray:
    """Returns false for cells in which rays take no samples, flat."""
    shape = grid.opacity.shape
    box = unfreeze(volume).box()
    if box is None or volume.occupancy is None:
        return np.ones(grid.opacity.size, bool)
    occupancy = unfreeze(volume.occupancy)
    known = np.asarray(occupancy.thickness) > occupancy.threshold
    first, last = np.asarray(box.lower), np.asarray(box.upper)
    axes = []
    for axis, count in enumerate(shape):
        # The occupancy's cell in which the middle of each cell lies, axis by axis.
        middle = grid.lower[axis] + (np.arange(count) + 0.5) * grid.cell[axis]
        place = (middle - first[axis]) / (last[axis] - first[axis]) * known.shape[axis]
        axes.append(np.clip(place.astype(int), 0, known.shape[axis] - 1))
    found = known[np.ix_(*axes)].reshape(-1)
    if not found.any():
        raise ValueError(
            "no cell of the volume's occupancy is occupied: the field is empty, or has not been "
            "fitted."
        )
    return found


def densities(field: AbstractField, points: np.ndarray, width: float) -> np.ndarray:
    """Returns the mean densities over cells of some width about points `n 3`."""
    count = len(points)
    padded = np.zeros((-(-count // _BLOCK) * _BLOCK if count > _BLOCK else _BLOCK, 3), np.float32)
    padded[:count] = points
    return np.asarray(_densities(field, jnp.asarray(padded), jnp.float32(width)))[:count]


@eqx.filter_jit
def _densities(
    field: AbstractField, points: Float[Array, "points 3"], width: Scalar
) -> Float[Array, " points"]:
    up = jnp.asarray([0.0, 0.0, 1.0], points.dtype)
    return jax.vmap(lambda point: field.density(cell_gaussian(point, up, width)))(points)


def cell_gaussian(point: Vector, direction: Vector, width: Scalar) -> Gaussian:
    """Returns the round Gaussian that stands for a cell, seen along a unit direction."""
    # Along each axis, a cube has the variance of an even distribution, width^2 / 12.
    variance = width**2 / 12
    return Gaussian(point, direction, variance, variance)
