"""Bits and lists of rows against numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from scenegraph.numerics import (
    count_bits,
    nth_bit,
    pack_bits,
    ragged_items,
    sum_to_nth_bit,
)


packed, items = jax.jit(pack_bits), jax.jit(ragged_items, static_argnums=1)


def mask_of(length, density, seed):
    return np.random.default_rng(seed).uniform(size=length) < density


@pytest.mark.parametrize("find", [nth_bit, sum_to_nth_bit])
@pytest.mark.parametrize("density", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("length", [1, 31, 32, 33, 128, 1000])
def test_every_bit_is_found(length, density, find):
    mask = mask_of(length, density, length)
    (expected,) = np.nonzero(mask)
    words = packed(mask)
    assert words.dtype == jnp.uint32 and words.shape == (-(-length // 32),)
    np.testing.assert_array_equal(np.sum(jax.jit(count_bits)(words)), len(expected))
    found = jax.jit(jax.vmap(find, (None, 0)))(words, np.arange(len(expected)))
    np.testing.assert_array_equal(found, expected)


def test_words_hold_the_first_entry_lowest():
    mask = np.zeros(64, bool)
    mask[[0, 5, 31, 32, 63]] = True
    assert pack_bits(jnp.asarray(mask)).tolist() == [1 + 2**5 + 2**31, 1 + 2**31]
    assert pack_bits(jnp.zeros(0, bool)).tolist() == [0]


@given(st.lists(st.integers(0, 9), min_size=7, max_size=7), st.sampled_from([1, 5, 40, 70]))
def test_rows_one_after_the_other(counts, budget):
    row, rank, valid = map(np.asarray, items(jnp.array(counts), budget))
    rows = np.repeat(np.arange(7), counts)
    ranks = np.concatenate([np.arange(count) for count in counts])
    used = min(len(rows), budget)
    np.testing.assert_array_equal(row[:used], rows[:budget])
    np.testing.assert_array_equal(rank[:used], ranks[:budget])
    np.testing.assert_array_equal(valid, np.arange(budget) < used)
    np.testing.assert_array_equal(row[used:], 6)


def test_no_room_is_refused():
    with pytest.raises(ValueError, match="`budget` must be at least 1; got 0"):
        ragged_items(jnp.array([1, 2]), 0)
