"""Rows of trees at given places, none of which is counted from the end.

To allow for places that are takes three more operations for every array.
"""

import jax

from .._typing import Array, Int, PyTree


def take_rows(tree: PyTree, places: Int[Array, "*rows"], axis: int = 0) -> PyTree:
    """Returns the rows of arrays at places along an axis; those beyond the last are the last."""
    how = {"mode": "clip", "wrap_negative_indices": False}
    return jax.tree.map(lambda x: x.at[_along(x, axis, places)].get(**how), tree)


def put_rows(tree: PyTree, places: Int[Array, " rows"], rows: PyTree, axis: int = 0) -> PyTree:
    """Returns arrays with rows at places, no two of which are equal; beyond the last, none is."""
    how = {"mode": "drop", "unique_indices": True, "wrap_negative_indices": False}
    return jax.tree.map(lambda x, y: x.at[_along(x, axis, places)].set(y, **how), tree, rows)


def _along(x: Array, axis: int, places: Array) -> tuple:
    return *(slice(None),) * (axis % x.ndim), places
