"""The search for faces of meshes that rays meet: walks of single rays, without derivatives."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, Scalar
from ..flat import FACES_OF_LEAF, FaceTree
from ..rays import Ray
from ..rows import any_in_packet, same_in_packet
from ..shapes import (
    add_sheet,
    cross_line,
    join,
    may_cover,
    no_sheets,
    NOISE,
    Piece,
    piece_of,
    sheet_of,
    Sheets,
    touches,
    unhidden,
    visible_shares,
)
from ._search import insert, no_items, Ranking
from ._walk import Place, row_of, walk, walk_on


# Coverage from this on is that of all of a pixel, summed over many faces and rounded.
_WHOLE = 1 - 1e-5
# Relative to depths: the rounding of where a stretch begins, which is computed in two programs.
_ROUNDING = 1e-5
# Sheets that are kept apart for every layer: before each lies one that is turned away.
_SHEETS_OF_LAYER = 2
# Faces of one side are seen if their fronts are turned to the eye, for 1, and throw shadows if
# these are turned away from what is lit, for -1.
SEEN, SHADING = 1, -1


_Visit = Callable[[Int[Array, ""], Float[Array, "3 3"], Bool[Array, ""], PyTree], PyTree]


def walk_faces(
    tree: FaceTree,
    ray: Ray,
    used: Bool[Array, ""],
    visit: _Visit,
    state: PyTree,
    limit: Callable[[PyTree], Scalar] = lambda _: jnp.asarray(jnp.inf),
) -> PyTree:
    """Shows a ray the faces that its footprint may touch; see `walk`.

    `visit` maps a face's number, its corners, whether the ray may touch it, and the state to the
    next state.
    """
    return walk(tree, ray, used, _each_face(tree, ray, visit), state, limit)


def _each_face(tree: FaceTree, ray: Ray, visit: _Visit) -> Callable:
    """Returns what visits the faces of a leaf."""

    def leaf(number: Int[Array, ""], touched: Bool[Array, ""], state: PyTree) -> PyTree:
        def one(k: Int[Array, ""], state: PyTree) -> PyTree:
            face = FACES_OF_LEAF * number + k
            corners = row_of(tree.corners, face)
            there = touched & may_cover(ray, corners)
            show = lambda state: visit(face, corners, there, state)
            return jax.lax.cond(any_in_packet(there), show, lambda state: state, state)

        return jax.lax.fori_loop(0, FACES_OF_LEAF, one, state)

    return leaf


def fill_faces(
    own: Float[Array, "faces *shape"], known: Float[Array, "padded *shape"]
) -> Float[Array, "padded *shape"]:
    """Fills the last leaf with faces that have no derivatives."""
    return jnp.concatenate([own, known[own.shape[0] :]])


# Faces of a ray in a list.
_LISTED = 32


def next_faces(
    tree: FaceTree, ray: Ray, used: Bool[Array, ""], place: Place
) -> tuple[Int[Array, " listed"], Place]:
    """Lists faces that a ray may touch from a place of its walk on, -1 beyond the last.

    Returns also where the list ended, for lack of space or at the end of the walk: see
    `sum_over_pairs`.
    """

    def visit(face: Int[Array, ""], _: Array, there: Bool[Array, ""], found: tuple) -> tuple:
        faces, count = found
        here = there & (jnp.arange(_LISTED, dtype=jnp.int32) == count)
        return jnp.where(here, face.astype(jnp.int32), faces), count + there

    is_full = lambda found: found[1] > _LISTED - FACES_OF_LEAF
    nothing = jnp.full(_LISTED, -1, jnp.int32), jnp.zeros((), jnp.int32)
    place = Place(*map(same_in_packet, place))
    show = _each_face(tree, ray, visit)
    place, (faces, _) = walk_on(tree, ray, used, show, nothing, place=place, pauses=is_full)
    return faces, place


def is_turned(tree: FaceTree, face: Int[Array, ""], away: Bool[Array, ""], way: int) -> Array:
    """Returns true for faces of one side whose other side a ray meets."""
    if tree.one_sided is None:
        return jnp.zeros((), bool)
    return row_of(tree.one_sided, face) & (away if way == SEEN else ~away)


def _seen_piece(
    tree: FaceTree, ray: Ray, face: Int[Array, ""], corners: Array, there: Bool[Array, ""]
) -> tuple[Piece, Bool[Array, ""]]:
    """Returns the fragment of a face, and whether it is seen."""
    piece = piece_of(ray, corners, row_of(tree.owner, face), in_search=True)
    seen = there & (piece.coverage > NOISE)
    return piece, seen & ~is_turned(tree, face, piece.kind > 0, SEEN)


class _Found(NamedTuple):
    """The fragments that a ray has met so far."""

    sheets: Sheets
    last: Sheets  # one sheet: the last fragments that touched, not yet among the others
    faces: Ranking  # of that sheet, those that cover most
    lost: Int[Array, ""]  # the number of fragments without a place
    rest: Scalar  # what passes them
    closed: Scalar  # nothing is seen from here on


class FoundSheet(NamedTuple):
    """A sheet of a mesh on a ray, among its layers; zero where a layer is none."""

    kind: Int[Array, "*layers"]  # of `Sheets`: the mesh, counted from one, and the side
    begin: Float[Array, "*layers"]
    end: Float[Array, "*layers"]
    coverage: Float[Array, "*layers"]
    hidden: Float[Array, "*layers"]  # by sheets of its mesh before it


class ListedSheet(NamedTuple):
    """A sheet whose faces are known from the walk that found it."""

    kind: Int[Array, ""]  # zero if there is none
    begin: Scalar
    end: Scalar
    faces: Ranking


def find_sheets(
    tree: FaceTree,
    cuts: Bool[Array, " surfaces"],
    ray: Ray,
    used: Bool[Array, ""],
    before: tuple[Ranking, Scalar],
    first_code: int,
) -> tuple[Ranking, FoundSheet, ListedSheet]:
    """Finds the sheets of meshes on one ray, and inserts them among the layers that were found.

    Of these it is known, too, from which `t` on nothing is seen. Codes of sheets are `first_code`
    and above. Returns also the faces of the sheet that was found last, which mostly is the nearest
    one, and hides all others.
    """
    found, closed = before
    layers = found.keys.shape[0]

    def closes(sheet: Sheets, owner: Int[Array, ""]) -> Bool[Array, "*sheets"]:
        # Nothing is seen behind a sheet that covers all, is opaque, and stays so.
        whole = (sheet.kind == -1 - owner) & (sheet.coverage >= _WHOLE)
        return whole & (sheet.opaque >= sheet.coverage) & row_of(cuts, owner)

    def put(now: _Found, ends: Bool[Array, ""]) -> _Found:
        sheets, lost = add_sheet(now.sheets, now.last, ends)
        owner = jnp.maximum(jnp.abs(now.last.kind) - 1, 0)
        closed = jnp.min(jnp.where(ends & closes(sheets, owner), sheets.end, jnp.inf))
        last = jax.tree.map(lambda x, y: jnp.where(ends, x, y), none, now.last)
        rest, closed = now.rest * (1 - jnp.minimum(lost, 1)), jnp.minimum(now.closed, closed)
        faces = now.faces._replace(
            keys=jnp.where(ends, jnp.inf, now.faces.keys),
            codes=jnp.where(ends, -1, now.faces.codes),
        )
        return _Found(sheets, last, faces, now.lost + (lost > 0), rest, closed)

    def visit(face: Int[Array, ""], corners: Array, there: Bool[Array, ""], now: _Found) -> _Found:
        piece, seen = _seen_piece(tree, ray, face, corners, there)
        one = sheet_of(piece, row_of(tree.opacity, face))
        # Most fragments touch the one before, and need not be compared with all sheets.
        ends = seen & (now.last.kind != 0) & ~touches(one, now.last)
        now = jax.lax.cond(any_in_packet(ends), put, lambda now, _: now, now, ends)
        last = jax.tree.map(lambda x, y: jnp.where(seen, x, y), join(one, now.last), now.last)
        whole = closes(last, row_of(tree.owner, face))
        closed = jnp.where(whole, jnp.minimum(now.closed, last.end), now.closed)
        return now._replace(last=last, faces=_ranked(now.faces, piece, face, seen), closed=closed)

    dtype = ray.near.dtype
    nothing = no_sheets(_SHEETS_OF_LAYER * layers, dtype)
    none = jax.tree.map(lambda x: x[0], no_sheets(1, dtype))
    faces, number = no_items(layers, ray.near), jnp.zeros((), jnp.int32)
    start = _Found(nothing, none, faces, number, jnp.ones((), dtype), closed)
    met = walk_faces(tree, ray, used, visit, start, lambda now: now.closed)
    # Unless fragments before belong to it, too.
    alone = ~jnp.any(touches(met.sheets, met.last))
    listed = ListedSheet(
        jnp.where(alone, met.last.kind, 0), met.last.begin, met.last.end, met.faces
    )
    return *_rank_sheets(put(met, met.last.kind != 0), found, first_code), listed


def _ranked(best: Ranking, piece: Piece, face: Int[Array, ""], seen: Bool[Array, ""]) -> Ranking:
    """Ranks a face by what it covers: keys ascend, so that those that cover most are the first."""
    return insert(best, -piece.coverage, face.astype(jnp.int32), piece.t, seen)


def _rank_sheets(met: _Found, found: Ranking, first_code: int) -> tuple[Ranking, FoundSheet]:
    """Ranks sheets by depth among the layers before."""
    sheets = met.sheets
    # Nothing is looked for behind what covers all of a pixel.
    whole = jnp.where(sheets.coverage >= _WHOLE, jnp.maximum(sheets.coverage, 1), sheets.coverage)
    sheets = sheets._replace(coverage=whole, opaque=whole * sheets.opacity)
    hidden, depths = sheets.hidden(), sheets.t
    alphas = jnp.where(sheets.kind == 0, 0, sheets.opacity * unhidden(whole, hidden))
    count = alphas.shape[0]

    def add(k: Int[Array, ""], ranking: Ranking) -> Ranking:
        alpha = alphas[k]
        return insert(ranking, depths[k], first_code + k, alpha, alpha > 0)

    ranking = jax.lax.fori_loop(0, count, add, found)
    # What has no place exceeds the layers, too.
    most = jnp.maximum(ranking.total, found.keys.shape[0] + met.lost)
    total = jnp.where(met.lost > 0, most, ranking.total)
    ranking = ranking._replace(total=total, rest=ranking.rest * met.rest)
    of_sheet = FoundSheet(sheets.kind, sheets.begin, sheets.end, whole, hidden)

    def put(k: Int[Array, ""], layers: FoundSheet) -> FoundSheet:
        place = ranking.codes[k] - first_code
        own = jax.tree.map(lambda x: jnp.where(place < 0, 0, x[jnp.maximum(place, 0)]), of_sheet)
        return jax.tree.map(lambda x, y: x.at[k].set(y), layers, own)

    ranks = ranking.codes.shape[0]
    none = jax.tree.map(lambda x: jnp.zeros(ranks, x.dtype), of_sheet)
    return ranking, jax.lax.fori_loop(0, ranks, put, none)


def faces_of_sheet(
    tree: FaceTree, ray: Ray, sheet: FoundSheet, listed: ListedSheet, used: Bool[Array, ""]
) -> tuple[Int[Array, " faces"], Float[Array, " faces"]]:
    """Returns the faces of a sheet that cover most of a pixel, -1 beyond the last.

    And what is seen of them, as coverage. It takes another walk unless they are `listed`.
    """
    known = used & (listed.kind != 0) & (listed.kind == sheet.kind)
    known &= (listed.begin == sheet.begin) & (listed.end == sheet.end)

    def visit(
        face: Int[Array, ""], corners: Array, there: Bool[Array, ""], best: Ranking
    ) -> Ranking:
        piece, seen = _seen_piece(tree, ray, face, corners, there)
        begins = starts_after(piece, sheet.begin) & (piece.begin <= sheet.end)
        return _ranked(best, piece, face, seen & begins & (piece.kind == sheet.kind))

    behind, none = lambda _: sheet.end, no_items(listed.faces.keys.shape[0], ray.near)
    best = walk_faces(tree, ray, used & ~known, visit, none, behind)
    best = jax.tree.map(lambda x, y: jnp.where(known, x, y), listed.faces, best)
    coverage = jnp.where(best.codes >= 0, -best.keys, 0)
    return best.codes, visible_shares(coverage, best.values)


def starts_after(piece: Piece, begin: Float[Array, "*some"]) -> Bool[Array, "*some"]:
    """Returns whether a fragment's stretch begins at a place or after it, to within rounding."""
    return piece.begin >= begin - _ROUNDING * jnp.abs(begin)


def nearest_face(tree: FaceTree, ray: Ray, used: Bool[Array, ""]) -> tuple[Scalar, Int[Array, ""]]:
    """Returns where the line of a ray first meets a face, and which; infinity and -1 for none."""

    def visit(
        face: Int[Array, ""], corners: Array, there: Bool[Array, ""], best: tuple
    ) -> tuple[Scalar, Int[Array, ""]]:
        t, inside, behind = cross_line(ray, corners)
        inside &= there & ~is_turned(tree, face, behind, SEEN)
        (before, known), number = best, face.astype(jnp.int32)
        nearer = inside & ((t < before) | ((t == before) & (number < known)))
        return jnp.where(nearer, t, before), jnp.where(nearer, number, known)

    nothing = jnp.full_like(ray.near, jnp.inf), jnp.full((), -1, jnp.int32)
    return walk_faces(tree, ray, used, visit, nothing, lambda best: best[0])
