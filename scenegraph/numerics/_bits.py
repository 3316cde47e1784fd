"""Masks with 32 entries to a word: a true entry is found without going through all the others."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, UInt32


WORD = 32


def pack_bits(mask: Bool[Array, " n"]) -> UInt32[Array, " words"]:
    """A mask, 32 entries to a word.

    **Arguments:**

    - `mask`: one boolean an item.

    **Returns:**

    `ceil(n / 32)` words, but at least one; the first entry is the lowest bit of the first.
    """
    words = max(1, -(-mask.shape[0] // WORD))
    rows = jnp.pad(mask, (0, WORD * words - mask.shape[0])).reshape(words, WORD)
    bits = rows.astype(jnp.uint32) << jnp.arange(WORD, dtype=jnp.uint32)
    return jnp.sum(bits, axis=1, dtype=jnp.uint32)


def count_bits(words: UInt32[Array, "*rows"]) -> Int[Array, "*rows"]:
    """How many entries of each word are true.

    **Arguments:**

    - `words`: from `pack_bits`.

    **Returns:**

    From 0 to 32.
    """
    return jax.lax.population_count(words).astype(jnp.int32)


def nth_bit(words: UInt32[Array, " words"], n: Int[Array, ""]) -> Int[Array, ""]:
    """Where a true entry of a mask is.

    **Arguments:**

    - `words`: from `pack_bits`.
    - `n`: which of the true entries; 0 is the first.

    **Returns:**

    Its position in the mask; any if there are not so many.
    """
    counts = count_bits(words)
    ends = jnp.cumsum(counts)
    which = jnp.minimum(jnp.sum(ends <= n), words.shape[0] - 1)
    return WORD * which + nth_bit_of_word(words[which], n - (ends - counts)[which])


def nth_bit_of_word(word: UInt32[Array, ""], n: Int[Array, ""]) -> Int[Array, ""]:
    """`nth_bit` of one word: in its lower half or its upper, and so on with the half.

    **Arguments:**

    - `word`: 32 entries.
    - `n`: as in `nth_bit`.

    **Returns:**

    The position in the word.

    **Source:** Vigna 2008, "Broadword implementation of rank/select queries".
    """
    position = jnp.zeros_like(n)
    for half in (16, 8, 4, 2, 1):
        lower = word & jnp.uint32(2**half - 1)
        count = count_bits(lower).astype(n.dtype)
        above = n >= count
        position += jnp.where(above, half, 0)
        n -= jnp.where(above, count, 0)
        word = jnp.where(above, word >> half, lower)
    return position
