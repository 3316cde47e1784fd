"""The search over the faces of meshes for sheets that a pixel sees."""

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, UInt8
from ..flat import FaceTree
from ..rays import Ray
from ..rowwise import take_rows
from ..shapes import (
    each_sheet,
    find_sheets,
    NOISE,
    piece_of,
    Pieces,
    unhidden,
    values_at,
)
from ._face_pairs import VISITS
from ._face_search import FaceVisit, list_faces, ListedFaces, search_faces
from ._search import insert, Ranking


# How many fragments of a ray are kept apart, and how many are returned: at least so many, and so
# many times the layers.
_FRAGMENTS, _RETURNED = (64, 8), (32, 4)
# See `FaceVisit`.
WAY = 1
# Most rays have no more fragments than these, and are sorted and ranked in fewer operations.
_USUAL = 8, 16
# Coverage from this on is that of all of a pixel, summed over many faces and rounded.
_WHOLE = 1 - 1e-5
# Rays in a bundle: of fewer, fewer faces are tested in vain, but more bundles are listed. Pictures
# of a million faces take a sixth longer with 64, and a seventh with 16.
_BUNDLE = 32


def _times(least: int, factor: int, layers: int) -> int:
    return max(least, factor * layers)


class FoundSheets(NamedTuple):
    """The sheets of meshes among the layers of rays; zero where a layer is none."""

    coverage: Float[Array, "layers rays"]  # of all fragments, also of those that are not returned
    hidden: Float[Array, "layers rays"]  # by sheets of its mesh before it
    # Where the stretches of its fragments begin, and where the last one ends.
    begin: Float[Array, "layers rays"]
    end: Float[Array, "layers rays"]
    kind: Int[Array, "layers rays"]  # of `Pieces`: the mesh, counted from one, and the side
    size: UInt8[Array, "layers rays"]  # the number of fragments; 255 stands for more, too


class FoundFragments(NamedTuple):
    """The nearest fragments of meshes on rays."""

    # Of small types: of all that a search returns, they are most.
    ids: Int[Array, "rays fragments"]  # numbers of faces; -1 for none
    share: UInt8[Array, "rays fragments"]  # the coverage in 255ths, rounded up
    leader: Int[Array, "rays fragments"]  # the place of the first fragment of the sheet; or -1


class FoundMeshes(NamedTuple):
    """The parts of meshes on rays, and the layers with them."""

    ranking: Ranking  # the layers, with sheets among them
    sheets: FoundSheets
    fragments: FoundFragments  # in an order of the search
    places: Int[Array, " rays"]  # of the fragments, by ray
    listed: ListedFaces


# Layers, which of them are sheets, and fragments.
_Result: TypeAlias = tuple[Ranking, FoundSheets, FoundFragments]


class _Fragments(NamedTuple):
    """Fragments of rays."""

    begin: Float[Array, "fragments rays"]  # infinite for none
    face: Int[Array, "fragments rays"]  # -1 for none
    end: Float[Array, "fragments rays"]
    t: Float[Array, "fragments rays"]
    coverage: Float[Array, "fragments rays"]
    away: Bool[Array, "fragments rays"]  # turned away from the eye


class _Found(NamedTuple):
    """The nearest fragments of rays, in order, and of others the number and what passes them."""

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
) -> FoundMeshes:
    """Finds sheets of meshes on rays, and inserts them among the layers.

    The code of a sheet is `first_code`, and its place among the fragments of its ray. Fragments
    stay in the order of the search, so that few are moved.
    """
    layers, like = found.keys.shape[0], rays.near.dtype
    by_ray = lambda tree: jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), tree)
    by_rank = lambda tree: jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), tree)

    def finish(memory: _Found, before: Ranking) -> _Result:
        return by_ray(_sheets_of(tree, memory, by_rank(before), first_code))

    def nothing(count: int, before: Ranking) -> _Result:
        none, ranks = jnp.zeros((count, layers), like), _times(*_RETURNED, layers)
        kind, number = none.astype(jnp.int32), none.astype(jnp.uint8)
        sheets = FoundSheets(none, none, none, none, kind, number)
        fill = lambda value, dtype: jnp.full((count, ranks), value, dtype)
        leader = fill(-1, _leader_type(ranks))
        return before, sheets, FoundFragments(fill(-1, jnp.int32), fill(0, jnp.uint8), leader)

    start = lambda count: _nothing_found(_times(*_FRAGMENTS, layers), count, like)
    # The search knows faces alone; whose they are is looked up when they are grouped.
    meet = lambda ray, corners: piece_of(ray, corners, jnp.zeros((), jnp.int32))
    visit = FaceVisit(start, meet, partial(_add, tree), nothing, finish, WAY)
    listed = list_faces(tree, rays, used, _BUNDLE, everything=everything)
    results, places = search_faces(tree, listed, rays, visit, by_ray(found))
    ranking, sheets = by_rank(take_rows(results[:2], places))
    return FoundMeshes(ranking, sheets, results[2], places, listed)


