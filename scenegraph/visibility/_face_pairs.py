"""Pairs of a ray and a face that it may touch: their intersections, and sums over them.

Of some rays thousands of faces count and of most none: taken ray by ray, most would wait for a few.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree, UInt32
from ..flat import FaceTree
from ..numerics import choose_block, count_bits, nth_bit_of_word
from ..rays import Ray
from ..rows import map_rows
from ..rowwise import store, take_rows


# Runs of faces whose pairs are numbered at once, and pairs that are computed at once.
_RUNS, _PAIRS = 64, 1024
# Faces of a ray whose intersections are in a table at once.
VISITS = 32


# The sums of rays, and totals.
Sums: TypeAlias = tuple[PyTree, PyTree]


class FaceSum(NamedTuple):
    """Contributions of pairs to rays and totals, added in any order; sums have rays last."""

    start: Callable[[int], PyTree]  # the sums of so many rays over no faces
    # Of all rays and what they had before, pairs of them and faces, and which pairs there are.
    add: Callable[[PyTree, Array, Array, Array, Sums], Sums]
    finish: Callable[[PyTree], PyTree]  # the results, with rays first, of sums
    way: int  # see `FaceVisit`
    totals: PyTree = None  # what totals begin with


def add_terms(sums: PyTree, terms: PyTree, places: Array, axis: int) -> PyTree:
    """Adds terms to the sums at places along the first axis or the last; beyond it, none is."""
    along = lambda x: x.at[places] if axis == 0 else x.at[..., places]
    return jax.tree.map(lambda x, y: along(x).add(y, mode="drop"), sums, terms)


class TouchedFaces(NamedTuple):
    """Runs of 32 faces, each of one bundle, and which rays of the bundle may touch them."""

    words: UInt32[Array, "runs size"]  # a bit for every face of a run, for the rays of its bundle
    faces: Int[Array, "runs 32"]
    bundles: Int[Array, " runs"]
    total: Int[Array, ""]  # later runs are none


class Runs(NamedTuple):
    """Runs of numbers of some lengths, one for every bundle, one after the other."""

    ends: Int[Array, " bundles"]

    def find(self, n: Int[Array, " some"]) -> tuple[Array, Array]:
        """Returns the bundles of places, and the numbers there; any beyond the last run."""
        bundle = jnp.sum(self.ends <= n[:, None], axis=1, dtype=jnp.int32)
        bundle = jnp.minimum(bundle, self.ends.shape[0] - 1)
        return bundle, n - self.begins[bundle]

    @property
    def begins(self) -> Int[Array, " bundles"]:
        return jnp.concatenate([jnp.zeros_like(self.ends[:1]), self.ends[:-1]])


def runs_at_once() -> int:
    """Returns how many runs are read at once, from any multiple of that number on."""
    return choose_block(_RUNS)


def add_pairs(touched: TouchedFaces, rows: PyTree, visit: FaceSum, sums: Sums) -> Sums:
    """Adds what pairs of rays and faces that these may touch add, bundle after bundle."""
    size = touched.words.shape[1]
    runs, pairs = runs_at_once(), choose_block(_PAIRS)

    def several(i: Array, sums: Sums) -> Sums:
        part = lambda x: jax.lax.dynamic_slice_in_dim(x, i * runs, runs)
        words, faces, bundles = (part(x) for x in touched[:3])
        words = jnp.where((i * runs + jnp.arange(runs) < touched.total)[:, None], words, 0).ravel()
        ends = jnp.cumsum(count_bits(words))

        def some(j: Array, sums: Sums) -> Sums:
            n = j * pairs + jnp.arange(pairs, dtype=jnp.int32)
            word = jnp.searchsorted(ends, n, side="right", method="scan_unrolled")
            word = store(jnp.minimum(word, words.shape[0] - 1).astype(jnp.int32))
            bits = words[word]
            bit = jax.vmap(nth_bit_of_word)(bits, n - ends[word] + count_bits(bits))
            run, column = word // size, word % size
            face = store(faces[run, jnp.minimum(bit, 31)])
            ray = store(size * bundles[run] + column)
            return visit.add(rows, ray, face, n < ends[-1], sums)

        return jax.lax.fori_loop(0, -(-ends[-1] // pairs), some, sums)

    return jax.lax.fori_loop(0, -(-touched.total // runs), several, sums)


class FacesOfRays(NamedTuple):
    """The faces that each ray may touch."""

    words: UInt32[Array, "runs size"]  # of `TouchedFaces`
    faces: Int[Array, "runs 32"]
    first: Int[Array, " rays"]  # the first run of its bundle
    column: Int[Array, " rays"]
    lengths: Int[Array, " rays"]
    begins: Int[Array, "slots rays"]  # the number of its faces before each run of its bundle

    def of(self, rays: Int[Array, " some"]) -> "FacesOfRays":
        """Returns the faces of some rays."""
        first, column, lengths = (x[rays] for x in (self.first, self.column, self.lengths))
        return FacesOfRays(*self[:2], first, column, lengths, self.begins[:, rays])

    def nth(self, ray: Int[Array, " some"], n: Int[Array, " some"]) -> Int[Array, " some"]:
        """Returns the `n`-th faces of rays."""
        slot, half = jnp.zeros_like(n), self.begins.shape[0] // 2
        # By bisection, the last run before which there are n faces or fewer.
        while half:
            slot += jnp.where(self.begins[slot + half, ray] <= n, half, 0)
            half //= 2
        slot = store(slot)
        run = store(self.first[ray] + slot)
        bits = store(self.words[run, self.column[ray]])
        bit = jax.vmap(nth_bit_of_word)(bits, n - self.begins[slot, ray])
        return self.faces[run, jnp.minimum(bit, 31)]


def faces_by_ray(touched: TouchedFaces, runs: Runs, slots: int) -> FacesOfRays:
    """Returns the faces of every ray, of bundles with at most so many runs."""
    (bundles,), size, words = runs.ends.shape, touched.words.shape[1], touched.words

    def count(slot: Array, known: tuple[Array, Array]) -> tuple[Array, Array]:
        begins, length = known
        own = take_rows(words, runs.begins + slot)
        own = jnp.where((runs.begins + slot < runs.ends)[:, None], own, 0)
        return begins.at[slot].set(length), length + count_bits(own)

    # Runs that no bundle has begin beyond all faces.
    beyond = jnp.full((slots, bundles, size), jnp.iinfo(jnp.int32).max, jnp.int32)
    longest = jnp.max(runs.ends - runs.begins)
    start = beyond, jnp.zeros((bundles, size), jnp.int32)
    begins, length = jax.lax.fori_loop(0, longest, count, start)
    first = jnp.repeat(runs.begins, size)
    column = jnp.tile(jnp.arange(size, dtype=jnp.int32), bundles)
    flat = begins.reshape(slots, -1)
    return FacesOfRays(words, touched.faces, first, column, length.ravel(), flat)


def meet_pairs(
    tree: FaceTree,
    found: FacesOfRays,
    rays: Ray,
    begin: Array,
    meet: Callable[[Ray, Array], PyTree],
) -> tuple[Int[Array, "visits rays"], PyTree]:
    """Returns faces of rays from the one of number `begin` on, `VISITS` at most, and intersections.

    They are in tables; what is beyond the last face of a ray has no meaning.
    """
    at_once, count = choose_block(_PAIRS), found.lengths.shape[0]
    lengths = jnp.clip(found.lengths - begin, 0, VISITS)
    ends = jnp.cumsum(lengths)
    begins = ends - lengths
    one = lambda _, row: meet(*row)

    def some(i: Array, table: PyTree) -> PyTree:
        n = i * at_once + jnp.arange(at_once, dtype=jnp.int32)
        ray = jnp.searchsorted(ends, n, side="right", method="scan_unrolled")
        ray = store(jnp.minimum(ray, count - 1).astype(jnp.int32))
        n_of_ray = store(n - begins[ray])
        face = store(found.nth(ray, begin + n_of_ray))
        pieces = map_rows(one, None, (take_rows(rays, ray), take_rows(tree.corners, face)))
        place = jnp.where(n < ends[-1], count * n_of_ray + ray, VISITS * count)
        put = lambda x, y: x.at[place].set(y, mode="drop", unique_indices=True)
        return jax.tree.map(put, table, (face, pieces))

    like = jax.eval_shape(lambda: meet(jax.tree.map(lambda x: x[0], rays), tree.corners[0]))
    like = jax.ShapeDtypeStruct((), jnp.int32), like
    start = jax.tree.map(lambda x: jnp.zeros(VISITS * count, x.dtype), like)
    table = jax.lax.fori_loop(0, -(-ends[-1] // at_once), some, start)
    return jax.tree.map(lambda x: x.reshape(VISITS, count), table)
