"""Sums over the faces that rays may touch, as pairs of a ray and a face.

Of some rays thousands of faces count and of most none: taken ray by ray, most would wait for a few.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree, UInt32
from ..flat import FaceTree
from ..numerics import choose_block, count_bits, nth_bit_of_word
from ..rays import Ray
from ..rowwise import map_rows, split_rows


# Runs of faces whose pairs are numbered at once, and pairs that are computed at once.
_RUNS, _PAIRS = 64, 1024


class FaceSum(NamedTuple):
    """Contributions of faces to rays, added in any order; sums have rays last."""

    start: Callable[[int], PyTree]  # the sums of so many rays over no faces
    meet: Callable[[Ray, Array], PyTree]  # of one ray and the corners of one face
    terms: Callable[[PyTree, Array], PyTree]  # of intersections and numbers of faces
    finish: Callable[[PyTree], PyTree]  # the results, with rays first, of sums
    way: int  # see `FaceVisit`


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


def add_pairs(
    tree: FaceTree, touched: TouchedFaces, rays: Ray, visit: FaceSum, sums: PyTree
) -> PyTree:
    """Adds what faces add to the rays that may touch them, those of one bundle after the other."""
    size, own, beyond = touched.words.shape[1], split_rows(rays), rays.near.shape[0]
    runs, pairs = runs_at_once(), choose_block(_PAIRS)
    meet = lambda _, row: visit.meet(row[0].joined(), row[1])

    def add(rays: Array, faces: Array, there: Array, sums: PyTree) -> PyTree:
        rows = jax.tree.map(lambda x: x[rays], own), tree.corners[faces]
        terms = visit.terms(map_rows(meet, None, rows), faces)
        # Beyond the last ray, nothing is added.
        place = jnp.where(there, rays, beyond)
        return jax.tree.map(lambda x, y: x.at[..., place].add(y, mode="drop"), sums, terms)

    def several(i: Array, sums: PyTree) -> PyTree:
        part = lambda x: jax.lax.dynamic_slice_in_dim(x, i * runs, runs)
        words, faces, bundles = (part(x) for x in touched[:3])
        words = jnp.where((i * runs + jnp.arange(runs) < touched.total)[:, None], words, 0).ravel()
        ends = jnp.cumsum(count_bits(words))

        def some(j: Array, sums: PyTree) -> PyTree:
            n = j * pairs + jnp.arange(pairs, dtype=jnp.int32)
            word = jnp.searchsorted(ends, n, side="right", method="scan_unrolled")
            word = jnp.minimum(word, words.shape[0] - 1).astype(jnp.int32)
            bits = words[word]
            bit = jax.vmap(nth_bit_of_word)(bits, n - ends[word] + count_bits(bits))
            run, column = word // size, word % size
            face = faces[run, jnp.minimum(bit, 31)]
            return add(size * bundles[run] + column, face, n < ends[-1], sums)

        return jax.lax.fori_loop(0, -(-ends[-1] // pairs), some, sums)

    return jax.lax.fori_loop(0, -(-touched.total // runs), several, sums)
