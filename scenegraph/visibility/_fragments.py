"""Searches over the faces of meshes: sheets that a pixel sees, and faces that stop shadow rays."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..numerics import AbstractModule
from ..rays import Ray
from ..scene import FaceTree
from ..shapes import cross_triangle, find_sheets, NOISE, piece_of, Pieces, unhidden
from ._face_search import FaceVisit, search_faces, VISITS
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
    square: Float[Array, "2 *rays"]  # coverage times opacity squared


class _Fragments(NamedTuple):
    """Fragments of rays: those that are settled, nearest first, and then those met since."""

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
    visit = FaceVisit(start, meet, _remember, _settle, finish)
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
    shape = (ranks + VISITS, count)
    zero, none = jnp.zeros(shape, dtype), jnp.full(shape, -1, jnp.int32)
    nowhere = jnp.full(shape, jnp.inf, dtype)
    fragments = _Fragments(nowhere, none, zero, zero, zero, jnp.zeros(shape, bool))
    return _Found(fragments, jnp.zeros(count, jnp.int32), jnp.ones(count, dtype))


def _remember(found: _Found, piece: Pieces, face: Array, there: Array, n: Array) -> _Found:
    """Writes the `n`-th fragments behind those that are settled."""
    met = there & (piece.coverage > NOISE)
    begin = jnp.where(met, piece.begin, jnp.inf)
    new = _Fragments(begin, face, piece.end, piece.t, piece.coverage, piece.kind > 0)
    row = found.fragments.begin.shape[0] - VISITS + n
    put = lambda x, y: jax.lax.dynamic_update_index_in_dim(x, y, row, 0)
    return found._replace(fragments=jax.tree.map(put, found.fragments, new))


def _settle(found: _Found, n: Array) -> _Found:
    """Puts fragments in the order in which they begin, and leaves out those without a place.

    `n` were met since, in the order of their faces, which is kept among equals.
    """
    begin, ranks = found.fragments.begin, found.fragments.begin.shape[0] - VISITS
    rows = jnp.arange(begin.shape[0], dtype=jnp.int32)[:, None]
    met = jnp.isfinite(begin) & (rows < ranks + n)
    key = jnp.where(met, begin, jnp.inf)

    def count(other: Array, rank: Array) -> Array:
        own = key[other]
        return rank + ((own < key) | ((own == key) & (other < rows)))

    # The rank of a fragment is the number of those before it.
    rank = jax.lax.fori_loop(0, ranks + n, count, jnp.zeros(begin.shape, jnp.int32))
    lost = met & (rank >= ranks)
    row_of = lambda r: jnp.sum(jnp.where(rank == r, rows, 0), axis=0, dtype=jnp.int32)
    some = jnp.minimum(ranks, jnp.max(jnp.sum(met, axis=0)))
    put = lambda r, places: places.at[r].set(row_of(r))
    places = jax.lax.fori_loop(0, some, put, jnp.zeros((ranks, begin.shape[1]), jnp.int32))
    there = rows[:ranks] < jnp.sum(met, axis=0)

    def sorted_by_rank(x: Array, empty: Array) -> Array:
        own = jnp.where(there, jnp.take_along_axis(x, places, axis=0), empty)
        return jax.lax.dynamic_update_slice_in_dim(x, own.astype(x.dtype), 0, 0)

    empty = _Fragments(*(jnp.asarray(x) for x in (jnp.inf, -1, 0, 0, 0, False)))
    rest = jnp.prod(jnp.where(lost, 1 - found.fragments.coverage, 1), axis=0)
    fragments = jax.tree.map(sorted_by_rank, found.fragments, empty)
    return _Found(fragments, found.lost + jnp.sum(lost, axis=0, dtype=jnp.int32), found.rest * rest)


def _sheets_of(
    tree: FaceTree, found: _Found, layers: int, dtype: jnp.dtype
) -> tuple[Ranking, FoundSheets]:
    """Groups fragments into sheets, and ranks these by depth; codes are places of fragments."""
    fragments = jax.tree.map(lambda x: x[:-VISITS], found.fragments)
    ranks = fragments.begin.shape[0]
    none = no_items(layers, found.rest)

    def sheets(count: int) -> tuple[Ranking, FoundSheets]:
        own = jax.tree.map(lambda x: x[:count], fragments)
        ranking, sheets = _group(tree, own, none)
        more = lambda x, value: jnp.pad(x, ((0, ranks - count), (0, 0)), constant_values=value)
        return ranking, FoundSheets(*map(more, sheets, (-1, 0, -1, 0)))

    most = jnp.max(jnp.sum(jnp.isfinite(fragments.begin), axis=0))
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
        place = jnp.full_like(kind[0], i, jnp.int32)
        return insert(ranking, sheets.t[i], place, alphas[i], alphas[i] > 0)

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
        return FaceSums(nothing, nothing, nothing), none

    def meet(ray: Ray, corners: Array) -> tuple[Array, Array]:
        fragment = cross_triangle(ray, corners)
        return fragment.coverage, fragment.facing

    def add(memory: tuple, met: tuple, face: Array, there: Array, _: Array) -> tuple:
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
    visit = FaceVisit(start, meet, add, lambda memory, _: memory, finish)
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
    some = whole > 0
    before = jnp.where(some, (1 - opacity) ** jnp.where(some, whole, 1), 1)
    return before * (1 - opacity * (coverage - whole))
