"""Sizes of the numbers of leaves, by which a step is found finite or not."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float, PyTree
from ..numerics import AbstractModule


# Longer leaves are read row by row on CPUs: there XLA reduces a long list one number at a time,
# which takes longer than Adam's step.
_LONG, _ROW = 2**16, 2**12


class Sizes(AbstractModule):
    """The largest absolute number of every leaf, and the sum of its squares; NaN where one is."""

    largest: Float[Array, " leaves"]
    squares: Float[Array, " leaves"]

    def norm(self) -> Float[Array, ""]:
        """Returns the length of all leaves together."""
        return jnp.sqrt(jnp.sum(self.squares))


def sizes_of(tree: PyTree) -> Sizes:
    """Measures all leaves of a tree of arrays."""
    found = [_size(leaf.reshape(-1)) for leaf in jax.tree.leaves(tree)]
    if not found:
        return Sizes(jnp.zeros(0), jnp.zeros(0))
    largest, squares = zip(*found, strict=True)
    return Sizes(jnp.stack(largest), jnp.stack(squares))


def _size(x: Float[Array, " entries"]) -> tuple[Array, Array]:
    if x.size < _LONG:
        return _at_once(x)
    return jax.lax.platform_dependent(x, cpu=_row_by_row, default=_at_once)


def _at_once(x: Float[Array, " entries"]) -> tuple[Array, Array]:
    # max |x| and sum |x|^2
    x = jnp.abs(x)
    return jnp.max(x, initial=0), jnp.sum(x * x)


def _row_by_row(x: Float[Array, " entries"]) -> tuple[Array, Array]:
    def add_row(row: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        own = jnp.abs(jax.lax.dynamic_slice(x, (row * _ROW,), (_ROW,)))
        return jnp.maximum(found[0], own), found[1] + own * own

    # One row of running results, so that no sum waits for another.
    rows, none = x.size // _ROW, jnp.zeros(_ROW, jnp.abs(x[:0]).dtype)
    found = jax.lax.fori_loop(0, rows, add_row, (none, none))
    largest, squares = _at_once(x[rows * _ROW :])
    return jnp.maximum(jnp.max(found[0]), largest), jnp.sum(found[1]) + squares
