"""The search over faces of meshes: every ray meets just those faces that it may touch itself."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree, UInt32
from ..numerics import count_bits
from ..rays import Ray
from ..rowwise import map_rows
from ..scene import CLUSTER, FaceTree
from ..transforms import Ball
from ._beams import Beam, beam_of, touched_words
from ._bundles import bound_rays
from ._lists import AbstractCandidates, Everything, list_candidates
from ._order import invert_order


# Faces that rays meet before what they have met is put in order.
VISITS = 64
# Rays of the bundles that are searched at once, and of these, sorted by how many faces they may
# touch, how many meet faces at once.
_ROWS, _FEW_ROWS = 2048, 256
# Clusters of a bundle whose faces are tested before any is met; no more than a word has bits.
_SLOTS = 32


class FaceVisit(NamedTuple):
    """The meeting of rays with faces, and what becomes of it; memories have rays last."""

    start: Callable[[int], PyTree]  # the memory of so many rays
    meet: Callable[[Ray, Array], PyTree]  # of one ray and the corners of one face
    # Of a memory, what was met, the numbers of the faces, which rays have met one, and how many
    # they have met since the memory was settled, which is done before there are `VISITS`.
    remember: Callable[[PyTree, PyTree, Array, Array, Array], PyTree]
    settle: Callable[[PyTree, Array], PyTree]  # of a memory and that number
    finish: Callable[[PyTree], PyTree]  # the results, with rays first


def search_faces(
    tree: FaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    visit: FaceVisit,
    size: int,
    *,
    everything: bool = False,
) -> PyTree:
    """Shows every ray the faces that it may touch, and returns the results.

    Clusters of faces are listed by bundles of `size` rays, and faces by single rays.
    """
    apart = lambda x: x.reshape(-1, size, *x.shape[1:])
    rays, used = jax.tree.map(apart, (rays, used))
    any_used = jnp.any(used, axis=1)
    beams = jax.vmap(beam_of)(rays, used)
    lists: AbstractCandidates = Everything(any_used, tree.clusters.radius.shape[0])
    if everything:
        beams = beams._replace(narrow=jnp.zeros_like(any_used))
    else:
        lists = list_candidates(jax.vmap(bound_rays)(rays, used), tree.clusters, any_used)
    bundles = any_used.shape[0]
    block = min(max(_ROWS // size, 1), bundles)
    order = jnp.argsort(-lists.lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])
    nothing = visit.finish(visit.start(1))
    results = jax.tree.map(lambda x: jnp.broadcast_to(x, (bundles, size, *x.shape[1:])), nothing)

    def one_block(i: Array, results: PyTree) -> PyTree:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        own = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), (lists, beams, rays))
        new = _search_block(tree, own[0], own[1], own[2], visit)
        put = lambda x, y: x.at[chosen].set(apart(y), mode="drop", unique_indices=True)
        return jax.tree.map(put, results, new)

    blocks = -(-jnp.sum(lists.lengths > 0) // block)
    results = jax.lax.fori_loop(0, blocks, one_block, results)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), results)


class _Words(NamedTuple):
    """The faces that rays may touch, of some clusters of each ray's bundle."""

    words: UInt32[Array, "slots rays"]
    first: Int[Array, "slots rays"]  # the first face of the cluster


def _search_block(
    tree: FaceTree, lists: AbstractCandidates, beams: Beam, rays: Ray, visit: FaceVisit
) -> PyTree:
    """Searches some bundles at once; rays that may touch as many faces go together."""
    rays = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rays)
    count = rays.near.shape[0]

    def some(carry: tuple[Array, Array, PyTree]) -> tuple[Array, Array, PyTree]:
        begin, order, memory = carry
        found = _refine(tree, lists, beams, begin)
        order = jax.lax.cond(begin == 0, _by_length, lambda _: order, found.words)
        found = jax.tree.map(lambda x: x[:, order], found)
        own = jax.tree.map(lambda x: x[order], rays)
        return begin + _SLOTS, order, _meet_all(tree, found, own, visit, memory)

    longest = jnp.max(lists.lengths)
    start = jnp.zeros((), jnp.int32), jnp.arange(count, dtype=jnp.int32), visit.start(count)
    _, order, memory = jax.lax.while_loop(lambda carry: carry[0] < longest, some, start)
    back = invert_order(order)
    return jax.tree.map(lambda x: x[back], _finish(visit, memory, count))


def _refine(tree: FaceTree, lists: AbstractCandidates, beams: Beam, begin: Array) -> _Words:
    """Tests the faces of the next clusters of every bundle against its rays."""
    balls = jax.tree.map(lambda x: x.reshape(-1, CLUSTER, *x.shape[1:]), tree.balls)
    bundles, size = beams.near.shape

    def one(slot: Array, words: Array) -> Array:
        own: Ball = jax.tree.map(lambda x: x[lists.nth(begin + slot)], balls)
        there = begin + slot < lists.lengths
        word = jnp.where(there[:, None], touched_words(beams, own), 0)
        return words.at[slot].set(word.reshape(-1))

    slots = jnp.minimum(jnp.max(lists.lengths) - begin, _SLOTS)
    words = jnp.zeros((_SLOTS, bundles * size), jnp.uint32)
    words = jax.lax.fori_loop(0, slots, one, words)
    clusters = jax.vmap(lists.nth)(begin + jnp.arange(_SLOTS, dtype=jnp.int32))
    first = (CLUSTER * clusters).astype(jnp.int32)
    return _Words(words, jnp.repeat(first, size, axis=1))


