"""Shadows of meshes: sums over what all faces stop of rays, and the faces that cover most."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..flat import FaceTree
from ..numerics import AbstractModule
from ..rays import Ray
from ..rows import map_rows
from ..rowwise import take_rows
from ..shapes import cross_triangle
from ._face_pairs import add_terms, FaceSum, Sums
from ._face_search import FaceVisit, list_faces, ListedFaces, search_faces
from ._order import invert_order, order_shadow_rays
from ._search import FAINT, insert, no_items, Ranking
from ._sum_faces import fill_faces, sum_over_faces


# Rays in a bundle, see `_fragments`.
_BUNDLE = 32
# See `FaceVisit`.
_WAY = -1
# With more faces than this, putting shadow rays in order pays.
_MANY = 256


class FaceSums(AbstractModule):
    """The total coverage of faces that are turned to a ray, and of those turned away."""

    coverage: Float[Array, "2 *rays"]
    opaque: Float[Array, "2 *rays"]  # coverage times opacity
    square: Float[Array, "2 *rays"]  # coverage times opacity squared


def sum_shadows(
    tree: FaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    count: int,
    *,
    everything: bool,
) -> tuple[FaceSums, Ranking | None]:
    """Sums what all faces stop of rays, and finds the `count` faces that cover most, if any.

    Sums have rays last, and rankings first. They have no derivatives.
    """
    rays, listed, order = _listed_in_order(tree, rays, used, everything=everything)
    visit = _ranked_sums(tree, count, rays.near.dtype) if count else _sums(tree, rays.near.dtype)
    found, places = search_faces(tree, listed, rays, visit)
    found = take_rows(found, places if order is None else places[invert_order(order)])
    return _with_rays_last(found[0]), found[1]


def sum_moving_shadows(
    tree: FaceTree,
    corners: Float[Array, "faces 3 3"],
    opacity: Float[Array, " faces"],
    rays: Ray,
    used: Bool[Array, " rays"],
    *,
    everything: bool,
) -> FaceSums:
    """Sums what all faces stop of rays, with derivatives; sums have rays last."""
    rays, listed, order = _listed_in_order(tree, rays, used, everything=everything)
    faces = fill_faces(corners, tree.corners), fill_faces(opacity, tree.opacity), tree.one_sided
    stop = lambda ray, face: by_side(*_cover(ray, face[0]), *face[1:])
    sums = sum_over_faces(stop, tree, listed, jax.lax.stop_gradient(rays), rays, faces, _WAY)
    return _with_rays_last(sums if order is None else take_rows(sums, invert_order(order)))


def _listed_in_order(
    tree: FaceTree, rays: Ray, used: Bool[Array, " rays"], *, everything: bool
) -> tuple[Ray, ListedFaces, Int[Array, " rays"] | None]:
    """Returns shadow rays in an order, which pays with many faces, and clusters listed for them."""
    order, still = None, jax.lax.stop_gradient(rays)
    if tree.corners.shape[0] > _MANY:
        order = order_shadow_rays(still, used, _BUNDLE)
        rays, still, used = take_rows((rays, still, used), order)
    return rays, list_faces(tree, still, used, _BUNDLE, everything=everything), order


def _with_rays_last(sums: FaceSums) -> FaceSums:
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), sums)


def _sums(tree: FaceTree, dtype: jnp.dtype) -> FaceSum:
    """Returns the search for sums alone."""
    meet = lambda _, row: _cover(row[0][0], row[1])

    def start(rays: int) -> FaceSums:
        nothing = jnp.zeros((2, rays), dtype)
        return FaceSums(nothing, nothing, nothing)

    def add(own: PyTree, rays: Array, faces: Array, there: Array, sums: Sums) -> Sums:
        rows = take_rows(own, rays), take_rows(tree.corners, faces)
        terms = _stopped(tree, map_rows(meet, None, rows), faces)
        # Beyond the last ray, nothing is added.
        place = jnp.where(there, rays, sums[0].coverage.shape[-1])
        return add_terms(sums[0], terms, place, -1), None

    finish = lambda sums: jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), sums)
    return FaceSum(start, add, finish, _WAY)


def _stopped(tree: FaceTree, piece: tuple[Array, Array], face: Array) -> FaceSums:
    """Returns what some faces stop of rays."""
    return by_side(*piece, tree.opacity[face], take_rows(tree.one_sided, face))


def _ranked_sums(tree: FaceTree, count: int, dtype: jnp.dtype) -> FaceVisit:
    """Returns the search for sums, and for the faces that cover most."""
    alone = _sums(tree, dtype)

    def start(rays: int) -> tuple[FaceSums, Ranking]:
        return alone.start(rays), no_items(count, jnp.zeros(rays, dtype))

    def add(memory: tuple, piece: tuple, face: Array, there: Array, n: Array) -> tuple:
        coverage, facing = jnp.where(there, piece[0], 0), piece[1]
        seen = there & (coverage > FAINT)
        if tree.one_sided is not None:
            seen &= ~(tree.one_sided[face] & (facing < 0))
        terms = _stopped(tree, (coverage, facing), face)
        sums = jax.tree.map(lambda x, y: x + jnp.sum(y, axis=1), memory[0], terms)
        # Keys ascend: those that cover most are the first.
        one = lambda i, ranking: insert(ranking, -coverage[i], face[i], coverage[i], seen[i])
        return sums, jax.lax.fori_loop(0, n, one, memory[1])

    finish = lambda memory, _: jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), memory)
    nothing = lambda count, _: finish(start(count), None)
    return FaceVisit(start, _cover, add, nothing, finish, _WAY)


def _cover(ray: Ray, corners: Float[Array, "3 3"]) -> tuple[Array, Array]:
    """Returns what a face covers of a ray, and its side."""
    fragment = cross_triangle(ray, corners)
    return fragment.coverage, fragment.facing


def by_side(
    coverage: Array, facing: Array, opacity: Array, one_sided: Array | None = None
) -> FaceSums:
    """Splits coverage into that of faces turned to a ray, and turned away.

    Those of one side count for both if they are turned to where the ray leads, and for none else.
    """
    near, far = (jnp.where(side, coverage, 0) for side in (facing < 0, facing > 0))
    if one_sided is not None:
        near = jnp.where(one_sided, far, near)
    sides = jnp.stack([near, far])
    return FaceSums(sides, sides * opacity, sides * opacity**2)


def face_transmission(sums: FaceSums) -> Float[Array, "*rays"]:
    """Returns what passes the faces of meshes.

    Of the two sides, which cover one another in a closed mesh, the one that stops more counts.
    Faces do not overlap within a sheet, so coverage beyond one is that of a further sheet:
    `(1 - o)^n (1 - o f)` for a coverage of `n + f`, with the mean opacity `o` of what stops light:
    faces that let all of it pass are as good as not there.
    """
    pick = lambda x: jnp.where(sums.opaque[1] > sums.opaque[0], x[1], x[0])
    opaque, square = pick(sums.opaque), pick(sums.square)
    # o = sum(c o^2) / sum(c o), and n + f = sum(c o) / o
    some = square > 0
    opacity = jnp.where(some, square / jnp.where(some, opaque, 1), 0)
    coverage = jnp.where(some, opaque / jnp.where(some, opacity, 1), 0)
    whole = jax.lax.stop_gradient(jnp.floor(coverage))
    # By cases, because JAX has no second derivative of 0^n for n = 0 and 1.
    passed = 1 - opacity
    several = passed ** jnp.maximum(whole, 2)
    before = jnp.where(whole > 1, several, jnp.where(whole > 0, passed, 1))
    return before * (1 - opacity * (coverage - whole))
