"""Rows at places: those of numpy, in few operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rowwise import put_rows, take_rows
from support.helpers import assert_close


DRAW = np.random.default_rng(0)
TREE = jax.tree.map(
    jnp.asarray, {"wide": DRAW.normal(size=(9, 2, 9)), "whole": DRAW.integers(0, 99, (9, 9))}
)
WITHIN = np.array([4, 0, 8, 4])


@pytest.mark.parametrize("axis", [0, -1])
def test_rows_are_those_at_places(axis):
    got = take_rows(TREE, jnp.asarray(WITHIN), axis)
    expected = jax.tree.map(lambda x: np.take(np.asarray(x), WITHIN, axis), TREE)
    jax.tree.map(np.testing.assert_array_equal, got, expected)


def test_places_beyond_the_last_are_the_last():
    got = take_rows(TREE["whole"], jnp.array([[2, 9], [50, 8]]))
    np.testing.assert_array_equal(got, TREE["whole"][jnp.array([[2, 8], [8, 8]])])


@pytest.mark.parametrize("axis", [0, -1])
def test_rows_are_put_at_places_and_beyond_the_last_nowhere(axis):
    rows = jax.tree.map(lambda x: -np.take(np.asarray(x), [0, 1, 2], axis), TREE)
    got = put_rows(TREE, jnp.array([7, 9, 3]), rows, axis)

    def put(x, y):
        x, y = np.moveaxis(np.array(x), axis, 0), np.moveaxis(y, axis, 0)
        x[[7, 3]] = y[[0, 2]]
        return np.moveaxis(x, 0, axis)

    jax.tree.map(np.testing.assert_array_equal, got, jax.tree.map(put, TREE, rows))


def test_derivatives_are_those_of_indexing(x64):
    table, weights = (jnp.asarray(DRAW.normal(size=shape)) for shape in ((9, 3), (4, 3)))
    loss = lambda take: lambda x: jnp.sum(weights * jnp.sin(take(x)))
    ours = jax.grad(loss(lambda x: take_rows(x, jnp.asarray(WITHIN))))(table)
    assert_close(ours, jax.grad(loss(lambda x: x[WITHIN]))(table), 1e-12)


def test_a_look_up_is_two_operations():
    """Five, if places might be counted from the end."""
    program = jax.make_jaxpr(take_rows)(jnp.zeros((5, 4)), jnp.zeros(3, jnp.int32))
    assert len(program.eqns) == 2
