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


# Samples along the normal, and how far they reach outwards and inwards, in cells.
_SAMPLES, _OUTWARDS, _INWARDS = 10, 2.0, 3.0
# Points that are evaluated at a time, and viewpoints at most.
_BLOCK, _VIEWPOINTS = 2**12, 16
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
    """Composites the field along a short ray against the normal; views differ in colour alone."""
    views = jnp.concatenate([-normal[None], jax.vmap(safe_normalise)(point - viewpoints)])
    seen = is_seen(cells, point, viewpoints)
    facing = jnp.maximum(-views @ normal, 0).at[1:].multiply(seen).at[0].set(_LEAST)
    width = jnp.max(cells.cell)
    offsets = jnp.linspace(_OUTWARDS, -_INWARDS, _SAMPLES, dtype=point.dtype) * width

    def sample(offset: Scalar) -> tuple[Scalar, Float[Array, "3"]]:
        gaussian = cell_gaussian(point + offset * normal, -normal, width)
        medium = jax.vmap(lambda view: field(gaussian, view))(views)
        return medium.density[0], facing @ medium.rgb / jnp.sum(facing)

    density, rgb = jax.vmap(sample)(offsets)
    depth = density * (offsets[0] - offsets[1])
    # w_i = exp(-sum_{j<i} depth_j) (1 - exp(-depth_i))
    weights = jnp.exp(depth - jnp.cumsum(depth)) * -jnp.expm1(-depth) + _TINY
    return weights @ rgb / jnp.sum(weights)
