"""Leaf nodes of one structure, taken apart once: what is asked of all is asked of one."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax

from ..numerics import is_tied
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


def tabulate(
    leaves: Sequence[Leaf],
    untie: Callable[[Any], Any],
    prepare: Callable[[Any], Any] | None = None,
) -> list[LeafRows]:
    """Takes leaf nodes apart, and gathers those of one structure.

    `untie` is applied to those that have tied leaves, and `prepare` to those that have textures.
    """
    tables: dict[Any, LeafTable] = {}
    copies: list[LeafCopies] = []
    number = 0
    for leaf in leaves:
        if leaf.counts:
            ready, transforms = untie((leaf.node, leaf.transforms))
            ready = ready if prepare is None else prepare(ready)
            copies.append(LeafCopies(leaf._replace(node=ready, transforms=transforms), number))
        else:
            _add(tables, leaf, number, untie, prepare)
        number += math.prod(leaf.counts)
    return [*tables.values(), *copies]


def _add(
    tables: dict[Any, LeafTable],
    leaf: Leaf,
    number: int,
    untie: Callable[[Any], Any],
    prepare: Callable[[Any], Any] | None,
) -> None:
    tree = leaf.node, leaf.transforms
    row, structure = jax.tree.flatten(tree)
    if _has_ties(structure):
        tree = untie(tree)
        row, structure = jax.tree.flatten(tree)
    if prepare is not None and _has_texture(structure):
        node, transforms = tree
        row, structure = jax.tree.flatten((prepare(node), transforms))
    # Arrays may differ if shape and dtype are equal; all else has to be equal itself.
    kind = structure, tuple([(x.shape, x.dtype) if eqx.is_array(x) else (x,) for x in row])
    table = tables.get(kind)
    if table is None:
        columns = [Column(i, x.shape, x.dtype) if eqx.is_array(x) else x for i, x in enumerate(row)]
        table = tables[kind] = LeafTable(*jax.tree.unflatten(structure, columns))
    table.add(number, row, leaf.frozen)


@functools.lru_cache(maxsize=4096)
def _has_ties(structure: Any) -> bool:
    tree = jax.tree.unflatten(structure, range(structure.num_leaves))
    return any(map(is_tied, jax.tree.leaves(tree, is_leaf=is_tied)))


@functools.lru_cache(maxsize=4096)
def _has_texture(structure: Any) -> bool:
    return has_texture(jax.tree.unflatten(structure, range(structure.num_leaves)))
