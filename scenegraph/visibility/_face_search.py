"""The search over faces of meshes: every ray meets just those faces that it may touch itself."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .._typing import Array, Bool, Int, PyTree, UInt32
from ..flat import Boxes, CLUSTER, FaceTree
from ..numerics import choose_block, count_bits, order_longest_first, pack_bits
from ..programs import say_times
from ..rays import Ray
from ..rowwise import map_rows, split_rows
from ._beams import (
    Beam,
    beam_of,
    beyond_all,
    faces_turned,
    faces_within,
    may_meet,
    NOWHERE,
    touched_by,
)
from ._face_pairs import add_pairs, FaceSum, Runs, runs_at_once, TouchedFaces
from ._lists import AbstractCandidates, CandidateLists, Everything, Grouping, list_by


# Faces that rays are tested against before the hits are put in order.
VISITS = 32
# Rays of the bundles that are searched at once, and of these, sorted by how many faces they may
# touch, how many meet faces at once. Kernels of fewer rays cost more than what they compute.
_ROWS, _FEW_ROWS = 4096, 256
# Clusters of a bundle whose faces are tested in one go; no more than a word has bits.
_SLOTS = 32
# Clusters that are tested against bundles at once, and runs of 32 faces against rays, of whatever
# bundles: those of few candidates do not wait for those of many.
_CLUSTERS, _RUNS = 64, 8


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
    # Faces of one side may be left out if their backs are turned to the eye, for 1, and for -1 if
    # their fronts are.
    way: int


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
    visit: FaceVisit | FaceSum,
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
    beams, lists = _list_clusters(tree, rays, used, everything=everything)
    bundles, few = count // size, min(choose_block(_FEW_ROWS) // size, count // size)
    block = min(choose_block(_ROWS) // size, few * -(-bundles // few))
    # Longest lists first: a block takes as many turns as its longest.
    order = order_longest_first(lists.lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])
    # Rays and results are sorted; the rays of bundles that are there twice are beyond the last.
    numbers = _flat(size * order[:, None] + jnp.arange(size, dtype=jnp.int32))
    own = jax.tree.map(lambda x: x.at[numbers].get(mode="clip"), _flat(before))
    state = numbers, _no_results(visit, numbers.shape[0], own), visit.start(block * size)

    def one_block(i: Array, state: tuple[Array, PyTree, PyTree]) -> tuple[Array, PyTree, PyTree]:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        own = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), (lists, beams, rays, before))
        lengths = jnp.where(chosen < bundles, own[0].lengths, 0)
        return _search_block(tree, (lengths, *own), visit, state, i * block * size)

    blocks = -(-jnp.sum(lists.lengths > 0) // block)
    with say_times(count * tree.owner.shape[0]):
        numbers, results, _ = jax.lax.fori_loop(0, blocks, one_block, state)
    back = jnp.zeros(count, jnp.int32)
    back = back.at[numbers].set(jnp.arange(numbers.shape[0], dtype=jnp.int32), mode="drop")
    return jax.tree.map(lambda x: x[back], results)


def _no_results(visit: FaceVisit | FaceSum, count: int, before: PyTree) -> PyTree:
    """Returns the results of rays that meet no face."""
    if isinstance(visit, FaceSum):
        return visit.finish(visit.start(count))
    return visit.nothing(count, before)


def _list_clusters(
    tree: FaceTree, rays: Ray, used: Bool[Array, "bundles size"], *, everything: bool
) -> tuple[Beam, AbstractCandidates]:
    """Returns beams about the rays of bundles, and the clusters of faces that these may touch."""
    any_used, beams = jnp.any(used, axis=1), jax.vmap(beam_of)(rays, used)
    if not everything:
        return beams, list_by(may_meet, beams.planes, tree.clusters, any_used, _GROUPING)
    beams = beams._replace(narrow=jnp.zeros_like(any_used), planes=beyond_all(beams.planes))
    return beams, Everything(any_used, tree.by_cluster.shape[0])


class _Found(NamedTuple):
    """The faces of bundles, some at a time, and which of them rays may touch, 32 to a word."""

    words: UInt32[Array, "runs size"]  # of `TouchedFaces`
    faces: Int[Array, "runs 32"]
    # Of every ray:
    first: Int[Array, " rays"]  # the first run of its bundle
    column: Int[Array, " rays"]
    slots: UInt32[Array, " rays"]  # a bit for every run of its bundle that it may touch
    length: Int[Array, " rays"]  # the number of faces that it may touch


def _search_block(
    tree: FaceTree,
    block: tuple,
    visit: FaceVisit | FaceSum,
    state: tuple[Array, PyTree, PyTree],
    at: Array,
) -> tuple[Array, PyTree, PyTree]:
    """Searches some bundles at once; rays that may touch as many faces go together.

    The block is lengths of lists, these, beams, rays, and what rays had before. Of the state, the
    numbers of rays and their results get those of the block, from the place `at` on; what the
    memory holds at first is not read.
    """
    (lengths, lists, beams), rows = block[:3], _flat(block[3:])
    count = rows[0].near.shape[0]
    longest, own = jnp.max(lengths), jax.lax.dynamic_slice(state[0], (at,), (count,))

    def some(carry: tuple) -> tuple:
        begin, order, numbers, memory, results = carry
        runs = Runs(jnp.cumsum(jnp.clip(lengths - begin, 0, _SLOTS)))
        known = _faces_of(tree, lists, beams, runs, begin, visit.way)
        touched, runs = _test_rays(tree, *known, beams, visit.way)
        if isinstance(visit, FaceSum):
            memory = jax.tree.map(
                lambda x, y: jnp.where(begin == 0, x, y), visit.start(count), memory
            )
            memory = add_pairs(tree, touched, rows[0], visit, memory)
            results = _put(results, visit.finish(memory), at, 0)
            return begin + _SLOTS, order, numbers, memory, results
        found, ordered = _by_ray(touched, runs), visit
        order = jax.lax.cond(begin == 0, order_longest_first, lambda _: order, found.length)
        numbers = jax.lax.dynamic_update_slice(numbers, own[order], (at,))
        # Rays change places, so those that meet no face are given what they had before anew.
        before = jax.tree.map(lambda x: x[order], rows[1])
        put = lambda results: _put(results, ordered.nothing(count, before), at, 0)
        results = jax.lax.cond(begin == 0, put, lambda results: results, results)
        known = begin > 0, begin + _SLOTS < longest
        state = _meet_all(tree, found, rows, order, ordered, known, (memory, results), at)
        return begin + _SLOTS, order, numbers, *state

    order, (numbers, results, memory) = jnp.arange(count, dtype=jnp.int32), state
    start = jnp.zeros((), jnp.int32), order, numbers, memory, results
    end = jax.lax.while_loop(lambda carry: carry[0] < longest, some, start)
    return end[2], end[4], end[3]


def _faces_of(
    tree: FaceTree, lists: AbstractCandidates, beams: Beam, runs: Runs, begin: Array, way: int
) -> tuple[CandidateLists, Int[Array, "bundles slots"]]:
    """Tests the faces of the next clusters of every bundle against all of its rays together.

    Returns lists of places in these clusters, and their numbers.
    """
    at_once, beams = choose_block(_CLUSTERS), beams._replace(lines=None)

    def several(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        # All bundles' clusters in one list, of which a block may have those of several bundles.
        bundle, n = runs.find(i * at_once + jnp.arange(at_once, dtype=jnp.int32))
        cluster = lists.nth_of(bundle, begin + n).astype(jnp.int32)
        own, corners = jax.tree.map(lambda x: x[bundle], beams), tree.by_cluster[cluster]
        within = faces_within(own.planes, corners)
        if tree.one_sided is not None:
            one_sided = tree.one_sided.reshape(-1, CLUSTER)[cluster]
            within &= ~(one_sided & faces_turned(own, corners, way))
        word = jax.vmap(pack_bits)(within)[:, 0]
        put = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, i * at_once, 0)
        return put(carry[0], word), put(carry[1], cluster)

    places = jnp.zeros(_SLOTS * beams.narrow.shape[0] + at_once, jnp.uint32)
    start = places, places.astype(jnp.int32)
    found = jax.lax.fori_loop(0, -(-runs.ends[-1] // at_once), several, start)
    slot = jnp.arange(_SLOTS, dtype=jnp.int32)
    place, there = runs.begins[:, None] + slot, runs.begins[:, None] + slot < runs.ends[:, None]
    words, clusters = (jnp.where(there, x.at[place].get(mode="clip"), 0) for x in found)
    return CandidateLists(words, jnp.cumsum(count_bits(words), axis=1)), clusters


def _test_rays(
    tree: FaceTree,
    lists: CandidateLists,
    clusters: Int[Array, "bundles slots"],
    beams: Beam,
    way: int,
) -> tuple[TouchedFaces, Runs]:
    """Tests faces of bundles against their rays, one by one."""
    bundles, size = beams.lines.near.shape
    at_once = choose_block(_RUNS)
    runs = Runs(jnp.cumsum(-(-lists.lengths // 32)))
    test = _face_test(tree, beams, way)

    def several(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        bundle, run = runs.find(i * at_once + jnp.arange(at_once, dtype=jnp.int32))
        n = 32 * run[:, None] + jnp.arange(32, dtype=jnp.int32)
        # In the bundle's row of clusters, face n is at `place`: of cluster place // 32, the face
        # place % 32.
        place = jax.vmap(lists.nth_of, (None, 1), 1)(bundle, n)
        cluster = jnp.take_along_axis(clusters[bundle], place // CLUSTER, axis=1)
        face = (CLUSTER * cluster + place % CLUSTER).astype(jnp.int32)
        touched = test(bundle, face) & (n < lists.lengths[bundle][:, None])[..., None]
        bits = touched.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32)[:, None]
        put = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, i * at_once, 0)
        new = jnp.sum(bits, axis=1, dtype=bits.dtype), face, bundle
        return put(carry[0], new[0]), put(carry[1], new[1]), put(carry[2], new[2])

    places = _SLOTS * bundles + max(at_once, runs_at_once())
    no_bundles = jnp.zeros(places, jnp.int32)
    start = jnp.zeros((places, size), jnp.uint32), jnp.zeros((places, 32), jnp.int32), no_bundles
    words, faces, own = jax.lax.fori_loop(0, -(-runs.ends[-1] // at_once), several, start)
    return TouchedFaces(words, faces, own, runs.ends[-1]), runs


def _by_ray(touched: TouchedFaces, runs: Runs) -> _Found:
    """Returns the faces of every ray."""
    (bundles,), size, words = runs.ends.shape, touched.words.shape[1], touched.words

    def count(slot: Array, known: tuple[Array, Array]) -> tuple[Array, Array]:
        own = words.at[runs.begins + slot].get(mode="clip")
        own = jnp.where((runs.begins + slot < runs.ends)[:, None], own, 0)
        # Of a ray: the runs in which it may touch any face, and how many faces in all of them.
        bit = (own > 0).astype(jnp.uint32) << slot.astype(jnp.uint32)
        return known[0] | bit, known[1] + count_bits(own)

    nothing = jnp.zeros((bundles, size), jnp.uint32)
    longest = jnp.max(runs.ends - runs.begins)
    slots, length = jax.lax.fori_loop(0, longest, count, (nothing, nothing.astype(jnp.int32)))
    first = jnp.repeat(runs.begins, size)
    column = jnp.tile(jnp.arange(size, dtype=jnp.int32), bundles)
    return _Found(words, touched.faces, first, column, slots.ravel(), length.ravel())


def _face_test(tree: FaceTree, beams: Beam, way: int) -> Callable[[Array, Array], Array]:
    """Returns the test of faces, `runs 32`, against the rays of bundles, one for each run."""
    # One look-up instead of many.
    beams = beams._replace(planes=None, origins=None, ways=None)
    table = jax.vmap(lambda beam: ravel_pytree(beam)[0])(beams)
    unravel = ravel_pytree(jax.tree.map(lambda x: x[0], beams))[1]
    over_faces = jax.vmap(partial(touched_by, way=way), (None, 0, 0))

    def test(bundle: Int[Array, " runs"], face: Int[Array, "runs 32"]) -> Array:
        one_sided = jax.tree.map(lambda x: x[face], tree.one_sided)
        own = jax.vmap(unravel)(table[bundle])
        return jax.vmap(over_faces)(own, tree.corners[face], one_sided)

    return test


def _flat(rows: PyTree) -> PyTree:
    """Joins the axes over bundles and rays."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)


