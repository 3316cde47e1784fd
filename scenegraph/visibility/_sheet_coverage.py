"""The coverage of the sheets that were found, with the derivatives of all of their faces."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float
from ..flat import FaceTree
from ..rays import Ray
from ..shapes import piece_of
from ._faces import fill_faces, FoundSheet, next_faces, starts_after
from ._sum_pairs import sum_over_pairs


def sum_sheets(
    tree: FaceTree,
    corners: Float[Array, "faces 3 3"],
    used: Bool[Array, " rays"],
    rays: Ray,
    sheets: FoundSheet,
) -> tuple[Float[Array, "layers rays"], Float[Array, "layers rays"]]:
    """Sums over all faces what sheets cover of the rays that are used, and what hides them."""
    faces = fill_faces(corners, tree.corners), tree.owner
    each, still = jax.tree.map(jnp.transpose, sheets), jax.lax.stop_gradient((tree, rays))
    operands = (rays, each), faces, None
    sums = sum_over_pairs(_cover, next_faces, *still, used, operands)
    return jax.tree.map(jnp.transpose, sums)


def _cover(
    of_ray: tuple[Ray, FoundSheet], face: tuple[Array, Array], of_all: None
) -> tuple[Float[Array, " layers"], Float[Array, " layers"]]:
    """Returns what one face adds to each sheet of a ray, and to what hides it."""
    del of_all
    ray, (kind, begin, end, *_) = of_ray
    piece = piece_of(ray, *face)
    # In the order in which they begin, the fragments of a mesh and side are of a sheet from its
    # first one on, up to where its last stretch ends.
    after = starts_after(piece, begin)
    mine, until = piece.kind == kind, piece.begin <= end
    # What is entered of a mesh, less what is left, hides what is left later.
    entered = (piece.kind == -kind) & until
    hides = jnp.where(entered, piece.coverage, jnp.where(mine & ~after, -piece.coverage, 0))
    covers = jnp.where(mine & after & until, piece.coverage, 0)
    return covers, jnp.where(kind > 0, hides, 0)
