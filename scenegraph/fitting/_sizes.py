"""Sizes of the numbers of leaves, by which a step is found finite or not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, PyTree
from ..numerics import AbstractModule


# Longer leaves are read row by row on CPUs: there XLA reduces a long list one number at a time,
# which takes longer than Adam's step.
_LONG, _ROW = 2**16, 2**12
# The length of the rows of shorter ones.
_SHORT_ROW = 64


class Sizes(AbstractModule):
    """The largest absolute number of every leaf, and the sum of its squares; NaN where one is."""

    largest: Float[Array, " leaves"]
    squares: Float[Array, " leaves"]

    def norm(self) -> Float[Array, ""]:
        """Returns the length of all leaves together."""
        return jnp.sqrt(jnp.sum(self.squares))


def sizes_of(tree: PyTree) -> Sizes:
    """Measures all leaves of a tree of arrays."""
    leaves = [leaf.reshape(-1) for leaf in jax.tree.leaves(tree)]
    groups: dict[Any, list[int]] = {}
    for place, leaf in enumerate(leaves):
        groups.setdefault(leaf.dtype if leaf.size < _LONG else place, []).append(place)
    if not groups:
        return Sizes(jnp.zeros(0), jnp.zeros(0))
    found = [_measure([leaves[place] for place in group]) for group in groups.values()]
    order = np.argsort([place for group in groups.values() for place in group])
    largest, squares = (jnp.concatenate(sizes)[order] for sizes in zip(*found, strict=True))
    # Of thousands of numbers, XLA's greatest may leave out NaN (jaxlib 0.12 on CPUs); a sum never.
    return Sizes(jnp.where(jnp.isnan(squares), jnp.nan, largest), squares)


def _measure(leaves: list[Float[Array, " entries"]]) -> tuple[Array, Array]:
    """Measures one long leaf, or short ones together."""
    if leaves[0].size < _LONG:
        return _row_sums(leaves)
    found = jax.lax.platform_dependent(leaves[0], cpu=_row_by_row, default=_at_once)
    return found[0][None], found[1][None]


def _row_sums(leaves: list[Float[Array, " entries"]]) -> tuple[Array, Array]:
    """Measures short leaves in one list of rows: each by itself would be a dozen programs."""
    counts = np.array([-(-leaf.size // _SHORT_ROW) for leaf in leaves])
    gaps = counts * _SHORT_ROW - [leaf.size for leaf in leaves]
    zeros = jnp.zeros(_SHORT_ROW, leaves[0].dtype)
    pieces = [
        piece for leaf, gap in zip(leaves, gaps, strict=True) for piece in (leaf, zeros[:gap])
    ]
    rows = jnp.abs(jnp.concatenate([*pieces, zeros])).reshape(-1, _SHORT_ROW)
    # The rows of each leaf, and the last one, of zeros, where a leaf has fewer than others.
    number = np.arange(counts.max(initial=1))
    own = np.where(number < counts[:, None], number + (np.cumsum(counts) - counts)[:, None], -1)
    largest, squares = jnp.max(rows, axis=1), jnp.sum(rows * rows, axis=1)
    return jnp.max(largest[own], axis=1), jnp.sum(squares[own], axis=1)


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
