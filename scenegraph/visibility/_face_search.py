"""The search over faces of meshes: every ray meets just those faces that it may touch itself."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .._typing import Array, Bool, Int, PyTree
from ..flat import Boxes, CLUSTER, FaceTree
from ..numerics import (
    choose_block,
    count_bits,
    max_or_nan,
    min_or_nan,
    order_longest_first,
    pack_bits,
)
from ..programs import say_times
from ..rays import Ray
from ..rowwise import store, take_rows
from ._beams import (
    Beam,
    beam_of,
    beyond_all,
    faces_turned,
    faces_within,
    may_meet,
    NOWHERE,
    see_triangle,
    size_in_footprints,
    touched_by,
)
from ._face_pairs import (
    add_pairs,
    faces_by_ray,
    FacesOfRays,
    FaceSum,
    meet_pairs,
    Runs,
    runs_at_once,
    TouchedFaces,
    VISITS,
)
from ._lists import AbstractCandidates, CandidateLists, Everything, Grouping, list_by


# Rays of the bundles that are searched at once, and of these, sorted by how many faces they may
# touch, how many meet faces at once. Kernels of fewer rays cost more than what they compute.
_ROWS, _FEW_ROWS = 2048, 256
# Clusters of a bundle whose faces are tested in one go; no more than a word has bits.
_SLOTS = 32
# Clusters that are tested against bundles at once, and rays against 32 faces each, of whatever
# bundles: those of few candidates do not wait for those of many.
_CLUSTERS, _TESTED = 64, 512


# The mean size of faces, in footprints of the rays that they are tested against, from which on it
# pays to look at edges: boxes about smaller ones touch hardly any more rays.
_SMALL = 2.0


class FaceVisit(NamedTuple):
    """The intersection of rays with faces, and what becomes of it; arrays have rays last."""

    start: Callable[[int], PyTree]  # the memory of so many rays
    meet: Callable[[Ray, Array], PyTree]  # of one ray and the corners of one face
    # Of memory, up to `VISITS` intersections of every ray, the numbers of the faces, which there
    # are, and the largest number of any ray: the memory.
    add: Callable[[PyTree, PyTree, Array, Array, Array], PyTree]
    nothing: Callable[[int, PyTree], PyTree]  # the results of so many rays that meet no face
    # The results, with rays first, of memory and of what the rays had before the search, or `None`.
    finish: Callable[[PyTree, PyTree], PyTree]
    # Faces of one side may be left out if their backs are turned to the eye, for 1, and for -1 if
    # their fronts are.
    way: int


def _box_around(boxes: Boxes) -> Boxes:
    """Returns a box that holds several."""
    low = min_or_nan(boxes.center - boxes.half, 0)
    high = max_or_nan(boxes.center + boxes.half, 0)
    return Boxes((low + high) / 2, (high - low) / 2)


# Twice as far as planes that nothing is beyond.
_GROUPING = Grouping(_box_around, -2 * NOWHERE)


class ListedFaces(NamedTuple):
    """Beams about bundles of rays, and the clusters of faces that these may touch."""

    beams: Beam
    lists: AbstractCandidates

    def of(self, rays: Bool[Array, " rays"]) -> "ListedFaces":
        """Returns what is listed of some of the rays."""
        near, lists = self.beams.lines.near, self.lists
        some = rays.reshape(near.shape)
        lines = self.beams.lines._replace(near=jnp.where(some, near, jnp.inf))
        # A list is as good as none where all its numbers are zero.
        empty = ~jnp.any(some, axis=1)
        none = lambda x: jnp.where(empty.reshape(-1, *(1,) * (x.ndim - 1)), jnp.zeros_like(x), x)
        return ListedFaces(self.beams._replace(lines=lines), jax.tree.map(none, lists))


def list_faces(
    tree: FaceTree, rays: Ray, used: Bool[Array, " rays"], size: int, *, everything: bool = False
) -> ListedFaces:
    """Lists clusters of faces by bundles of `size` rays."""
    bundles = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), (rays, used))
    return ListedFaces(*_list_clusters(tree, *bundles, everything=everything))


def search_faces(
    tree: FaceTree,
    listed: ListedFaces,
    rays: Ray,
    visit: FaceVisit | FaceSum,
    before: PyTree = None,
) -> tuple[PyTree, Int[Array, " rays"]]:
    """Shows every ray the faces that it may touch; returns the results, and their places by ray.

    What rays had `before` has rays first. Sums come with the totals.
    """
    beams, lists = listed
    (bundles, size), count = beams.lines.near.shape, rays.near.shape[0]
    rays, before = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), (rays, before))
    few = min(choose_block(_FEW_ROWS) // size, bundles)
    block = min(choose_block(_ROWS) // size, few * -(-bundles // few))
    # Longest lists first: a block takes as many turns as its longest.
    order = order_longest_first(lists.lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])
    # Rays and results are sorted; the rays of bundles that are there twice are beyond the last.
    numbers = _flat(size * order[:, None] + jnp.arange(size, dtype=jnp.int32))
    own = take_rows(_flat(before), numbers)
    state = numbers, _no_results(visit, numbers.shape[0], own), _memory(visit, block * size)

    def one_block(i: Array, state: tuple[Array, PyTree, PyTree]) -> tuple[Array, PyTree, PyTree]:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        own = take_rows((lists, beams, rays, before), chosen)
        lengths = jnp.where(chosen < bundles, own[0].lengths, 0)
        return _search_block(tree, (lengths, *own), visit, state, i * block * size)

    blocks = -(-jnp.sum(lists.lengths > 0) // block)
    with say_times(count * tree.owner.shape[0]):
        numbers, results, memory = jax.lax.fori_loop(0, blocks, one_block, state)
    back, places = jnp.zeros(count, jnp.int32), jnp.arange(numbers.shape[0], dtype=jnp.int32)
    results = (results, memory[1]) if isinstance(visit, FaceSum) else results
    return results, back.at[numbers].set(places, mode="drop")


def _memory(visit: FaceVisit | FaceSum, rays: int) -> PyTree:
    """Returns what a search keeps in mind of so many rays; totals are of all."""
    start = visit.start(rays)
    return (start, visit.totals) if isinstance(visit, FaceSum) else start


def _no_results(visit: FaceVisit | FaceSum, count: int, before: PyTree) -> PyTree:
    """Returns the results of rays that meet no face."""
    if isinstance(visit, FaceSum):
        return visit.finish(visit.start(count))
    return visit.nothing(count, before)


@partial(jax.jit, static_argnames="everything")
def _list_clusters(
    tree: FaceTree, rays: Ray, used: Bool[Array, "bundles size"], *, everything: bool
) -> tuple[Beam, AbstractCandidates]:
    """Returns beams about the rays of bundles, and the clusters of faces that these may touch."""
    any_used, beams = jnp.any(used, axis=1), jax.vmap(beam_of)(rays, used)
    if not everything:
        planes = jax.tree.map(store, beams.planes)
        return beams, list_by(may_meet, planes, tree.clusters, any_used, _GROUPING)
    beams = beams._replace(narrow=jnp.zeros_like(any_used), planes=beyond_all(beams.planes))
    return beams, Everything(any_used, tree.by_cluster.shape[0])


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
            start = lambda x, y: jnp.where(begin == 0, x, y)
            sums = jax.tree.map(start, visit.start(count), memory[0])
            memory = add_pairs(touched, rows, visit, (sums, memory[1]))
            results = _put(results, visit.finish(memory[0]), at, 0)
            return begin + _SLOTS, order, numbers, memory, results
        found, ordered = faces_by_ray(touched, runs, _SLOTS), visit
        order = jax.lax.cond(begin == 0, order_longest_first, lambda _: order, found.lengths)
        numbers = jax.lax.dynamic_update_slice(numbers, own[order], (at,))
        # Rays change places, so those that meet no face are given what they had before anew.
        before = take_rows(rows[1], order)
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
        own, corners = take_rows(beams, bundle), tree.by_cluster[cluster]
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
    words, clusters = (jnp.where(there, x, 0) for x in take_rows(found, place))
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
    at_once = choose_block(min(_TESTED // size, _CLUSTERS))
    runs = Runs(jnp.cumsum(-(-lists.lengths // 32)))
    test = _face_test(tree, beams, way)

    def several(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        bundle, run = runs.find(i * at_once + jnp.arange(at_once, dtype=jnp.int32))
        n = 32 * run[:, None] + jnp.arange(32, dtype=jnp.int32)
        # In the bundle's row of clusters, face n is at `place`: of cluster place // 32, the face
        # place % 32.
        place = jax.vmap(lists.nth_of, (None, 1), 1)(bundle, n)
        cluster = jnp.take_along_axis(clusters[bundle], place // CLUSTER, axis=1)
        face = store((CLUSTER * cluster + place % CLUSTER).astype(jnp.int32))
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


def _face_test(tree: FaceTree, beams: Beam, way: int) -> Callable[[Array, Array], Array]:
    """Returns the test of faces, `runs 32`, against the rays of bundles, one for each run."""
    # One look-up instead of many.
    beams = beams._replace(planes=None, origins=None, ways=None)
    table = jax.vmap(lambda beam: ravel_pytree(beam)[0])(beams)
    unravel = ravel_pytree(jax.tree.map(lambda x: x[0], beams))[1]
    over_faces = lambda function: jax.vmap(jax.vmap(function, (None, 0)))
    touched = lambda margins: over_faces(
        lambda beam, face: touched_by(beam, *face, way=way, margins=margins)
    )

    def test(bundle: Int[Array, " runs"], face: Int[Array, "runs 32"]) -> Array:
        own = jax.vmap(unravel)(table[bundle])
        seen = over_faces(see_triangle)(own, tree.corners[face])
        large = jnp.mean(over_faces(size_in_footprints)(own, seen)) > _SMALL
        faces = seen, take_rows(tree.one_sided, face)
        return jax.lax.cond(large, touched(True), touched(False), own, faces)

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
    found: FacesOfRays,
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
    lengths = found.lengths[order]
    size = math.gcd(lengths.shape[0], choose_block(_FEW_ROWS))

    def few(i: Array, state: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        chosen, most = _part(order, i, size, 0), jnp.max(_part(lengths, i, size, 0))
        mine = found.of(chosen)
        rays, before = take_rows(rows, chosen)
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
    tree: FaceTree, found: FacesOfRays, longest: Array, rays: Ray, visit: FaceVisit, memory: PyTree
) -> PyTree:
    """Shows some rays the faces that they may touch, at most `longest` each."""
    n = jnp.arange(VISITS, dtype=jnp.int32)[:, None]

    def several(i: Array, memory: PyTree) -> PyTree:
        begin = i * VISITS
        faces, pieces = meet_pairs(tree, found, rays, begin, visit.meet)
        there, most = n < found.lengths - begin, jnp.minimum(longest - begin, VISITS)
        return visit.add(memory, pieces, faces, there, most)

    return jax.lax.fori_loop(0, -(-longest // VISITS), several, memory)
