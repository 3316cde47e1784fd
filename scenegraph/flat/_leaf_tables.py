"""Leaf nodes of one structure, taken apart once: what is asked of all is asked of one."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax

from ..scene import Leaf
from ..shaders import has_texture


@dataclasses.dataclass(frozen=True)
class Column:
    """Stands for the arrays at one place of the nodes of a table."""

    place: int
    shape: tuple[int, ...]
    dtype: Any


@dataclasses.dataclass(eq=False)
class LeafTable:
    """Leaf nodes of one structure: a row for each, a column for every array."""

    node: Any  # with a `Column` in the place of every array
    transforms: Any
    numbers: list[int] = dataclasses.field(default_factory=list)
    rows: list[list[Any]] = dataclasses.field(default_factory=list)
    frozen: list[bool] = dataclasses.field(default_factory=list)

    def add(self, number: int, row: list[Any], frozen: bool) -> None:
        self.numbers.append(number)
        self.rows.append(row)
        self.frozen.append(frozen)

    def members(self) -> Iterable[tuple[int, bool]]:
        """Returns the number of every node, and whether it takes no gradient."""
        return zip(self.numbers, self.frozen, strict=True)


@dataclasses.dataclass(eq=False)
class LeafCopies:
    """One leaf node below `Instances`, that stands for many in a row."""

    leaf: Leaf
    first: int  # the number of the first copy

    @property
    def node(self) -> Any:
        return self.leaf.node

    @property
    def transforms(self) -> Any:
        return self.leaf.transforms

    def members(self) -> Iterable[tuple[int, bool]]:
        """Returns the number of every copy, and whether it takes no gradient."""
        copies = math.prod(self.leaf.counts)
        return ((self.first + i, self.leaf.frozen) for i in range(copies))


LeafRows: TypeAlias = LeafTable | LeafCopies


def tabulate(leaves: Sequence[Leaf], prepare: Callable[[Any], Any] | None = None) -> list[LeafRows]:
    """Takes leaf nodes apart, and gathers those of one structure.

    `prepare` is applied to those that have textures.
    """
    tables: dict[Any, LeafTable] = {}
    copies: list[LeafCopies] = []
    number = 0
    for leaf in leaves:
        if leaf.counts:
            ready = leaf if prepare is None else dataclasses.replace(leaf, node=prepare(leaf.node))
            copies.append(LeafCopies(ready, number))
        else:
            _add(tables, leaf, number, prepare)
        number += math.prod(leaf.counts)
    return [*tables.values(), *copies]


def _add(
    tables: dict[Any, LeafTable], leaf: Leaf, number: int, prepare: Callable[[Any], Any] | None
) -> None:
    row, structure = jax.tree.flatten((leaf.node, leaf.transforms))
    if prepare is not None and _has_texture(structure):
        row, structure = jax.tree.flatten((prepare(leaf.node), leaf.transforms))
    # Arrays may differ if shape and dtype are equal; all else has to be equal itself.
    kind = structure, tuple([(x.shape, x.dtype) if eqx.is_array(x) else (x,) for x in row])
    table = tables.get(kind)
    if table is None:
        columns = [Column(i, x.shape, x.dtype) if eqx.is_array(x) else x for i, x in enumerate(row)]
        table = tables[kind] = LeafTable(*jax.tree.unflatten(structure, columns))
    table.add(number, row, leaf.frozen)


@functools.lru_cache(maxsize=4096)
def _has_texture(structure: Any) -> bool:
    return has_texture(jax.tree.unflatten(structure, range(structure.num_leaves)))