def _nothing_found(ranks: int, count: int, dtype: jnp.dtype) -> _Found:
    none = jnp.zeros(count, jnp.int32), jnp.ones(count, dtype)
    return _Found(_no_fragments(ranks, count, dtype), *none)


def _no_fragments(ranks: int, count: int, dtype: jnp.dtype) -> _Fragments:
    shape = ranks, count
    zero, none = jnp.zeros(shape, dtype), jnp.full(shape, -1, jnp.int32)
    nowhere = jnp.full(shape, jnp.inf, dtype)
    return _Fragments(nowhere, none, zero, zero, zero, jnp.zeros(shape, bool))


def _add(
    tree: FaceTree, found: _Found, piece: Pieces, face: Array, there: Array, n: Array
) -> _Found:
    """Puts fragments in the order in which they begin, and leaves out those without a place."""
    hit = there & (piece.coverage > NOISE)
    if tree.one_sided is not None:
        hit &= ~(tree.one_sided[face] & (piece.kind > 0))
    begin = jnp.where(hit, piece.begin, jnp.inf)
    buffer = _Fragments(begin, face, piece.end, piece.t, piece.coverage, piece.kind > 0)
    fragments, lost, rest = found
    ranks = fragments.begin.shape[0]
    # At first there is the buffer alone, and of most rays little of it: of a few sizes, the least
    # that holds all is sorted. Later, what is known is sorted again with the buffer.
    few = [some for some in (*_USUAL, VISITS) if some <= min(ranks, VISITS)]

    def of_buffer(count: int) -> _Found:
        order = _sort(jax.tree.map(lambda x: x[:count], buffer), 0, n, count)[0]
        whole = lambda x, y: jnp.concatenate([y, x[count:]])
        return _Found(jax.tree.map(whole, fragments, order), lost, rest)

    def of_all() -> _Found:
        joined = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), fragments, buffer)
        order, more, passes = _sort(joined, ranks, n, ranks)
        return _Found(order, lost + more, rest * passes)

    first = ~jnp.any(jnp.isfinite(fragments.begin[0]))
    case = sum((n > some).astype(jnp.int32) for some in few)
    case = jnp.where(first, case, len(few))
    branches = [partial(of_buffer, some) for some in few]
    return jax.lax.switch(case, [*branches, of_all])


def _sort(
    found: _Fragments, known: int, some: Array, ranks: int
) -> tuple[_Fragments, Array, Array]:
    """Sorts fragments by where they begin; equal ones by row.

    The first `known` rows are sorted, and of the others there are `some`. Returns the first of all,
    and of what is left the number and what passes.
    """
    begin = found.begin
    rows = jnp.arange(begin.shape[0], dtype=jnp.int32)[:, None]
    hit = jnp.isfinite(begin) & (rows < known + some)
    key = jnp.where(hit, begin, jnp.inf)

    def place(new: Array, rank: Array) -> Array:
        own = key[new]
        after = (own < key) | ((own == key) & (new < rows))
        # Known ones move back, and each of the others comes after all that it is not before.
        moved = rank + (after & (rows < known))
        return moved.at[new].set(jnp.sum(~after, axis=0, dtype=jnp.int32) - 1)

    end = jnp.minimum(known + some, len(begin))
    rank = jax.lax.fori_loop(known, end, place, jnp.broadcast_to(rows, begin.shape))
    lost = hit & (rank >= ranks)
    columns = jnp.arange(begin.shape[1], dtype=jnp.int32)
    places = jnp.zeros((ranks, begin.shape[1]), jnp.int32)
    places = places.at[rank, columns].set(rows, mode="drop", unique_indices=True)
    there = rows[:ranks] < jnp.sum(hit, axis=0)

    def by_rank(x: Array, empty: Array) -> Array:
        return jnp.where(there, jnp.take_along_axis(x, places, axis=0), empty).astype(x.dtype)

    empty = _Fragments(*(jnp.asarray(x) for x in (jnp.inf, -1, 0, 0, 0, False)))
    passes = jnp.prod(jnp.where(lost, 1 - found.coverage, 1), axis=0)
    return jax.tree.map(by_rank, found, empty), jnp.sum(lost, axis=0, dtype=jnp.int32), passes


