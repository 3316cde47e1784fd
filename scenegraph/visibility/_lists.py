"""Candidate lists: which things a bundle of rays may touch."""

import abc
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree, UInt32
from ..numerics import (
    AbstractModule,
    count_bits,
    max_or_nan,
    nth_bit_of_word,
    pack_bits,
    safe_norm,
)
from ..programs import say_times
from ..rays import Ray
from ..rowwise import store, take_rows
from ..transforms import Ball
from ._bundles import bound_rays, Bundle, may_touch


class AbstractCandidates(AbstractModule):
    """The candidates of every bundle, in the order of their numbers."""

    @property
    @abc.abstractmethod
    def lengths(self) -> Int[Array, " bundles"]:
        """The number of candidates of each bundle."""

    @abc.abstractmethod
    def nth_of(self, bundles: Int[Array, " some"], n: Int[Array, " some"]) -> Int[Array, " some"]:
        """Finds the `n`-th candidates of some bundles; any things if they have fewer."""


class Everything(AbstractCandidates):
    """All things as candidates of all bundles that have rays."""

    used: Bool[Array, " bundles"]  # the bundles that have rays
    count: int = eqx.field(static=True)  # the number of things

    @property
    def lengths(self) -> Int[Array, " bundles"]:
        return jnp.where(self.used, self.count, 0)

    def nth_of(self, bundles: Int[Array, " some"], n: Int[Array, " some"]) -> Int[Array, " some"]:
        del bundles
        return jnp.minimum(n, self.count - 1)


class CandidateLists(AbstractCandidates):
    """Lists of candidates, stored as bits: no length has to be known in advance."""

    words: UInt32[Array, "bundles words"]  # a bit for every thing, 32 to a word
    ends: Int[Array, "bundles words"]  # the number of candidates in a word and all those before it

    @property
    def lengths(self) -> Int[Array, " bundles"]:
        return self.ends[:, -1]

    def nth(self, n: Int[Array, "*bundles"]) -> Int[Array, " bundles"]:
        """Finds the `n`-th candidate of every bundle; any thing if it has fewer."""
        return jax.vmap(_nth)(self.words, self.ends, jnp.broadcast_to(n, self.lengths.shape))

    def nth_of(self, bundles: Int[Array, " some"], n: Int[Array, " some"]) -> Int[Array, " some"]:
        return jax.vmap(_nth)(self.words[bundles], self.ends[bundles], n)


def list_candidates(bundles: Bundle, balls: Ball, used: Bool[Array, " bundles"]) -> CandidateLists:
    """Lists the things that bundles of rays may touch: what is on no list is not touched.

    Of more than 512 things, runs of 32 are tested together first; sort them by place before.
    """
    return list_by(may_touch, bundles, balls, used, Grouping(_ball_around, -jnp.inf))


@functools.partial(jax.jit, static_argnames="size")
def list_along_rays(
    balls: Ball, rays: Ray, used: Bool[Array, " rays"], size: int
) -> CandidateLists:
    """Lists the things that bundles of consecutive rays may touch, by the balls about them."""
    in_bundles = lambda x: x.reshape(-1, size, *x.shape[1:])
    rays, used = jax.tree.map(in_bundles, (rays, used))
    return list_candidates(jax.vmap(bound_rays)(rays, used), balls, jnp.any(used, axis=1))


class Grouping(NamedTuple):
    """Groups of things that are stored as `(center, size)`."""

    around: Callable[[Any], Any]  # what holds several things
    nothing: float  # the size of things that nothing touches


# Of more things than this, what holds all things of a word is tested first.
_MANY = 512
# Of no more words, comparing all with a place finds its word sooner than bisection.
_COMPARED = 32
# Relative to a ball's size: the rounding of its bounds.
_ROUNDING = 1e-5


