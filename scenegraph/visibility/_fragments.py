"""Searches over the faces of meshes: sheets that a pixel sees, and faces that stop shadow rays."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..numerics import AbstractModule
from ..rays import Ray
from ..scene import Instance, InstanceStack, MeshFace
from ..shapes import cross_triangle, find_sheets, NOISE, piece_of, Pieces, Sheets, unhidden
from ._search import BUNDLE, FAINT, insert, no_items, Ranking, search, search_shadows, Visit


# Of how many fragments a layer may consist on average: all of them are found, and the strongest
# have derivatives.
_FRAGMENTS = 4


class FoundSheets(NamedTuple):
    """The nearest fragments of meshes on rays, and the sheets that they make up."""

    ids: Int[Array, "fragments rays"]  # numbers of faces; -1 for none
    coverage: Float[Array, "fragments rays"]
    sheets: Sheets  # `fragments rays`


class FaceSums(AbstractModule):
    """What faces that are turned to a ray, and those turned away, cover altogether."""

    coverage: Float[Array, "2 *rays"]
    opaque: Float[Array, "2 *rays"]  # coverage times opacity


def find_mesh_sheets(
    faces: InstanceStack, rays: Ray, used: Bool[Array, " rays"], found: Ranking, first_code: int
) -> tuple[Ranking, FoundSheets]:
    """Finds sheets of meshes on rays, and inserts them among the layers.

    The code of a sheet is `first_code`, and its place among the fragments of its ray.
    """
    layers = found.keys.shape[0]
    fragments = _find_fragments(faces, rays, used, _FRAGMENTS * layers)
    ids = fragments.codes
    chosen = _corners_alone(faces).take(jnp.maximum(ids, 0)).members.node
    sheets = find_sheets(_pieces(rays, chosen, fragments))
    alphas = chosen.opacity * unhidden(sheets.coverage, sheets.hidden)

    def add(found: Ranking, item: tuple) -> tuple[Ranking, None]:
        t, alpha, place = item
        code = jnp.full(t.shape, first_code, jnp.int32) + place
        return insert(found, t, code, alpha, alpha > 0), None

    items = sheets.t, alphas, jnp.arange(len(ids), dtype=jnp.int32)
    found = jax.lax.scan(add, found, items)[0]
    # What has no place among the fragments exceeds the layers, too.
    lost = jnp.maximum(fragments.met - len(ids), 0)
    met = jnp.where(lost > 0, jnp.maximum(found.met, layers + lost), found.met)
    found = found._replace(met=met, rest=found.rest * fragments.rest)
    return found, FoundSheets(ids, fragments.values, sheets)


def _find_fragments(
    faces: InstanceStack, rays: Ray, used: Bool[Array, " rays"], count: int
) -> Ranking:
    """Finds the nearest faces that pixels see, by where their stretches begin."""

    def meet(instance: Instance, ray: Ray) -> tuple[Array, Array, Array]:
        piece = piece_of(ray, instance.node.shape.corners, instance.node.owner)
        return piece.begin, instance.number, piece.coverage

    def rank(ranking: Ranking, met: tuple, listed: Array) -> Ranking:
        begin, number, coverage = met
        return insert(ranking, begin, number, coverage, listed & (coverage > NOISE))

    visit, none = Visit(meet, rank), no_items(count, rays.near)
    return search([_corners_alone(faces)], rays, used, visit, rays, none, BUNDLE)


def _pieces(rays: Ray, faces: MeshFace, fragments: Ranking) -> Pieces:
    """Computes again what the ranking of fragments does not say."""
    again = jax.vmap(jax.vmap(piece_of), (None, 0, 0))
    pieces = again(rays, faces.shape.corners, faces.owner)
    return pieces._replace(begin=fragments.keys, coverage=fragments.values)


def _corners_alone(faces: InstanceStack) -> InstanceStack:
    """Returns faces without what is interpolated over them: searches gather them often."""
    pick = lambda x: (
        x.node.shape.normals,
        x.node.shape.uv,
        x.node.shape.colors,
        x.node.shape.places,
    )
    none = lambda x: x is None
    return InstanceStack(
        eqx.tree_at(pick, faces.members, (None,) * 4, is_leaf=none),
        eqx.tree_at(pick, faces.shared, (None,) * 4, is_leaf=none),
    )


def sum_shadows(
    faces: InstanceStack, rays: Ray, used: Bool[Array, " rays"], count: int
) -> tuple[FaceSums, Ranking | None]:
    """Sums what faces cover of shadow rays, and finds the `count` faces that cover most, if any."""

    def meet(instance: Instance, ray: Ray) -> tuple[Array, ...]:
        fragment = cross_triangle(ray, instance.node.shape.corners)
        return fragment.coverage, fragment.facing, instance.node.opacity, instance.number

    def add(memory: tuple[FaceSums, Ranking | None], met: tuple, listed: Array) -> PyTree:
        sums, ranking = memory
        coverage, facing, opacity, number = met
        coverage = jnp.where(listed, coverage, 0)
        sums = _add(sums, by_side(coverage, facing, opacity))
        if ranking is not None:
            counts = listed & (coverage > FAINT)
            ranking = insert(ranking, -coverage, number, coverage, counts)
        return sums, ranking

    nothing = jnp.zeros((2, *rays.near.shape), rays.near.dtype)
    start = FaceSums(nothing, nothing), no_items(count, rays.near) if count else None
    faces = _corners_alone(faces)
    return search_shadows([faces], rays, used, Visit(meet, add), rays, start)


def _add(one: FaceSums, other: FaceSums) -> FaceSums:
    return jax.tree.map(jnp.add, one, other)


def by_side(coverage: Array, facing: Array, opacity: Array) -> FaceSums:
    """Splits coverage into that of faces turned to a ray, and turned away."""
    sides = jnp.stack([jnp.where(facing < 0, coverage, 0), jnp.where(facing > 0, coverage, 0)])
    return FaceSums(sides, sides * opacity)


def face_transmission(sums: FaceSums) -> Float[Array, "*rays"]:
    """Returns what passes the faces of meshes.

    Of the two sides, which cover one another in a closed mesh, the one that covers more counts.
    Faces do not overlap within a sheet, so coverage beyond one is that of a further sheet:
    `(1 - o)^n (1 - o f)` for a coverage of `n + f`, with the mean opacity `o`.
    """
    pick = lambda x: jnp.where(sums.coverage[1] > sums.coverage[0], x[1], x[0])
    coverage, opaque = pick(sums.coverage), pick(sums.opaque)
    covered = coverage > 0
    opacity = jnp.where(covered, opaque / jnp.where(covered, coverage, 1), 0)
    whole = jax.lax.stop_gradient(jnp.floor(coverage))
    some = whole > 0
    before = jnp.where(some, (1 - opacity) ** jnp.where(some, whole, 1), 1)
    return before * (1 - opacity * (coverage - whole))
