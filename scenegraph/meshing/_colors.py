"""The colours of a field at its surface."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Scalar, Vector
from ..fields import AbstractField
from ..numerics import safe_normalise
from ._occlusion import is_seen, SolidCells
from ._opacity_grid import cell_gaussian, Track


# Samples along a ray, and how far they reach before and behind the surface, in cells.
_SAMPLES, _BEFORE, _BEHIND = 16, 10.0, 5.0
# Points that are evaluated at a time, and viewpoints at most.
_BLOCK, _VIEWPOINTS = 2**11, 16
# The weight of the view along the normal, beside which others count by their cosine.
_LEAST = 1e-3
# The weight of a sample beside those that stop light, so that there is a colour everywhere.
_TINY = 1e-6


def surface_colors(
    field: AbstractField,
    points: np.ndarray,
    normals: np.ndarray,
    cells: SolidCells,
    viewpoints: np.ndarray | None,
    track: Track,
) -> np.ndarray:
    """Returns the colours `n 3` of a field at points of its surface, seen from viewpoints `m 3`.

    Without viewpoints, a point is seen along its normal. With them, its colour is the mean over
    those that see it, weighted by the cosine.
    """
    seen_from = np.zeros((0, 3)) if viewpoints is None else spread_out(viewpoints, _VIEWPOINTS)
    seen_from = jnp.asarray(seen_from, jnp.float32)
    colors = np.zeros((len(points), 3), np.float32)
    for start in track(list(range(0, len(points), _BLOCK))):
        block = slice(start, start + _BLOCK)
        # Blocks of one size: one compiled program serves all.
        padding = ((0, _BLOCK - len(points[block])), (0, 0))
        places, outward = (
            jnp.asarray(np.pad(x[block], padding), jnp.float32) for x in (points, normals)
        )
        found = _colors(field, places, outward, cells, seen_from)
        colors[block] = np.asarray(found)[: len(points[block])]
    return colors


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
def _colors(
    field: AbstractField,
    points: Float[Array, "points 3"],
    normals: Float[Array, "points 3"],
    cells: SolidCells,
    viewpoints: Float[Array, "views 3"],
) -> Float[Array, "points 3"]:
    one = lambda point, normal: _color(field, point, normal, cells, viewpoints)
    return jax.vmap(one)(points, safe_normalise(normals))


def _color(
    field: AbstractField,
    point: Vector,
    normal: Vector,
    cells: SolidCells,
    viewpoints: Float[Array, "views 3"],
) -> Float[Array, "3"]:
    """Returns the mean over all views that see a point; the one along the normal counts little."""
    # Weights cos = -view . n, where nothing hides the viewpoint.
    views = jnp.concatenate([-normal[None], jax.vmap(safe_normalise)(point - viewpoints)])
    facing = jnp.maximum(-views[1:] @ normal, 0) * is_seen(cells, point, viewpoints)
    weights = jnp.concatenate([jnp.full(1, _LEAST), facing])
    width = jnp.max(cells.cell)
    rgb = jax.vmap(lambda view: _seen_color(field, point, view, width))(views)
    return weights @ rgb / jnp.sum(weights)


def _seen_color(
    field: AbstractField, point: Vector, view: Vector, width: Scalar
) -> Float[Array, "3"]:
    """Composites the field along a short part of a ray through a point."""
    offsets = jnp.linspace(-_BEFORE, _BEHIND, _SAMPLES, dtype=point.dtype) * width
    medium = jax.vmap(lambda t: field(cell_gaussian(point + t * view, view, width), view))(offsets)
    depth = medium.density * (offsets[1] - offsets[0])
    # w_i = exp(-sum_{j<i} depth_j) (1 - exp(-depth_i))
    weights = jnp.exp(depth - jnp.cumsum(depth)) * -jnp.expm1(-depth) + _TINY
    return weights @ medium.rgb / jnp.sum(weights)
