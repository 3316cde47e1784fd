"""The coverage of the sheets that were found, with the derivatives of all of their faces."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float
from ..flat import FaceTree
from ..rays import Ray
from ..shapes import piece_of
from ._face_search import ListedFaces
from ._fragments import FoundSheets, WAY
from ._sum_faces import fill_faces, sum_over_faces


# Relative to depths: the rounding of where a stretch begins, which is computed in two programs.
_ROUNDING = 1e-5


def sum_sheets(
    tree: FaceTree,
    corners: Float[Array, "faces 3 3"],
    listed: ListedFaces,
    used: Bool[Array, " rays"],
    rays: Ray,
    sheets: FoundSheets,
) -> tuple[Float[Array, "layers rays"], Float[Array, "layers rays"]]:
    """Sums over all faces what sheets cover of the rays that are used, and what hides them."""
    faces = fill_faces(corners, tree.corners), tree.owner
    each, still = jax.tree.map(jnp.transpose, sheets), jax.lax.stop_gradient(rays)
    sums = sum_over_faces(_cover, tree, listed.of(used), still, (rays, each), faces, WAY)
    return jax.tree.map(jnp.transpose, sums)


def _cover(
    own: tuple[Ray, FoundSheets], face: tuple[Array, Array]
) -> tuple[Float[Array, " layers"], Float[Array, " layers"]]:
    """Returns what one face adds to each sheet of a ray, and to what hides it."""
    ray, (_, _, begin, end, kind, _) = own
    piece = piece_of(ray, *face)
    # In the order in which they begin, the fragments of a mesh and side are of a sheet from its
    # first one on, up to where its last stretch ends.
    after = piece.begin >= begin - _ROUNDING * jnp.abs(begin)
    mine, until = piece.kind == kind, piece.begin <= end
    # What is entered of a mesh, less what is left, hides what is left later.
    entered = (piece.kind == -kind) & until
    hides = jnp.where(entered, piece.coverage, jnp.where(mine & ~after, -piece.coverage, 0))
    covers = jnp.where(mine & after & until, piece.coverage, 0)
    return covers, jnp.where(kind > 0, hides, 0)
