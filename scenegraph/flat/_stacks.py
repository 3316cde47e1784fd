"""Leaf nodes of one structure, stacked before they are placed in the world."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Int, PyTree
from ..numerics import AbstractModule, Frozen, is_frozen, unfreeze
from ..rows import map_rows, stack_alike
from ..scene import is_per_copy
from ..shaders import PreparedTexture
from ..transforms import AbstractTransform, AffineMap, compose, invert
from ._instances import Instance, InstanceStack, stacked
from ._leaf_tables import Column, LeafCopies, LeafRows, LeafTable


class LeafStack(AbstractModule):
    """Leaf nodes of one structure, in their own frames, along a leading axis."""

    # A node and the transforms above it: arrays of all members, and what all of them share.
    varying: tuple[Any, tuple[AbstractTransform, ...]]
    shared: tuple[Any, tuple[AbstractTransform, ...]]
    number: Int[Array, " members"]


# Stacked arrays by the tables and places that they are from.
StackedArrays: TypeAlias = dict[Any, Array]


def stack_leaves(
    tables: Sequence[LeafRows],
    part_of: Callable[[LeafRows], Any] | None = None,
    known: StackedArrays | None = None,
) -> tuple[LeafStack, ...]:
    """Stacks leaf nodes of equal structure, in the order of each structure's first.

    Arrays that are not traced are stacked on the host: many of them are then one operand. What is
    frozen takes no gradient, and is stacked with what is not. Arrays that are `known` to be stacked
    are not stacked again: a gradient would be taken apart, and added, for every array of every one.

    `part_of` returns what of a table's node is stacked, and the transforms above it, or `None` to
    leave the table out.
    """
    known = {} if known is None else known
    alike: dict[Any, list[_Part]] = {}
    stacks: list[tuple[int, LeafStack]] = []
    for table in tables:
        tree = (table.node, table.transforms) if part_of is None else part_of(table)
        if tree is None:
            continue
        if isinstance(table, LeafCopies):
            # The copies of an `Instances` have a stack of their own.
            stacks.append((table.first, _of_copies(table, tree)))
        else:
            for part in _parts(table, tree):
                alike.setdefault(part.kind, []).append(part)
    stacks += [_stack(parts, known) for parts in alike.values()]
    return tuple(stack for _, stack in sorted(stacks, key=lambda x: x[0]))


def place_stack(stack: LeafStack) -> InstanceStack:
    """Composes the transforms above stacked leaf nodes, once for all rays."""
    (node, transforms), (shared, same) = stack.varying, stack.shared
    if not transforms:
        return stacked(Instance(node, None, None, stack.number), shared)

    def place(same: PyTree, row: tuple[PyTree, Array]) -> tuple[AffineMap, AffineMap]:
        forward = compose(eqx.combine(row[0], same))
        return forward, invert(forward)

    forward, inverse = map_rows(place, same, (transforms, stack.number))
    return stacked(Instance(node, forward, inverse, stack.number), shared)


def map_stack(function: Any, stack: LeafStack, parts: tuple[PyTree, PyTree]) -> PyTree:
    """Maps a function over the members of a stack: of a varying and a shared part, joined."""
    varying, shared = parts
    whole = lambda member: function(eqx.combine(member, shared))
    if stack.number.shape[0] > 1:
        return jax.vmap(whole)(varying)
    # One alone is computed as it is: an axis of length one is only put in front.
    drop = lambda x: x.reshape(x.shape[1:])
    return jax.tree.map(lambda x: x[None], whole(jax.tree.map(drop, varying)))


# Rows of a stack gather what differs between its members: so many numbers, but no picture.
_GATHERED = 2**10


class _Part(NamedTuple):
    """Those rows and columns of a table that a stack holds."""

    kind: Any  # equal for parts that can be stacked
    leaves: list[Any]  # columns, and what is no array
    frozen: tuple[bool, ...]  # for every leaf, whether it takes no gradient
    table: LeafTable
    rows: range


def _parts(table: LeafTable, tree: Any) -> list[_Part]:
    """Returns what of a table is stacked, in one part if its rows can be in one stack."""
    leaves, structure = jax.tree.flatten(tree)
    opened, frozen = _open_structure(structure)
    look = [(x.shape, x.dtype) if isinstance(x, Column) else (x,) for x in leaves]
    rows = range(len(table.rows))
    if not _has_large_texture(tree, leaves):
        return [_Part((opened, *look), leaves, frozen, table, rows)]
    number = table.numbers
    return [_Part((opened, *look, number[i]), leaves, frozen, table, rows[i : i + 1]) for i in rows]


def _has_large_texture(tree: Any, leaves: list[Any]) -> bool:
    """Returns true if there is a texture that must not be gathered for every row of a stack."""
    if all(math.prod(x.shape) <= _GATHERED for x in leaves if isinstance(x, Column)):
        return False
    is_texture = lambda x: isinstance(x, PreparedTexture)
    return any(map(is_texture, jax.tree.leaves(tree, is_leaf=is_texture)))


@functools.lru_cache(maxsize=4096)
def _open_structure(structure: Any) -> tuple[Any, tuple[bool, ...]]:
    """Returns a structure without `Frozen` wrappers, and which of its leaves were in one."""
    tree = jax.tree.unflatten(structure, range(structure.num_leaves))
    # Each leaf as its number, so that those in a wrapper are known.
    opened = [False] * structure.num_leaves

    def open_wrapper(node: Any) -> Any:
        if not is_frozen(node):
            return node
        inner = jax.tree.map(open_wrapper, node.value, is_leaf=is_frozen)
        for place in jax.tree.leaves(inner):
            opened[place] = True
        return inner

    whole = jax.tree.map(open_wrapper, tree, is_leaf=is_frozen)
    return jax.tree.structure(whole), tuple(opened)


def _stack(parts: list[_Part], known: StackedArrays) -> tuple[int, LeafStack]:
    """Stacks parts of equal kind in the order of their numbers, of which it returns the first."""
    members = [(part.table.numbers[i], i, part) for part in parts for i in part.rows]
    members.sort(key=lambda member: member[0])
    columns = [[part.leaves[i] for part in parts] for i in range(len(parts[0].leaves))]
    varying: list[Any] = []
    for place, leaves in enumerate(columns):
        key = tuple((part.table, part.rows, x) for part, x in zip(parts, leaves, strict=True))
        if isinstance(leaves[0], Column) and key not in known:
            known[key] = _joined(*_column(members, place))
        varying.append(known[key] if isinstance(leaves[0], Column) else None)
    shared = [None if isinstance(x, Column) else x for x in parts[0].leaves]
    numbers = _known(np.asarray([number for number, *_ in members], np.int32))
    build = functools.partial(jax.tree.unflatten, parts[0].kind[0])
    return members[0][0], LeafStack(build(varying), build(shared), numbers)


def _column(members: list[tuple[int, int, _Part]], place: int) -> tuple[list[Array], list[bool]]:
    """Returns the arrays at a place of some members, and which of them take no gradient."""
    arrays = [part.table.rows[i][part.leaves[place].place] for _, i, part in members]
    return arrays, [part.table.frozen[i] or part.frozen[place] for _, i, part in members]


def _known(numbers: np.ndarray) -> Array:
    """Returns an array that is no tracer in a traced function either.

    `map_rows` folds such constants: the surface on which a ray begins is then known.
    """
    with jax.ensure_compile_time_eval():
        return jax.device_put(numbers)


def _joined(arrays: list[Array], frozen: list[bool]) -> Array:
    """Stacks arrays: on the host if all are there."""
    if any(isinstance(x, Tracer) for x in arrays):
        stop = lambda x, mark: jax.lax.stop_gradient(x) if mark else x
        if any(frozen) and not all(frozen):
            arrays = [stop(x, mark) for x, mark in zip(arrays, frozen, strict=True)]
        whole = arrays[0][None] if len(arrays) == 1 else _stacked(arrays)
        return stop(whole, all(frozen))
    # `jnp.asarray` compiles a program for every shape.
    return arrays[0][None] if len(arrays) == 1 else jax.device_put(np.stack(arrays))


def _stacked(arrays: list[Array]) -> Array:
    """Stacks traced arrays; those that are known, or of weak type, take the type of the others."""
    dtype = jnp.result_type(*arrays)
    return stack_alike([jnp.asarray(x, dtype) for x in arrays])


def _of_copies(copies: LeafCopies, tree: Any) -> LeafStack:
    """Stacks the copies of a part of one leaf node, the innermost `Instances` running fastest."""
    leaf = copies.leaf
    total = math.prod(leaf.counts)
    # Copy n of nested `Instances` is the copy unravel(n)_l of level l.
    place = np.unravel_index(np.arange(total), leaf.counts)
    tree = unfreeze(Frozen(tree) if leaf.frozen else tree)

    def own(x: Any) -> Any:
        if not is_per_copy(x):
            return None
        return x.array if len(leaf.counts) == 1 else x.array[place[x.level]]

    varying = jax.tree.map(own, tree, is_leaf=is_per_copy)
    shared = jax.tree.map(lambda x: None if is_per_copy(x) else x, tree, is_leaf=is_per_copy)
    return LeafStack(varying, shared, copies.first + jnp.arange(total, dtype=jnp.int32))
