"""Columns: rows taken apart, and joined again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rows import map_rows
from scenegraph.rowwise import split_row, split_rows, split_rows_last


ROWS = {"a": jnp.arange(30.0).reshape(5, 2, 3), "b": jnp.arange(5), "c": jnp.zeros((5, 0)) == 1}


def check_equal(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.fixture(params=["cpu", "gpu"])
def backend(request, monkeypatch):
    """Elsewhere than on a CPU, rows stay whole."""
    monkeypatch.setattr(jax, "default_backend", lambda: request.param)
    return request.param


def test_rows_are_joined_as_they_were(backend):
    columns = split_rows(ROWS)
    assert len(columns.numbers) == (8 if backend == "cpu" else 3)
    check_equal(columns.joined(), ROWS)


@pytest.mark.usefixtures("backend")
def test_rows_along_the_last_axis():
    last = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), ROWS)
    check_equal(split_rows_last(last).joined(), ROWS)
    check_equal(split_rows_last(last).joined_last(), last)


@pytest.mark.usefixtures("backend")
def test_one_row_is_joined_within_a_map():
    def one(_, row):
        row = row.joined()
        assert row["a"].shape == (2, 3)
        return split_row({"sum": jnp.sum(row["a"], axis=0), "b": row["b"] + 1})

    call = lambda rows: map_rows(one, None, split_rows(rows)).joined()
    check_equal(jax.jit(call)(ROWS), {"sum": jnp.sum(ROWS["a"], axis=1), "b": ROWS["b"] + 1})
