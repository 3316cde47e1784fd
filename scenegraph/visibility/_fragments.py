"""Searches over the faces of meshes: sheets that a pixel sees, and faces that stop shadow rays."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..numerics import AbstractModule
from ..rays import Ray
from ..scene import FaceTree
from ..shapes import cross_triangle, find_sheets, NOISE, piece_of, Pieces, unhidden
from ._face_search import FaceVisit, search_faces
from ._order import invert_order, order_shadow_rays
from ._search import BUNDLE, FAINT, insert, no_items, Ranking, SHADOW_BUNDLE


# Of how many fragments a layer may consist on average: all of them are found, and the strongest
# have derivatives.
_FRAGMENTS = 4
# Most rays have no more fragments than this, and are ranked in fewer operations.
_USUAL = 8
# With more faces than this, putting shadow rays in order pays.
_MANY = 256


class FoundSheets(NamedTuple):
    """The nearest fragments of meshes on every ray, and the sheets that they make up."""

    ids: Int[Array, "rays fragments"]  # numbers of faces; -1 for none
    coverage: Float[Array, "rays fragments"]
    leader: Int[Array, "rays fragments"]  # of every fragment, the place of its sheet's first one
    hidden: Float[Array, "rays fragments"]  # of every sheet, in the place of its first fragment


class FaceSums(AbstractModule):
    """The total coverage of faces that are turned to a ray, and of those turned away."""

    coverage: Float[Array, "2 *rays"]
    opaque: Float[Array, "2 *rays"]  # coverage times opacity


class _Fragments(NamedTuple):
    """The nearest fragments of rays, in the order in which their stretches begin."""

    begin: Float[Array, "fragments rays"]  # infinite for none
    face: Int[Array, "fragments rays"]  # -1 for none
    end: Float[Array, "fragments rays"]
    t: Float[Array, "fragments rays"]
    coverage: Float[Array, "fragments rays"]
    away: Bool[Array, "fragments rays"]  # turned away from the eye


class _Found(NamedTuple):
    """The fragments of rays, and of those without a place the number and what passes them."""

    fragments: _Fragments
    lost: Int[Array, " rays"]
    rest: Float[Array, " rays"]


def find_mesh_sheets(
    tree: FaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    found: Ranking,
    first_code: int,
    *,
    everything: bool,
) -> tuple[Ranking, FoundSheets]:
    """Finds sheets of meshes on rays, and inserts them among the layers.

    The code of a sheet is `first_code`, and its place among the fragments of its ray.
    """
    layers = found.keys.shape[0]
    like = rays.near.dtype

    def finish(memory: _Found) -> tuple[Ranking, FoundSheets]:
        ranking, sheets = _sheets_of(tree, memory, layers, like)
        by_ray = lambda x: jnp.moveaxis(x, -1, 0)
        return jax.tree.map(by_ray, ranking), jax.tree.map(by_ray, sheets)

    start = lambda count: _no_fragments(_FRAGMENTS * layers, count, like)
    meet = lambda ray, corners: piece_of(ray, corners, jnp.zeros((), jnp.int32))
    visit = FaceVisit(start, meet, _remember, finish)
    ranking, sheets = search_faces(tree, rays, used, visit, BUNDLE, everything=everything)
    ranking = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), ranking)
    return _merged(found, ranking, first_code), sheets


def _merged(found: Ranking, sheets: Ranking, first_code: int) -> Ranking:
    """Inserts the sheets that were found on rays among other layers."""

    def add(found: Ranking, item: tuple) -> tuple[Ranking, None]:
        t, place, alpha = item
        return insert(found, t, first_code + place, alpha, place >= 0), None

    merged = jax.lax.scan(add, found, (sheets.keys, sheets.codes, sheets.values))[0]
    return merged._replace(met=found.met + sheets.met, rest=merged.rest * sheets.rest)


def _no_fragments(ranks: int, count: int, dtype: jnp.dtype) -> _Found:
    zero, shape = jnp.zeros((ranks, count), dtype), (ranks, count)
    nowhere, none = jnp.full(shape, jnp.inf, dtype), jnp.full(shape, -1, jnp.int32)
    fragments = _Fragments(nowhere, none, zero, zero, zero, jnp.zeros(shape, bool))
    return _Found(fragments, jnp.zeros(count, jnp.int32), jnp.ones(count, dtype))


def _remember(found: _Found, piece: Pieces, face: Array, there: Array) -> _Found:
    """Inserts fragments by where their stretches begin."""
    met = there & (piece.coverage > NOISE)
    begin = jnp.where(met, piece.begin, jnp.inf)
    new = _Fragments(begin, face, piece.end, piece.t, piece.coverage, piece.kind > 0)
    few = jax.tree.map(lambda x: x[:_USUAL], found.fragments)
    # While no ray has more, the other places stay empty.
    few_enough = jnp.all(jnp.isinf(few.begin[-1]))

    def usual(fragments: _Fragments) -> tuple[_Fragments, Array]:
        moved = _insert(few, new)[0]
        put = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, 0, 0)
        return jax.tree.map(put, fragments, moved), jnp.full_like(begin, jnp.nan)

    every = lambda fragments: _insert(fragments, new)
    fragments, lost = jax.lax.cond(few_enough, usual, every, found.fragments)
    is_lost = ~jnp.isnan(lost)
    rest = found.rest * jnp.where(is_lost, 1 - lost, 1)
    return _Found(fragments, found.lost + is_lost, rest)


def _insert(fragments: _Fragments, new: _Fragments) -> tuple[_Fragments, Array]:
    """Inserts a fragment of each ray; returns also the coverage of the one that falls out."""
    begin, face = fragments.begin, fragments.face
    equal = (new.begin == begin) & jnp.isfinite(new.begin)
    after = (new.begin < begin) | (equal & (new.face < face))
    again = jnp.concatenate([jnp.zeros_like(after[:1]), after[:-1]])
    back = lambda x: jnp.concatenate([x[:1], x[:-1]])
    moved = lambda old, own: jnp.where(again, back(old), jnp.where(after, own, old))
    last = jnp.where(after[-1], fragments.coverage[-1], new.coverage)
    full = jnp.isfinite(jnp.where(after[-1], begin[-1], new.begin))
    return jax.tree.map(moved, fragments, new), jnp.where(full, last, jnp.nan)


def _sheets_of(
    tree: FaceTree, found: _Found, layers: int, dtype: jnp.dtype
) -> tuple[Ranking, FoundSheets]:
    """Groups fragments into sheets, and ranks these by depth; codes are places of fragments."""
    ranks = found.fragments.begin.shape[0]
    none = no_items(layers, found.rest)

    def sheets(count: int) -> tuple[Ranking, FoundSheets]:
        own = jax.tree.map(lambda x: x[:count], found.fragments)
        ranking, sheets = _group(tree, own, none)
        more = lambda x, value: jnp.pad(x, ((0, ranks - count), (0, 0)), constant_values=value)
        return ranking, FoundSheets(*map(more, sheets, (-1, 0, -1, 0)))

    most = jnp.max(jnp.sum(jnp.isfinite(found.fragments.begin), axis=0))
    usual = min(_USUAL, ranks)
    ranking, grouped = jax.lax.cond(most <= usual, lambda: sheets(usual), lambda: sheets(ranks))
    # What has no place among the fragments exceeds the layers, too.
    met = jnp.where(found.lost > 0, jnp.maximum(ranking.met, layers + found.lost), ranking.met)
    return ranking._replace(met=met, rest=ranking.rest * found.rest), grouped


def _group(tree: FaceTree, found: _Fragments, none: Ranking) -> tuple[Ranking, FoundSheets]:
    some = jnp.maximum(found.face, 0)
    owner = tree.owner[some]
    kind = jnp.where(found.away, 1 + owner, -1 - owner)
    sheets = find_sheets(Pieces(found.begin, found.end, found.t, found.coverage, kind))
    alphas = tree.opacity[some] * unhidden(sheets.coverage, sheets.hidden)

    def add(i: Array, ranking: Ranking) -> Ranking:
        return insert(ranking, sheets.t[i], i, alphas[i], alphas[i] > 0)

    most = jnp.max(jnp.sum(jnp.isfinite(found.begin), axis=0), initial=0)
    ranking = jax.lax.fori_loop(0, most, add, none)
    return ranking, FoundSheets(found.face, found.coverage, sheets.leader, sheets.hidden)


def sum_shadows(
    tree: FaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    count: int,
    *,
    everything: bool,
) -> tuple[FaceSums, Ranking | None]:
    """Sums what faces cover of shadow rays, and finds the `count` faces that cover most, if any.

    Sums have rays last, and rankings first.
    """
    dtype = rays.near.dtype

    def start(rays: int) -> tuple[FaceSums, Ranking | None]:
        nothing = jnp.zeros((2, rays), dtype)
        none = no_items(count, jnp.zeros(rays, dtype)) if count else None
        return FaceSums(nothing, nothing), none

    def meet(ray: Ray, corners: Array) -> tuple[Array, Array]:
        fragment = cross_triangle(ray, corners)
        return fragment.coverage, fragment.facing

    def add(memory: tuple[FaceSums, Ranking | None], met: tuple, face: Array, there: Array) -> tuple:
        sums, ranking = memory
        coverage, facing = jnp.where(there, met[0], 0), met[1]
        sums = _add(sums, by_side(coverage, facing, tree.opacity[face]))
        if ranking is not None:
            ranking = insert(ranking, -coverage, face, coverage, there & (coverage > FAINT))
        return sums, ranking

    finish = lambda memory: jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), memory)
    order = None
    if tree.corners.shape[0] > _MANY:
        order = order_shadow_rays(rays, used)
        rays, used = jax.tree.map(lambda x: x[order], (rays, used))
    visit = FaceVisit(start, meet, add, finish)
    found = search_faces(tree, rays, used, visit, SHADOW_BUNDLE, everything=everything)
    if order is not None:
        back = invert_order(order)
        found = jax.tree.map(lambda x: x[back], found)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), found[0]), found[1]


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
