"""Leaf nodes of one structure, stacked before they are placed in the world."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Int, PyTree
from ..numerics import AbstractModule, Frozen, is_frozen, unfreeze
from ..scene import is_per_copy, Leaf
from ..shaders import PreparedTexture
from ..transforms import AbstractTransform, compose, invert
from ._instances import Instance, InstanceStack, stacked


class LeafStack(AbstractModule):
    """Leaf nodes of one structure, in their own frames, along a leading axis."""

    # A node and the transforms above it: arrays of all members, and what all of them share.
    varying: tuple[Any, tuple[AbstractTransform, ...]]
    shared: tuple[Any, tuple[AbstractTransform, ...]]
    number: Int[Array, " members"]


# Stacked arrays by the identities of these, which are kept so that no others have them.
StackedArrays: TypeAlias = dict[tuple, tuple[list[Array], Array]]


def stack_leaves(
    leaves: Sequence[Leaf], known: StackedArrays | None = None
) -> tuple[LeafStack, ...]:
    """Stacks leaf nodes of equal structure, in the order of each structure's first.

    Arrays that are not traced are stacked on the host: many of them are then one operand. What is
    frozen takes no gradient, and is stacked with what is not. Arrays that are `known` to be stacked
    are not stacked again: a gradient would be taken apart, and added, for every array of every one.
    """
    known = {} if known is None else known
    alike: dict[Any, list[_Member]] = {}
    stacks: dict[Any, LeafStack] = {}
    number = 0
    for leaf in leaves:
        if leaf.counts:
            # The copies of an `Instances` have a stack of their own.
            stacks[number] = _of_copies(leaf, number)
        else:
            member = _member(leaf, number)
            stacks.setdefault(member.kind, None)  # type: ignore[arg-type]
            alike.setdefault(member.kind, []).append(member)
        number += math.prod(leaf.counts)
    return tuple(stack or _stack(alike[kind], known) for kind, stack in stacks.items())


def place_stack(stack: LeafStack) -> InstanceStack:
    """Composes the transforms above stacked leaf nodes, once for all rays."""
    (node, transforms), (shared, same) = stack.varying, stack.shared
    if not transforms:
        return stacked(Instance(node, None, None, stack.number), shared)
    forward = map_stack(compose, stack, (transforms, same))
    inverse = map_stack(invert, stack, (forward, None))
    return stacked(Instance(node, forward, inverse, stack.number), shared)


def map_stack(function: Any, stack: LeafStack, parts: tuple[PyTree, PyTree]) -> PyTree:
    """Maps a function over the members of a stack: of a varying and a shared part, joined."""
    varying, shared = parts
    whole = lambda member: function(eqx.combine(member, shared) if shared is not None else member)
    if stack.number.shape[0] > 1:
        return jax.vmap(whole)(varying)
    # One alone is computed as it is: an axis of length one is only put in front.
    drop = lambda x: x.reshape(x.shape[1:])
    return jax.tree.map(lambda x: x[None], whole(jax.tree.map(drop, varying)))


# Rows of a stack gather what differs between its members: so many numbers, but no picture.
_GATHERED = 2**10


class _Member(NamedTuple):
    """One leaf node, as its arrays and the rest."""

    kind: Any  # equal for nodes that can be stacked
    arrays: list[Array]
    frozen: tuple[bool, ...]  # for every array, whether it takes no gradient
    number: int


def _member(leaf: Leaf, number: int) -> _Member:
    leaves, structure = jax.tree.flatten((leaf.node, leaf.transforms))
    opened, frozen = _open_structure(structure)
    is_array = [eqx.is_array(x) for x in leaves]
    # Arrays are stacked if shape and dtype are equal; all else has to be equal itself.
    look = [(x.shape, x.dtype) if there else x for x, there in zip(leaves, is_array, strict=True)]
    marks = tuple(leaf.frozen or mark for mark in frozen)
    own = number if _has_large_texture(leaf.node, leaves) else None
    return _Member((opened, tuple(look), tuple(is_array), own), leaves, marks, number)


def _has_large_texture(node: Any, leaves: list[Any]) -> bool:
    """Returns true if a node has a texture that must not be gathered for every row of a stack."""
    if all(x.size <= _GATHERED for x in leaves if eqx.is_array(x)):
        return False
    is_texture = lambda x: isinstance(x, PreparedTexture)
    return any(map(is_texture, jax.tree.leaves(node, is_leaf=is_texture)))


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


def _stack(members: list[_Member], known: StackedArrays) -> LeafStack:
    structure, _, is_array, _ = members[0].kind
    varying, shared = [], []
    for place, there in enumerate(is_array):
        column = [member.arrays[place] for member in members]
        frozen = [member.frozen[place] for member in members]
        varying.append(_joined_once(column, frozen, known) if there else None)
        shared.append(None if there else column[0])
    numbers = _known(np.asarray([member.number for member in members], np.int32))
    build = functools.partial(jax.tree.unflatten, structure)
    return LeafStack(build(varying), build(shared), numbers)


def _known(numbers: np.ndarray) -> Array:
    """Returns an array that is no tracer in a traced function either.

    `map_rows` folds such constants: the surface on which a ray begins is then known.
    """
    with jax.ensure_compile_time_eval():
        return jax.device_put(numbers)


def _joined_once(arrays: list[Array], frozen: list[bool], known: StackedArrays) -> Array:
    key = *map(id, arrays), *frozen
    if key not in known:
        known[key] = arrays, _joined(arrays, frozen)
    return known[key][1]


def _joined(arrays: list[Array], frozen: list[bool]) -> Array:
    """Stacks arrays: on the host if all are there."""
    if any(isinstance(x, Tracer) for x in arrays):
        stop = lambda x, mark: jax.lax.stop_gradient(x) if mark else x
        if any(frozen) and not all(frozen):
            arrays = [stop(x, mark) for x, mark in zip(arrays, frozen, strict=True)]
        joined = arrays[0][None] if len(arrays) == 1 else jnp.stack(arrays)
        return stop(joined, all(frozen))
    return arrays[0][None] if len(arrays) == 1 else jnp.asarray(np.stack(arrays))


def _of_copies(leaf: Leaf, begin: int) -> LeafStack:
    """Stacks the copies of one leaf node, the innermost `Instances` running fastest."""
    total = math.prod(leaf.counts)
    # Copy n of nested `Instances` is the copy unravel(n)_l of level l.
    place = np.unravel_index(np.arange(total), leaf.counts)
    tree = (leaf.node, leaf.transforms)
    tree = unfreeze(Frozen(tree) if leaf.frozen else tree)

    def own(x: Any) -> Any:
        if not is_per_copy(x):
            return None
        return x.array if len(leaf.counts) == 1 else x.array[place[x.level]]

    varying = jax.tree.map(own, tree, is_leaf=is_per_copy)
    shared = jax.tree.map(lambda x: None if is_per_copy(x) else x, tree, is_leaf=is_per_copy)
    return LeafStack(varying, shared, begin + jnp.arange(total, dtype=jnp.int32))


def derive(leaves: Sequence[Leaf], node: Any) -> list[Leaf]:
    """Returns leaves with another node each: `node` is a function of the present one."""
    return [dataclasses.replace(leaf, node=node(leaf.node)) for leaf in leaves]
