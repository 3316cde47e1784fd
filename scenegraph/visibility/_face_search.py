"""The search over faces of meshes: every ray meets just those faces that it may touch itself."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree, UInt32
from ..flat import Boxes, CLUSTER, FaceTree
from ..numerics import count_bits, pack_bits
from ..rays import Ray
from ..rowwise import map_rows
from ._beams import Beam, beam_of, beyond_all, faces_within, may_meet, NOWHERE, touched_by
from ._lists import AbstractCandidates, CandidateLists, Everything, Grouping, list_by
from ._order import invert_order


# Faces that rays are tested against before the hits are put in order.
VISITS = 32
# Rays of the bundles that are searched at once, and of these, sorted by how many faces they may
# touch, how many meet faces at once.
_ROWS, _FEW_ROWS = 1024, 256
# Clusters of a bundle whose faces are tested in one go; no more than a word has bits.
_SLOTS = 32
# Faces of every bundle that its rays are tested against at once: a divisor of the bits of a word.
_AT_ONCE = 8


class FaceVisit(NamedTuple):
    """The intersection of rays with faces, and what becomes of it; arrays have rays last.

    Intersections are first put into a buffer, of which little has to be kept in the cache.
    """

    start: Callable[[int], PyTree]  # the memory of so many rays
    buffer: Callable[[int], PyTree]
    meet: Callable[[Ray, Array], PyTree]  # of one ray and the corners of one face
    # Of memory and buffer, the intersections, the numbers of the faces, which rays have one, and
    # how many there were since the memory was settled, which is done before there are `VISITS`.
    remember: Callable[[PyTree, PyTree, Array, Array, Array], PyTree]
    settle: Callable[[PyTree, Array], PyTree]  # of memory and buffer, and that number: the memory
    nothing: Callable[[int, PyTree], PyTree]  # the results of so many rays that meet no face
    # The results, with rays first, of memory and of what the rays had before the search, or `None`.
    finish: Callable[[PyTree, PyTree], PyTree]


def _box_around(boxes: Boxes) -> Boxes:
    """Returns a box that holds several."""
    low = jnp.min(boxes.center - boxes.half, axis=0)
    high = jnp.max(boxes.center + boxes.half, axis=0)
    return Boxes((low + high) / 2, (high - low) / 2)


# Twice as far as planes that nothing is beyond.
_GROUPING = Grouping(_box_around, -2 * NOWHERE)


def search_faces(
    tree: FaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    visit: FaceVisit,
    size: int,
    *,
    before: PyTree = None,
    everything: bool = False,
) -> PyTree:
    """Shows every ray the faces that it may touch, and returns the results.

    Clusters of faces are listed by bundles of `size` rays, and faces by single rays. What rays had
    `before` has rays first.
    """
    apart = lambda x: x.reshape(-1, size, *x.shape[1:])
    count = rays.near.shape[0]
    rays, used, before = jax.tree.map(apart, (rays, used, before))
    any_used = jnp.any(used, axis=1)
    beams = jax.vmap(beam_of)(rays, used)
    lists: AbstractCandidates = Everything(any_used, tree.by_cluster.shape[0])
    if everything:
        beams = beams._replace(narrow=jnp.zeros_like(any_used), planes=beyond_all(beams.planes))
    else:
        lists = list_by(may_meet, beams.planes, tree.clusters, any_used, _GROUPING)
    bundles = any_used.shape[0]
    block = min(max(_ROWS // size, 1), bundles)
    order = jnp.argsort(-lists.lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])
    results = jax.tree.map(apart, visit.nothing(count, _flat(before)))

    def one_block(i: Array, results: PyTree) -> PyTree:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        own = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), (lists, beams, rays, before))
        new = _search_block(tree, own[0], own[1], own[2:], visit)
        put = lambda x, y: x.at[chosen].set(apart(y), mode="drop", unique_indices=True)
        return jax.tree.map(put, results, new)

    blocks = -(-jnp.sum(lists.lengths > 0) // block)
    return _flat(jax.lax.fori_loop(0, blocks, one_block, results))


class _Found(NamedTuple):
    """The faces of bundles, some at a time, and which of them rays may touch, 32 to a word."""

    words: UInt32[Array, "slots rays"]
    faces: Int[Array, "places bundles"]
    bundle: Int[Array, " rays"]


def _search_block(
    tree: FaceTree, lists: AbstractCandidates, beams: Beam, rows: tuple, visit: FaceVisit
) -> PyTree:
    """Searches some bundles at once; rays that may touch as many faces go together.

    Rows are rays, and what they had before.
    """
    rows = _flat(rows)
    count = rows[0].near.shape[0]

    def some(carry: tuple) -> tuple:
        begin, order, memory, results = carry
        found = _test_rays(tree, *_faces_of(tree, lists, beams, begin), beams)
        order = jax.lax.cond(begin == 0, _by_length, lambda _: order, found.words)
        found = _Found(found.words[:, order], found.faces, found.bundle[order])
        own = jax.tree.map(lambda x: x[order], rows)
        # Results are in the order of the rays, which is known now.
        first = lambda x, y: jnp.where(begin == 0, x, y)
        results = jax.tree.map(first, visit.nothing(count, own[1]), results)
        return begin + _SLOTS, order, *_meet_all(tree, found, own, visit, (memory, results))

    longest, results = jnp.max(lists.lengths), visit.nothing(count, rows[1])
    order = jnp.arange(count, dtype=jnp.int32)
    start = jnp.zeros((), jnp.int32), order, visit.start(count), results
    _, order, _, results = jax.lax.while_loop(lambda carry: carry[0] < longest, some, start)
    back = invert_order(order)
    return jax.tree.map(lambda x: x[back], results)


def _faces_of(
    tree: FaceTree, lists: AbstractCandidates, beams: Beam, begin: Array
) -> tuple[CandidateLists, Int[Array, "bundles slots"]]:
    """Tests the faces of the next clusters of every bundle against all of its rays together.

    Returns lists of places in these clusters, and their numbers.
    """
    bundles = beams.narrow.shape[0]

    def one(slot: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        words, clusters = carry
        cluster, there = lists.nth(begin + slot), begin + slot < lists.lengths
        within = faces_within(beams.planes, tree.by_cluster[cluster]) & there[:, None]
        word = jax.vmap(pack_bits)(within)[:, 0]
        return words.at[slot].set(word), clusters.at[slot].set(cluster.astype(jnp.int32))

    slots = jnp.minimum(jnp.max(lists.lengths) - begin, _SLOTS)
    words = jnp.zeros((_SLOTS, bundles), jnp.uint32)
    start = words, jnp.zeros((_SLOTS, bundles), jnp.int32)
    words, clusters = jax.lax.fori_loop(0, slots, one, start)
    return CandidateLists(words.T, jnp.cumsum(count_bits(words.T), axis=1)), clusters.T


def _test_rays(
    tree: FaceTree, lists: CandidateLists, clusters: Int[Array, "bundles slots"], beams: Beam
) -> _Found:
    """Tests faces of bundles against their rays, one by one."""
    bundles, size = beams.near.shape

    def several(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        words, faces = carry
        n = i * _AT_ONCE + jnp.arange(_AT_ONCE, dtype=jnp.int32)
        place = jax.vmap(lists.nth, out_axes=1)(n)
        cluster = jnp.take_along_axis(clusters, place // CLUSTER, axis=1)
        face = (CLUSTER * cluster + place % CLUSTER).astype(jnp.int32)
        touched = jax.vmap(jax.vmap(touched_by, (None, 0)))(beams, tree.corners[face])
        touched &= (n < lists.lengths[:, None])[..., None]
        bits = jnp.where(touched, (jnp.uint32(1) << (n % 32).astype(jnp.uint32))[:, None], 0)
        word = n[0] // 32
        words = words.at[word].set(words[word] | jnp.sum(bits, axis=1, dtype=bits.dtype).ravel())
        return words, jax.lax.dynamic_update_slice_in_dim(faces, face.T, n[0], 0)

    words = jnp.zeros((_SLOTS, bundles * size), jnp.uint32)
    faces = jnp.zeros((_SLOTS * CLUSTER, bundles), jnp.int32)
    steps = -(-jnp.max(lists.lengths) // _AT_ONCE)
    words, faces = jax.lax.fori_loop(0, steps, several, (words, faces))
    bundle = jnp.repeat(jnp.arange(bundles, dtype=jnp.int32), size)
    return _Found(words, faces, bundle)


def _by_length(words: UInt32[Array, "slots rays"]) -> Int[Array, " rays"]:
    """Sorts rays by how many faces they may touch, most first."""
    length = jnp.sum(count_bits(words), axis=0).astype(jnp.uint32)
    place = jnp.arange(length.shape[0], dtype=jnp.uint32)
    # One number that holds length and place is sorted faster than a pair.
    packed = ((jnp.uint32(_SLOTS * CLUSTER) - length) << 16) | place
    return (jax.lax.sort(packed) & 0xFFFF).astype(jnp.int32)


def _flat(rows: PyTree) -> PyTree:
    """Joins the axes over bundles and rays."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def _part(tree: PyTree, i: Array, size: int, axis: int) -> PyTree:
    """Returns some rays of arrays that have them along an axis."""
    take = lambda x: jax.lax.dynamic_slice_in_dim(x, i * size, size, axis % x.ndim)
    return jax.tree.map(take, tree)


