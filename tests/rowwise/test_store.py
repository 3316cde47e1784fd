"""Columns that are stored: the same numbers, and computed once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rowwise import store


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint32, jnp.float32, bool])
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 0, 3), (2, 3, 4)])
def test_values_are_as_they_are(dtype, shape):
    values = jnp.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype) + 2
    stored = jax.jit(store)(values)
    assert stored.dtype == values.dtype
    np.testing.assert_array_equal(stored, values)
    np.testing.assert_array_equal(jax.vmap(store)(values[None]), values[None])


def test_places_of_look_ups_are_computed_once():
    """Of a sine that gives the places of eight look-ups, a program has one instead of nine."""
    tables = [jnp.arange(64.0) + i for i in range(8)]

    def look_up(keep, x):
        place = keep((32 + 31 * jnp.sin(x)).astype(jnp.int32))
        return [table[place] for table in tables]

    x = jnp.linspace(0, 3, 100)
    text = {f: jax.jit(lambda x, f=f: look_up(f, x)).lower(x).compile().as_text()
            for f in (store, lambda x: x)}  # fmt: skip
    once, often = (program.count(" sine(") for program in text.values())
    assert once == 1 < often
    for got, expected in zip(look_up(store, x), look_up(lambda x: x, x), strict=True):
        np.testing.assert_array_equal(got, expected)
