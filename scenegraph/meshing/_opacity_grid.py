"""The opacity of a volume's cells, on a regular grid."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Scalar, Vector
from ..encodings import Grid
from ..fields import GridField
from ..numerics import unfreeze
from ..rays import Gaussian
from ..scene import Volume
from ._options import MeshOptions


# Steps through blocks of work, and shows progress.
Track: TypeAlias = Callable[[list[int]], Iterable[int]]

# Points that are evaluated at a time, and cells along the longest side where the field has none.
_BLOCK, _USUAL = 2**15, 256
# Cells whose occupancy is looked up at a time.
_MANY = 2**18
_COARSEST, _FINEST = 128, 512
# The level is the opacity of a layer that is this part of the longest side thick, so that it means
# the same at all resolutions.
_LAYERS = 64
# Where all of space is contracted, boxes are of any size: part of the unit about what cameras see.
_SPACE_LAYERS = 50


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
    resolution = options.resolution or _default_resolution(volume, float(extent.max()))
    shape = np.maximum(np.round(resolution * extent / extent.max()), 1).astype(int)
    # docs/meshes.md, "The surface of a fitted field"
    is_space = volume.contraction is not None
    thickness = 1 / _SPACE_LAYERS if is_space else float(extent.max()) / _LAYERS
    grid = OpacityGrid(np.zeros(shape, np.float32), lower, extent / shape, thickness)
    places = np.flatnonzero(_occupied(volume, grid))
    starts = list(range(0, len(places), _BLOCK))
    for start in track(starts):
        block = places[start : start + _BLOCK]
        index = np.stack(np.unravel_index(block, shape), axis=1)
        density = densities(volume, lower + (index + 0.5) * grid.cell, grid.width)
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
            "the corners of a box in the volume's frame (`box`, on the command line "
            "`--box -1 -1 -1 1 1 1`, which holds what cameras look at in all of space)."
        )
    return np.asarray(box.lower, float), np.asarray(box.upper, float)


def _default_resolution(volume: Volume, extent: float) -> int:
    """Returns two cells for each of the field's finest grid that lie along what is searched."""
    field = unfreeze(volume.field)
    if not (isinstance(field, GridField) and isinstance(field.encoding, Grid)):
        return _USUAL
    # A grid spans its cube: the bounds, or the contraction's ball, whose inner half is the unit
    # ball, so that its cube is four units wide.
    share = 1.0 if volume.contraction is None else min(1.0, extent / 4)
    return int(np.clip(2 * share * max(field.encoding.resolutions), _COARSEST, _FINEST))


def _occupied(volume: Volume, grid: OpacityGrid) -> np.ndarray:
    """Returns false for cells in which rays take no samples, flat."""
    shape = grid.opacity.shape
    size = grid.opacity.size
    if unfreeze(volume).box() is None and volume.occupancy is None:
        return np.ones(size, bool)
    found = np.zeros(size, bool)
    for start in range(0, size, _MANY):
        block = np.arange(start, min(start + _MANY, size))
        index = np.stack(np.unravel_index(block, shape), axis=1)
        points = grid.lower + (index + 0.5) * grid.cell
        padded = np.pad(points, ((0, _MANY - len(block)), (0, 0)), "edge").astype(np.float32)
        found[block] = np.asarray(_cells_at(volume, jnp.asarray(padded)))[: len(block)]
    if not found.any():
        raise ValueError(
            f"no cell between {grid.lower} and {grid.lower + shape * grid.cell} in the volume's "
            "frame is occupied: the field is empty there, or has not been fitted."
        )
    return found


@eqx.filter_jit
def _cells_at(volume: Volume, points: Float[Array, "points 3"]) -> Bool[Array, " points"]:
    return volume.cells_at(points)


def densities(volume: Volume, points: np.ndarray, width: float) -> np.ndarray:
    """Returns the mean densities over cells of some width about points `n 3`."""
    count = len(points)
    padded = np.zeros((-(-count // _BLOCK) * _BLOCK if count > _BLOCK else _BLOCK, 3), np.float32)
    padded[:count] = points
    return np.asarray(_densities(volume, jnp.asarray(padded), jnp.float32(width)))[:count]


@eqx.filter_jit
def _densities(
    volume: Volume, points: Float[Array, "points 3"], width: Scalar
) -> Float[Array, " points"]:
    up = jnp.asarray([0.0, 0.0, 1.0], points.dtype)
    return jax.vmap(lambda point: volume.density_at(cell_gaussian(point, up, width)))(points)


def cell_gaussian(point: Vector, direction: Vector, width: Scalar) -> Gaussian:
    """Returns the round Gaussian that stands for a cell, seen along a unit direction."""
    # Along each axis, a cube has the variance of an even distribution, width^2 / 12.
    variance = width**2 / 12
    return Gaussian(point, direction, variance, variance)