def _sheets_of(tree: FaceTree, found: _Found, before: Ranking, first_code: int) -> _Result:
    """Groups fragments into sheets, and ranks these by depth among the layers before."""
    fragments = found.fragments
    ranks, layers = fragments.begin.shape[0], before.keys.shape[0]
    counts = [*(some for some in _USUAL if some < ranks), ranks]

    def of(count: int) -> _Result:
        own = jax.tree.map(lambda x: x[:count], fragments)
        return _group(tree, own, before, first_code, _times(*_RETURNED, layers))

    most = jnp.max(jnp.sum(jnp.isfinite(fragments.begin), axis=0))
    case = sum((most > some).astype(jnp.int32) for some in counts[:-1])
    branches = [partial(of, count) for count in counts]
    ranking, sheets, kept = jax.lax.switch(case, branches)
    # What has no place among the fragments exceeds the layers, too.
    most = jnp.maximum(ranking.total, layers + found.lost)
    total = jnp.where(found.lost > 0, most, ranking.total)
    # Sheets that reach the last fragment kept go on with others.
    goes_on = (found.lost > 0) & (sheets.end >= fragments.begin[-1])
    sheets = sheets._replace(end=jnp.where(goes_on, jnp.inf, sheets.end))
    return ranking._replace(total=total, rest=ranking.rest * found.rest), sheets, kept


def _group(
    tree: FaceTree, found: _Fragments, before: Ranking, first_code: int, returned: int
) -> _Result:
    """Ranks sheets, and returns fragments; sheets without any of these have no rank."""
    some = jnp.maximum(found.face, 0)
    owner = tree.owner[some]
    kind = jnp.where(found.away, 1 + owner, -1 - owner)
    sheets = find_sheets(Pieces(found.begin, found.end, found.t, found.coverage, kind))
    # Nothing is looked for behind what covers all of a pixel.
    whole = jnp.maximum(sheets.coverage, jnp.where(sheets.coverage > _WHOLE, 1, 0))
    sheets = sheets._replace(coverage=whole)
    alphas = tree.opacity[some] * unhidden(sheets.coverage, sheets.hidden)

    slots = jnp.broadcast_to(jnp.arange(len(kind), dtype=jnp.int32)[:, None], kind.shape)

    def add(place: Array, there: Array, ranking: Ranking) -> Ranking:
        alpha, t = jnp.where(there, values_at(alphas, place), 0), values_at(sheets.t, place)
        named = place < returned
        ranking = insert(ranking, t, first_code + place, alpha, (alpha > 0) & named)
        # A sheet whose first fragment is not returned has no name, and passes into the rest.
        beyond = jnp.where(named, 0, alpha)
        total, passes = ranking.total + (beyond > 0), ranking.rest * (1 - beyond)
        return ranking._replace(total=total, rest=passes)

    ranking = each_sheet(sheets.leader == slots, add, before)
    place = ranking.codes - first_code
    number = jnp.minimum(sheets.size, 255).astype(jnp.uint8)
    of_sheet = (sheets.coverage, sheets.hidden, found.begin, sheets.end, kind, number)
    at = lambda x: jnp.take_along_axis(x, jnp.clip(place, 0, len(x) - 1), axis=0)
    layers = FoundSheets(*(jnp.where(place >= 0, at(x), jnp.zeros((), x.dtype)) for x in of_sheet))
    keep = lambda x: x[:returned]
    there = jnp.isfinite(keep(found.begin))
    fill = lambda x, value: jnp.pad(
        jnp.where(there, keep(x), value),
        ((0, max(returned - len(x), 0)), (0, 0)),
        constant_values=value,
    )
    share = jnp.ceil(255 * jnp.clip(found.coverage, 0, 1)).astype(jnp.uint8)
    leader = sheets.leader.astype(_leader_type(returned))
    fragments = fill(found.face, -1), fill(share, 0), fill(leader, -1)
    return ranking, layers, FoundFragments(*fragments)


def _leader_type(ranks: int) -> Any:
    """Returns the smallest type that holds places, and -1."""
    return jnp.int8 if ranks <= jnp.iinfo(jnp.int8).max else jnp.int32