def _part(tree: PyTree, i: Array, size: int, axis: int) -> PyTree:
    """Returns some rays of arrays that have them along an axis."""
    take = lambda x: jax.lax.dynamic_slice_in_dim(x, i * size, size, axis % x.ndim)
    return jax.tree.map(take, tree)


def _put(whole: PyTree, part: PyTree, begin: Array, axis: int) -> PyTree:
    place = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, begin, axis % x.ndim)
    return jax.tree.map(place, whole, part)


def _meet_all(
    tree: FaceTree,
    found: _Found,
    rows: tuple,
    order: Int[Array, " rays"],
    visit: FaceVisit,
    known: tuple[Array, Array],
    state: tuple[PyTree, PyTree],
    at: Array,
) -> tuple[PyTree, PyTree]:
    """Shows all rays the faces that they may touch; returns their memory, and the results.

    Memory is read, and written, only if rays had faces before, and if they get more.
    """
    lengths = found.length[order]
    size = math.gcd(lengths.shape[0], choose_block(_FEW_ROWS))

    def few(i: Array, state: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        chosen, most = _part(order, i, size, 0), jnp.max(_part(lengths, i, size, 0))
        mine = _Found(*found[:2], *(x[chosen] for x in found[2:]))
        rays, before = jax.tree.map(lambda x: x[chosen], rows)
        memory, results = state
        recall = lambda _, own: _part(memory, i, size, -1)
        own = jax.lax.fori_loop(0, known[0].astype(jnp.int32), recall, visit.start(size))
        own = _meet_few(tree, mine, most, rays, visit, own)
        keep = lambda _, memory: _put(memory, own, i * size, -1)
        memory = jax.lax.fori_loop(0, known[1].astype(jnp.int32), keep, memory)
        return memory, _put(results, visit.finish(own, before), at + i * size, 0)

    # Parts behind the last that has any faces are left out; rays with many come first. But if rays
    # get more faces later, all of them begin their memory: it holds that of other rays before.
    needed = (jnp.max(lengths.reshape(-1, size), axis=1) > 0) | (known[1] & ~known[0])
    parts = jnp.max(jnp.where(needed, jnp.arange(1, 1 + needed.shape[0]), 0))
    return jax.lax.fori_loop(0, parts, few, state)


def _meet_few(
    tree: FaceTree, found: _Found, longest: Array, rays: Ray, visit: FaceVisit, memory: PyTree
) -> PyTree:
    """Shows some rays the faces that they may touch, at most `longest` each."""
    own = split_rows(rays)
    meet = lambda _, row: visit.meet(row[0].joined(), row[1])

    def one(n: Array, carry: tuple[_Cursor, PyTree]) -> tuple[_Cursor, PyTree]:
        cursor, memory = carry
        face, there, cursor = _next_face(found, cursor)
        pieces = map_rows(meet, None, (own, tree.corners[face]))
        return cursor, visit.remember(memory, pieces, face, there, n)

    def several(i: Array, carry: tuple[_Cursor, PyTree]) -> tuple[_Cursor, PyTree]:
        some = jnp.minimum(longest - i * VISITS, VISITS)
        begin = carry[0], (carry[1], visit.buffer(rays.near.shape[0]))
        cursor, state = jax.lax.fori_loop(0, some, one, begin)
        return cursor, visit.settle(state, some)

    start = _Cursor(found.slots, jnp.zeros_like(found.slots), jnp.zeros_like(found.first)), memory
    return jax.lax.fori_loop(0, -(-longest // VISITS), several, start)[1]


class _Cursor(NamedTuple):
    """The faces that rays have not been tested against yet."""

    slots: UInt32[Array, " rays"]  # a bit for every word that has any bits
    word: UInt32[Array, " rays"]  # what is left of the present word
    slot: Int[Array, " rays"]


def _next_face(found: _Found, cursor: _Cursor) -> tuple[Array, Array, _Cursor]:
    """Returns the next face of every ray, whether there is one, and what is left then."""
    slot, slots = _pop(cursor.slots)
    new, slot = cursor.word == 0, jnp.minimum(slot, _SLOTS - 1)
    # Word (run, column) of the flattened table, which is read when the last one is used up.
    first = found.words.ravel().at[found.words.shape[1] * (found.first + slot) + found.column]
    first = first.get(mode="clip")
    word, slot = jnp.where(new, first, cursor.word), jnp.where(new, slot, cursor.slot)
    # Without any slot left, a word that was read before must not come again.
    there = ~new | (cursor.slots > 0)
    bit, rest = _pop(word)
    left = jnp.where(there, rest, 0)
    # Apart, because what is computed within a look-up is computed number by number.
    place = jax.lax.optimization_barrier(32 * (found.first + slot) + jnp.minimum(bit, 31))
    face = found.faces.ravel().at[place]
    return face.get(mode="clip"), there, _Cursor(jnp.where(new, slots, cursor.slots), left, slot)


def _pop(word: UInt32[Array, " rays"]) -> tuple[Int[Array, " rays"], UInt32[Array, " rays"]]:
    """Returns the place of the lowest bit, 32 without any, and the word without it."""
    # w & -w is the lowest bit alone, one less the bits below it, and w & (w - 1) all but that bit.
    return count_bits((word & -word) - 1), word & (word - 1)
