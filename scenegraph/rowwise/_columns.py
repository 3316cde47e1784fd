"""Rows of trees taken apart into columns: on a CPU, `map_rows` need not do so again in every loop.

Each column is an operand, and a result, of a loop over rows as it is. Elsewhere rows stay whole.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, PyTree


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["numbers"], meta_fields=["shapes", "structure"]
)
@dataclasses.dataclass(frozen=True)
class Columns:
    """The numbers of a tree: each of all rows, or within `map_rows` of one."""

    numbers: tuple[Any, ...]
    # The shapes of a row's arrays; `None` where they are whole.
    shapes: tuple[tuple[int, ...], ...] | None
    structure: Any

    def joined(self) -> PyTree:
        """Returns the tree, of all rows or of one."""
        if self.shapes is None:
            return jax.tree.unflatten(self.structure, self.numbers)
        rest, leaves = list(self.numbers), []
        for shape in self.shapes:
            count = math.prod(shape) or 1
            leaves.append(_join(rest[:count], shape))
            rest = rest[count:]
        return jax.tree.unflatten(self.structure, leaves)

    def joined_last(self) -> PyTree:
        """Returns the tree of all rows, with rows along the last axis."""
        return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), self.joined())


def split_rows(rows: PyTree) -> Columns:
    """Takes all rows apart, which are along the first axis."""
    return _split(rows, 1)


def split_rows_last(rows: PyTree) -> Columns:
    """Takes all rows apart, which are along the last axis."""
    return _split(jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), rows), 1)


def split_row(row: PyTree) -> Columns:
    """Takes one row apart, within `map_rows`."""
    return _split(row, 0)


def _split(tree: PyTree, axes: int) -> Columns:
    """Splits arrays but for so many leading axes."""
    leaves, structure = jax.tree.flatten(tree)
    if jax.default_backend() != "cpu":
        return Columns(tuple(leaves), None, structure)
    shapes = tuple(x.shape[axes:] for x in leaves)
    numbers = [number for x in leaves for number in _numbers(x, axes)]
    return Columns(tuple(numbers), shapes, structure)


def _numbers(x: Array, axes: int) -> list[Array]:
    """Returns the numbers of an array; one without any as it is."""
    if x.size == 0 or x.ndim == axes:
        return [x]
    flat = x.reshape(*x.shape[:axes], -1)
    return list(jnp.unstack(flat, axis=-1))


def _join(numbers: list[Array], shape: tuple[int, ...]) -> Array:
    if shape == () or 0 in shape:
        return numbers[0]
    return jnp.stack(numbers, axis=-1).reshape(*numbers[0].shape, *shape)
