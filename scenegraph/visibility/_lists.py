"""Candidate lists: which things a bundle of rays may touch."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, UInt32
from ..numerics import AbstractModule, count_bits, nth_bit_of_word, pack_bits
from ..transforms import Ball
from ._bundles import Bundle, may_touch


class AbstractCandidates(AbstractModule):
    """The candidates of every bundle, in the order of their numbers."""

    @property
    @abc.abstractmethod
    def lengths(self) -> Int[Array, " bundles"]:
        """The number of candidates of each bundle."""

    @abc.abstractmethod
    def nth(self, n: Int[Array, ""]) -> Int[Array, " bundles"]:
        """Finds a candidate of every bundle.

        **Arguments:**

        - `n`: the place in the lists, from 0.

        **Returns:**

        The number of each bundle's `n`-th candidate; any number if it has fewer.
        """


class Everything(AbstractCandidates):
    """All things as candidates of all bundles that have rays.

    **Arguments:**

    - `used`: the bundles that have rays.
    - `count`: the number of things.
    """

    used: Bool[Array, " bundles"]
    count: int = eqx.field(static=True)

    @property
    def lengths(self) -> Int[Array, " bundles"]:
        return jnp.where(self.used, self.count, 0)

    def nth(self, n: Int[Array, ""]) -> Int[Array, " bundles"]:
        return jnp.broadcast_to(jnp.minimum(n, self.count - 1), self.used.shape)


class CandidateLists(AbstractCandidates):
    """Lists of candidates, stored as bits: no length has to be known in advance.

    **Arguments:**

    - `words`: a bit for every thing, 32 to a word.
    - `ends`: the number of candidates in a word and all those before it.
    """

    words: UInt32[Array, "bundles words"]
    ends: Int[Array, "bundles words"]

    @property
    def lengths(self) -> Int[Array, " bundles"]:
        return self.ends[:, -1]

    def nth(self, n: Int[Array, ""]) -> Int[Array, " bundles"]:
        return jax.vmap(lambda words, ends: _nth(words, ends, n))(self.words, self.ends)


def list_candidates(bundles: Bundle, balls: Ball, used: Bool[Array, " bundles"]) -> CandidateLists:
    """Lists the things that bundles of rays may touch.

    **Arguments:**

    - `bundles`: the bundles, with one leading axis.
    - `balls`: the balls that hold the things, in world coordinates, with one leading axis.
    - `used`: the bundles that have rays; the others get empty lists.

    **Returns:**

    The lists: conservative, so that a thing that is on none is certainly not touched.
    """

    def one(bundle: Bundle, has_rays: Bool[Array, ""]) -> tuple[Array, Array]:
        touched = has_rays & jax.vmap(lambda ball: may_touch(bundle, ball))(balls)
        words = pack_bits(touched)
        return words, jnp.cumsum(count_bits(words))

    return CandidateLists(*jax.vmap(one)(bundles, used))


def _nth(words: UInt32[Array, " words"], ends: Array, n: Int[Array, ""]) -> Int[Array, ""]:
    # The word that holds the entry is the first whose running count exceeds n.
    which = jnp.minimum(jnp.sum(ends <= n), words.shape[0] - 1)
    word = words[which]
    before = ends[which] - count_bits(word)
    return 32 * which + nth_bit_of_word(word, n - before)
