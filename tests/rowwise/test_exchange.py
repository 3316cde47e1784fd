"""Rows that change places are those of numpy, and cotangents come back to where rows were."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rowwise import exchange_rows
from support.helpers import assert_close


DRAW = np.random.default_rng(0)
ROWS = jnp.asarray(DRAW.normal(size=(5, 2, 3)), jnp.float32)
# Row 4 goes nowhere, and the second of the new rows comes from nowhere.
PLACES, BACK = jnp.array([[3, 9], [0, 2], [7, 1]]), jnp.array([2, 5, 3, 0, 6])
WEIGHTS = jnp.asarray(DRAW.normal(size=(3, 2, 2, 3)), jnp.float32)


def plain(rows):
    """The same by JAX's own look-up."""
    return rows.at[PLACES].get(mode="fill", fill_value=0)


def exchanged(rows):
    return exchange_rows({"rows": rows}, PLACES, BACK)["rows"]


def test_new_rows_are_those_at_places_and_zeros_beyond():
    got, whole = np.asarray(exchanged(ROWS)), np.asarray(ROWS)
    zero = np.zeros((2, 3))
    expected = [[whole[3], zero], [whole[0], whole[2]], [zero, whole[1]]]
    np.testing.assert_array_equal(got, np.asarray(expected, np.float32))
    np.testing.assert_array_equal(exchanged(jnp.arange(5)), [[3, 0], [0, 2], [0, 1]])


def test_derivatives_are_those_of_a_look_up():
    loss = lambda move: lambda rows: jnp.sum(jnp.sin(move(rows)) * WEIGHTS)
    assert_close(jax.grad(loss(exchanged))(ROWS), jax.grad(loss(plain))(ROWS))
    direction = jnp.ones_like(ROWS)
    for own, its in zip(
        jax.jvp(exchanged, (ROWS,), (direction,)),
        jax.jvp(plain, (ROWS,), (direction,)),
        strict=True,
    ):
        assert_close(own, its)
    curved = lambda move: jax.jvp(jax.grad(loss(move)), (ROWS,), (direction,))[1]
    assert_close(curved(exchanged), curved(plain))
    twice = lambda move: jax.grad(lambda x: jnp.sum(jax.grad(loss(move))(x) ** 2))(ROWS)
    assert_close(twice(exchanged), twice(plain))


def test_nothing_is_added_on_the_way_back():
    back = jax.make_jaxpr(jax.grad(lambda rows: jnp.sum(exchanged(rows) * WEIGHTS)))(ROWS)
    assert "scatter" not in str(back)
    assert "scatter" in str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(plain(x) * WEIGHTS)))(ROWS))


def test_rows_of_nothing_have_gradients_of_nothing():
    slopes = jax.grad(lambda rows: jnp.sum(exchanged(rows)))(jnp.zeros((5, 2, 0)))
    assert slopes.shape == (5, 2, 0)


@pytest.mark.parametrize("axes", [(0, None, None), (2, None, None), (1, 0, 0), (None, 0, 0)])
def test_batches_are_those_of_a_look_up(axes):
    rows = ROWS if axes[0] is None else jnp.stack([ROWS, 2 * ROWS, -ROWS], axes[0])
    several = lambda x: x if axes[1] is None else jnp.stack([x, x[::-1], x])
    places, back = several(PLACES), several(BACK)
    by = lambda move: jax.vmap(move, axes)(rows, places, back)
    look_up = lambda rows, places, _: rows.at[places].get(mode="fill", fill_value=0)
    np.testing.assert_array_equal(by(exchange_rows), by(look_up))


def test_gradients_of_batches_are_those_of_each():
    every = jnp.stack([ROWS, 2 * ROWS])
    slopes = jax.grad(lambda rows: jnp.sum(jnp.cos(exchanged(rows)) * WEIGHTS))
    assert_close(jax.vmap(slopes)(every), jnp.stack(list(map(slopes, every))))