def _by_length(words: UInt32[Array, "slots rays"]) -> Int[Array, " rays"]:
    """Sorts rays by how many faces they may touch, most first."""
    length = jnp.sum(count_bits(words), axis=0).astype(jnp.uint32)
    place = jnp.arange(length.shape[0], dtype=jnp.uint32)
    # One number that holds length and place is sorted faster than a pair.
    packed = ((jnp.uint32(_SLOTS * CLUSTER) - length) << 16) | place
    return (jax.lax.sort(packed) & 0xFFFF).astype(jnp.int32)


def _part(tree: PyTree, i: Array, size: int, axis: int) -> PyTree:
    """Returns some rays of arrays that have them along an axis."""
    take = lambda x: jax.lax.dynamic_slice_in_dim(x, i * size, size, axis % x.ndim)
    return jax.tree.map(take, tree)


def _put(whole: PyTree, part: PyTree, i: Array, size: int, axis: int) -> PyTree:
    place = lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, i * size, axis % x.ndim)
    return jax.tree.map(place, whole, part)


def _meet_all(tree: FaceTree, found: _Words, rays: Ray, visit: FaceVisit, memory: PyTree) -> PyTree:
    """Shows all rays the faces that they may touch."""
    lengths = jnp.sum(count_bits(found.words), axis=0)
    size = math.gcd(lengths.shape[0], _FEW_ROWS)

    def few(i: Array, memory: PyTree) -> PyTree:
        words, most = _part(found, i, size, -1), jnp.max(_part(lengths, i, size, -1))
        own = _part(rays, i, size, 0), _part(memory, i, size, -1)
        mine = _meet_few(tree, words, most, own[0], visit, own[1])
        return _put(memory, mine, i, size, -1)

    any_of_part = jnp.max(lengths.reshape(-1, size), axis=1) > 0
    parts = jnp.max(jnp.where(any_of_part, jnp.arange(1, 1 + any_of_part.shape[0]), 0))
    return jax.lax.fori_loop(0, parts, few, memory)


def _meet_few(
    tree: FaceTree, found: _Words, longest: Array, rays: Ray, visit: FaceVisit, memory: PyTree
) -> PyTree:
    """Shows some rays the faces that they may touch, at most `longest` each."""

    def one(n: Array, carry: tuple[_Cursor, PyTree]) -> tuple[_Cursor, PyTree]:
        cursor, memory = carry
        face, there, cursor = _next_face(found, cursor)
        corners = tree.corners[face]
        met = map_rows(lambda _, row: visit.meet(*row), None, (rays, corners))
        return cursor, visit.remember(memory, met, face, there, n)

    def several(i: Array, carry: tuple[_Cursor, PyTree]) -> tuple[_Cursor, PyTree]:
        some = jnp.minimum(longest - i * VISITS, VISITS)
        cursor, memory = jax.lax.fori_loop(0, some, one, carry)
        return cursor, visit.settle(memory, some)

    start = _first_slots(found), memory
    return jax.lax.fori_loop(0, -(-longest // VISITS), several, start)[1]


class _Cursor(NamedTuple):
    """The faces that rays have not met yet."""

    slots: UInt32[Array, " rays"]  # a bit for every word that has any bits
    word: UInt32[Array, " rays"]  # what is left of the present word
    first: Int[Array, " rays"]


def _first_slots(found: _Words) -> _Cursor:
    place = jnp.arange(_SLOTS, dtype=jnp.uint32)[:, None]
    slots = jnp.sum((found.words > 0).astype(jnp.uint32) << place, axis=0, dtype=jnp.uint32)
    return _Cursor(slots, jnp.zeros_like(slots), found.first[0])


def _next_face(found: _Words, cursor: _Cursor) -> tuple[Array, Array, _Cursor]:
    """Returns the next face of every ray, whether there is one, and what is left then."""
    slot, slots = _pop(cursor.slots)
    new, slot = cursor.word == 0, jnp.minimum(slot, _SLOTS - 1)[None]
    of_slot = lambda x: jnp.take_along_axis(x, slot, axis=0)[0]
    word = jnp.where(new, of_slot(found.words), cursor.word)
    first = jnp.where(new, of_slot(found.first), cursor.first)
    # Without any slot left, a word that was met before must not come again.
    there = ~new | (cursor.slots > 0)
    bit, rest = _pop(word)
    left = jnp.where(there, rest, 0)
    return (
        first + jnp.minimum(bit, CLUSTER - 1),
        there,
        _Cursor(jnp.where(new, slots, cursor.slots), left, first),
    )


def _pop(word: UInt32[Array, " rays"]) -> tuple[Int[Array, " rays"], UInt32[Array, " rays"]]:
    """Returns the place of the lowest bit, 32 without any, and the word without it."""
    return count_bits((word & -word) - 1), word & (word - 1)


def _finish(visit: FaceVisit, memory: PyTree, count: int) -> PyTree:
    """Computes the results of some rays at a time."""
    size = math.gcd(count, _FEW_ROWS)
    parts = lambda i: visit.finish(_part(memory, i, size, -1))
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    return jax.tree.map(flat, jax.lax.map(parts, jnp.arange(count // size)))