def _put(whole: PyTree, part: PyTree, i: Array, size: int, axis: int) -> PyTree:
    place = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, i * size, axis % x.ndim)
    return jax.tree.map(place, whole, part)


def _meet_all(
    tree: FaceTree, found: _Found, rows: tuple, visit: FaceVisit, known: tuple[PyTree, PyTree]
) -> tuple[PyTree, PyTree]:
    """Shows all rays the faces that they may touch; returns their memory, and the results."""
    lengths = jnp.sum(count_bits(found.words), axis=0)
    size = math.gcd(lengths.shape[0], _FEW_ROWS)

    def few(i: Array, known: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        words, bundle = _part((found.words, found.bundle), i, size, -1)
        mine, most = _Found(words, found.faces, bundle), jnp.max(_part(lengths, i, size, -1))
        rays, before = _part(rows, i, size, 0)
        state = _meet_few(tree, mine, most, rays, visit, _part(known[0], i, size, -1))
        memory = _put(known[0], state, i, size, -1)
        return memory, _put(known[1], visit.finish(state, before), i, size, 0)

    any_of_part = jnp.max(lengths.reshape(-1, size), axis=1) > 0
    parts = jnp.max(jnp.where(any_of_part, jnp.arange(1, 1 + any_of_part.shape[0]), 0))
    return jax.lax.fori_loop(0, parts, few, known)


def _meet_few(
    tree: FaceTree, found: _Found, longest: Array, rays: Ray, visit: FaceVisit, memory: PyTree
) -> PyTree:
    """Shows some rays the faces that they may touch, at most `longest` each."""

    def one(n: Array, carry: tuple[_Cursor, PyTree]) -> tuple[_Cursor, PyTree]:
        cursor, memory = carry
        face, there, cursor = _next_face(found, cursor)
        corners = tree.corners[face]
        pieces = map_rows(lambda _, row: visit.meet(*row), None, (rays, corners))
        return cursor, visit.remember(memory, pieces, face, there, n)

    def several(i: Array, carry: tuple[_Cursor, PyTree]) -> tuple[_Cursor, PyTree]:
        some = jnp.minimum(longest - i * VISITS, VISITS)
        begin = carry[0], (carry[1], visit.buffer(rays.near.shape[0]))
        cursor, state = jax.lax.fori_loop(0, some, one, begin)
        return cursor, visit.settle(state, some)

    start = _first_slots(found), memory
    return jax.lax.fori_loop(0, -(-longest // VISITS), several, start)[1]


class _Cursor(NamedTuple):
    """The faces that rays have not been tested against yet."""

    slots: UInt32[Array, " rays"]  # a bit for every word that has any bits
    word: UInt32[Array, " rays"]  # what is left of the present word
    slot: Int[Array, " rays"]


def _first_slots(found: _Found) -> _Cursor:
    place = jnp.arange(_SLOTS, dtype=jnp.uint32)[:, None]
    slots = jnp.sum((found.words > 0).astype(jnp.uint32) << place, axis=0, dtype=jnp.uint32)
    return _Cursor(slots, jnp.zeros_like(slots), jnp.zeros(slots.shape, jnp.int32))


def _next_face(found: _Found, cursor: _Cursor) -> tuple[Array, Array, _Cursor]:
    """Returns the next face of every ray, whether there is one, and what is left then."""
    slot, slots = _pop(cursor.slots)
    new, slot = cursor.word == 0, jnp.minimum(slot, _SLOTS - 1)
    first = jnp.take_along_axis(found.words, slot[None], axis=0)[0]
    word, slot = jnp.where(new, first, cursor.word), jnp.where(new, slot, cursor.slot)
    # Without any slot left, a word that was read before must not come again.
    there = ~new | (cursor.slots > 0)
    bit, rest = _pop(word)
    left = jnp.where(there, rest, 0)
    face = found.faces[CLUSTER * slot + jnp.minimum(bit, CLUSTER - 1), found.bundle]
    return face, there, _Cursor(jnp.where(new, slots, cursor.slots), left, slot)


def _pop(word: UInt32[Array, " rays"]) -> tuple[Int[Array, " rays"], UInt32[Array, " rays"]]:
    """Returns the place of the lowest bit, 32 without any, and the word without it."""
    return count_bits((word & -word) - 1), word & (word - 1)