def list_by(
    test: Callable, bundles: PyTree, things: Any, used: Bool[Array, " bundles"], grouping: Grouping
) -> CandidateLists:
    """Lists the things that pass a test with a bundle."""
    count = jax.tree.leaves(things)[0].shape[0]
    if count > _MANY:
        with say_times(used.shape[0] * count):
            return _count_along(_test_by_words(test, bundles, things, used, grouping))
    return _test_all(test, bundles, things, used)


def _test_all(
    test: Callable, bundles: PyTree, things: Any, used: Bool[Array, " bundles"]
) -> CandidateLists:
    """Tests all things against all bundles."""
    # Stored before they are packed: eight times as fast as bit by bit.
    touched = store(jax.vmap(lambda own: jax.vmap(lambda thing: test(own, thing))(things))(bundles))
    return _count_along(jnp.where(used[:, None], jax.vmap(pack_bits)(touched), 0))


def _touched(test: Callable, bundle: PyTree, things: Any) -> UInt32[Array, " words"]:
    """Returns a bit for everything that a bundle may touch."""
    return pack_bits(jax.vmap(lambda thing: test(bundle, thing))(things))


def _count_along(words: UInt32[Array, "bundles words"]) -> CandidateLists:
    return CandidateLists(words, jnp.cumsum(count_bits(words), axis=1))


def _test_by_words(
    test: Callable, bundles: PyTree, things: Any, used: Bool[Array, " bundles"], grouping: Grouping
) -> UInt32[Array, "bundles words"]:
    """Tests the things of a word against bundles that may touch what holds all of them."""
    by_word = _in_words(things, grouping.nothing)
    around = jax.vmap(grouping.around)(by_word)
    coarse = _test_all(test, bundles, around, used)
    rows = jnp.arange(used.shape[0])

    def one(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        n, words = carry
        which = store(coarse.nth(n))
        members = take_rows(by_word, which)
        # Every group is tested once for a bundle, so that its word is still zero.
        bits = jax.vmap(lambda *own: _touched(test, *own))(bundles, members)[:, 0]
        bits = jnp.where(n < coarse.lengths, bits, 0)
        return n + 1, words.at[rows, which].add(bits, mode="drop")

    most, groups = jnp.max(coarse.lengths), jax.tree.leaves(by_word)[0].shape[0]
    start = jnp.zeros((), jnp.int32), jnp.zeros((*used.shape, groups), jnp.uint32)
    return jax.lax.while_loop(lambda carry: carry[0] < most, one, start)[1]


def _in_words(things: Any, nothing: float) -> Any:
    """Splits things into rows of 32; the last one is filled with some that nothing touches."""
    center, size = jax.tree.leaves(things)
    more = -center.shape[0] % 32
    center = jnp.pad(center, ((0, more), (0, 0)), mode="edge")
    rest = ((0, more), *((0, 0),) * (size.ndim - 1))
    size = jnp.pad(size, rest, constant_values=nothing)
    rows = [x.reshape(-1, 32, *x.shape[1:]) for x in (center, size)]
    return jax.tree.unflatten(jax.tree.structure(things), rows)


def _ball_around(balls: Ball) -> Ball:
    """Returns a ball that holds several; one that is not finite if any of them is not."""
    # max_i (|c_i - c| + r_i)
    center = jnp.mean(balls.center, axis=0)
    reach = safe_norm(balls.center - center) + balls.radius
    return Ball(center, (1 + _ROUNDING) * max_or_nan(reach, 0))


def _nth(words: UInt32[Array, " words"], ends: Array, n: Int[Array, ""]) -> Int[Array, ""]:
    # The word that holds the entry is the first whose running count exceeds n.
    if words.shape[0] > _COMPARED:
        which = jnp.searchsorted(ends, n, side="right", method="scan_unrolled").astype(jnp.int32)
    else:
        which = jnp.sum(ends <= n, dtype=jnp.int32)
    which = jnp.minimum(which, words.shape[0] - 1)
    word = words[which]
    before = ends[which] - count_bits(word)
    return 32 * which + nth_bit_of_word(word, n - before)
