"""Bit masks, 32 entries to a word: the n-th true entry is found without visiting all others."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, UInt32


WORD = 32


def pack_bits(mask: Bool[Array, " n"]) -> UInt32[Array, " words"]:
    """Packs a mask into `max(1, ceil(n / 32))` words, its first entry in the lowest bit."""
    words = max(1, -(-mask.shape[0] // WORD))
    rows = jnp.pad(mask, (0, WORD * words - mask.shape[0])).reshape(words, WORD)
    # Bit i of word w is entry 32 w + i.
    bits = rows.astype(jnp.uint32) << jnp.arange(WORD, dtype=jnp.uint32)
    return jnp.sum(bits, axis=1, dtype=jnp.uint32)


def count_bits(words: UInt32[Array, "*rows"]) -> Int[Array, "*rows"]:
    """Counts the true entries of each word."""
    return jax.lax.population_count(words).astype(jnp.int32)


def nth_bit(words: UInt32[Array, " words"], n: Int[Array, ""]) -> Int[Array, ""]:
    """Returns the position of the `n`-th true entry (from 0); any position if there are fewer."""
    counts = count_bits(words)
    ends = jnp.cumsum(counts)
    # The word that holds the entry is the first whose running count exceeds n.
    which = jnp.minimum(jnp.sum(ends <= n), words.shape[0] - 1)
    return WORD * which + nth_bit_of_word(words[which], n - (ends - counts)[which])


def sum_to_nth_bit(words: UInt32[Array, " words"], n: Int[Array, ""]) -> Int[Array, ""]:
    """Returns what `nth_bit` does, by sums: for one entry that many kernels use.

    XLA computes a bisection again in every kernel that needs its result, but no sum.
    """
    ends = jnp.cumsum(count_bits(words))
    which = jnp.minimum(jnp.sum(ends <= n), words.shape[0] - 1)
    word = words[which]
    # Of the word's entries, those up to bit i number c_i; the entry's bit is the number of c_i that
    # do not exceed those before it in the word.
    up_to = word & (jnp.uint32(2**WORD - 1) >> jnp.arange(WORD - 1, -1, -1, dtype=jnp.uint32))
    before = n - (ends[which] - count_bits(word))
    return WORD * which + jnp.sum(count_bits(up_to) <= before)


def nth_bit_of_word(word: UInt32[Array, ""], n: Int[Array, ""]) -> Int[Array, ""]:
    """Returns the position of the `n`-th true entry of one word, by bisection."""
    # Vigna 2008, "Broadword implementation of rank/select queries": count the lower half; if it
    # has n entries or fewer, skip it; go on with the half that holds the entry.
    position = jnp.zeros_like(n)
    for half in (16, 8, 4, 2, 1):
        lower = word & jnp.uint32(2**half - 1)
        count = count_bits(lower).astype(n.dtype)
        above = n >= count
        position += jnp.where(above, half, 0)
        n -= jnp.where(above, count, 0)
        word = jnp.where(above, word >> half, lower)
    return position
