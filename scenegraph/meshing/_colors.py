"""The colours of a field at its surface, as seen from several places."""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, Vector
from ..encodings import SphericalHarmonics
from ..numerics import matmul, safe_normalise
from ..scene import Volume
from ._occlusion import is_seen, SolidCells
from ._opacity_grid import cell_gaussian, Track


# Samples along a ray, and how far they reach before and behind the surface, in cells.
_SAMPLES, _BEFORE, _BEHIND = 16, 10.0, 5.0
# Points that are evaluated at a time; viewpoints at most, for means and for harmonics; and how many
# of them, those that see a point best, are evaluated: few of 32 around a thing see more of it.
_BLOCK, _VIEWPOINTS, _MORE_VIEWPOINTS, _BEST = 2**11, 16, 32, 16
# The weight of the view along the normal, beside which others count by their cosine.
_LEAST = 1e-3
# The weight of a sample beside those that stop light, so that there is a colour everywhere.
_TINY = 1e-6


class Seen(NamedTuple):
    """Points of a volume's surface, in its frame, and from where they are seen."""

    volume: Volume
    points: np.ndarray  # n 3
    normals: np.ndarray
    cells: SolidCells
    viewpoints: np.ndarray | None  # m 3


class Moments(NamedTuple):
    """Moments of the colours of points over their views; `k` harmonics, all but the first.

    Of weights `w`, harmonics `Y` and colours `c`; means are weighted.
    """

    color: Float[np.ndarray | Array, "*n 3"]  # mean
    harmonics: Float[np.ndarray | Array, "*n k"]  # mean
    weight: Float[np.ndarray | Array, "*n"]  # sum w
    square: Float[np.ndarray | Array, "*n k k"]  # sum w (Y - mean) (Y - mean)^T
    product: Float[np.ndarray | Array, "*n k 3"]  # sum w (Y - mean) (c - mean)^T


def surface_colors(seen: Seen, track: Track) -> np.ndarray:
    """Returns the colours `n 3` of a field at points of its surface.

    Without viewpoints, a point is seen along its normal. With them, its colour is the mean over
    those that see it, weighted by the cosine.
    """
    blocks = [found.color for _, found in color_moments(seen, 1, track)]
    return np.concatenate(blocks) if blocks else np.zeros((0, 3), np.float32)


def color_moments(seen: Seen, bands: int, track: Track) -> Iterator[tuple[slice, Moments]]:
    """Yields the moments of points, block by block, with harmonics of so many bands."""
    places = np.zeros((0, 3)) if seen.viewpoints is None else seen.viewpoints
    most = _VIEWPOINTS if bands == 1 else _MORE_VIEWPOINTS
    places = jnp.asarray(spread_out(places, most), jnp.float32)
    for start in track(list(range(0, len(seen.points), _BLOCK))):
        block = slice(start, min(start + _BLOCK, len(seen.points)))
        count = block.stop - block.start
        # Blocks of one size: one compiled program serves all.
        points, normals = (
            jnp.asarray(np.pad(x[block], ((0, _BLOCK - count), (0, 0))), jnp.float32)
            for x in (seen.points, seen.normals)
        )
        found = _moments_of(seen.volume, points, normals, seen.cells, places, bands)
        yield block, jax.tree.map(lambda x: np.asarray(x)[:count], found)  # noqa: B023


def spread_out(points: np.ndarray, most: int) -> np.ndarray:
    """Picks points that are far from each other, each the farthest from those before."""
    if len(points) <= most:
        return points
    chosen = [0]
    distance = np.full(len(points), np.inf)
    while len(chosen) < most:
        # Of every point, the distance to the nearest that is chosen.
        apart = np.linalg.norm(points - points[chosen[-1]], axis=1)
        distance = np.minimum(distance, apart)
        chosen.append(int(np.argmax(distance)))
    return points[chosen]


@eqx.filter_jit
def _moments_of(
    volume: Volume,
    points: Float[Array, "points 3"],
    normals: Float[Array, "points 3"],
    cells: SolidCells,
    viewpoints: Float[Array, "views 3"],
    bands: int,
) -> Moments:
    one = lambda point, normal: _moments(volume, point, normal, cells, viewpoints, bands)
    return jax.vmap(one)(points, safe_normalise(normals))


def _moments(
    volume: Volume,
    point: Vector,
    normal: Vector,
    cells: SolidCells,
    viewpoints: Float[Array, "views 3"],
    bands: int,
) -> Moments:
    """Returns moments over all views that see a point; the one along the normal counts little."""
    # Weights cos = -view . n, where nothing hides the viewpoint.
    views = jax.vmap(safe_normalise)(point - viewpoints)
    facing = jnp.maximum(matmul(-views, normal), 0) * is_seen(cells, point, viewpoints)
    facing, best = jax.lax.top_k(facing, min(_BEST, viewpoints.shape[0]))
    views = jnp.concatenate([-normal[None], views[best]])
    weights = jnp.concatenate([jnp.full(1, _LEAST), facing])
    width = jnp.max(cells.cell)
    rgb = jax.vmap(lambda view: _seen_color(volume, point, view, width))(views)
    total = jnp.sum(weights)
    color = matmul(weights, rgb) / total
    harmonics = jax.vmap(SphericalHarmonics(bands))(views)[:, 1:]
    mean = matmul(weights, harmonics) / total
    apart = weights[:, None] * (harmonics - mean)
    square, product = matmul(apart.T, harmonics - mean), matmul(apart.T, rgb - color)
    return Moments(color, mean, total, square, product)


def _seen_color(volume: Volume, point: Vector, view: Vector, width: Scalar) -> Float[Array, "3"]:
    """Composites the field along a short part of a ray through a point."""
    offsets = jnp.linspace(-_BEFORE, _BEHIND, _SAMPLES, dtype=point.dtype) * width
    at = lambda t: volume.medium_at(cell_gaussian(point + t * view, view, width), view)
    medium = jax.vmap(at)(offsets)
    depth = medium.density * (offsets[1] - offsets[0])
    # w_i = exp(-sum_{j<i} depth_j) (1 - exp(-depth_i))
    weights = jnp.exp(depth - jnp.cumsum(depth)) * -jnp.expm1(-depth) + _TINY
    return matmul(weights, medium.rgb) / jnp.sum(weights)
