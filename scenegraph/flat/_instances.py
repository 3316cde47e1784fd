"""Nodes placed in the world, and stacks of those that have one structure."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Int, PyTree
from ..numerics import AbstractModule
from ..transforms import AffineMap
from ._look_up import look_up


# Members of more numbers are not looked up by rows, but stand alone.
_MOST_LOOKED_UP = 2**7


class Instance(AbstractModule):
    """A leaf node of the tree, placed in the world."""

    node: Any  # the node in its own frame
    # The composed map of all transforms above the node, and its inverse; `None` without any.
    world_from_node: AffineMap | None
    node_from_world: AffineMap | None
    number: Any  # its place among those of its kind: an integer array, or those of a stack


def stacked(members: Instance, shared: Any) -> "InstanceStack":
    """Returns a stack of instances whose nodes share some of their leaves."""
    nothing = jax.tree.map(lambda _: None, members)
    rest = eqx.tree_at(lambda x: x.node, nothing, shared, is_leaf=lambda x: x is None)
    return InstanceStack(members, rest)


class InstanceStack(AbstractModule):
    """Instances of one structure along a leading axis, so that many compile like one."""

    members: Instance  # an `Instance` whose arrays have the leading axis
    shared: Instance  # an `Instance` with what is the same for all members, and nothing else

    @property
    def count(self) -> int:
        """The number of instances."""
        return self.members.number.shape[0]

    def join(self, member: Instance) -> Instance:
        """Completes one of the `members` by what they share."""
        return eqx.combine(member, self.shared)

    def first(self) -> Instance:
        """Returns the first instance, or the only one."""
        # A reshape, because the gradient of an index would copy a large table.
        drop = lambda x: x.reshape(x.shape[1:]) if self.count == 1 else x[0]
        return self.join(jax.tree.map(drop, self.members))

    def at(self, place: Int[Array, ""]) -> Instance:
        """Returns the instance at a place."""
        how = {"keepdims": False, "allow_negative_indices": False}
        one = lambda x: jax.lax.dynamic_index_in_dim(x, place, **how)
        return self.join(jax.tree.map(one, self.members))

    def outline(self) -> tuple[Any, tuple]:
        """Returns the structure of one member, and its leaves, of arrays the shapes alone."""
        shape = lambda x, axes: jax.ShapeDtypeStruct(x.shape[axes:], x.dtype)
        outline = lambda x, axes: shape(x, axes) if isinstance(x, jax.Array | np.ndarray) else x
        whole = lambda tree, axes: jax.tree.map(lambda x: outline(x, axes), tree)
        leaves, structure = jax.tree.flatten(
            eqx.combine(whole(self.members, 1), whole(self.shared, 0))
        )
        return structure, tuple(leaves)

    def known_number(self) -> int | None:
        """Returns the number of the only instance, if it is known while rays are traced."""
        numbers = self.members.number
        if self.count > 1 or isinstance(numbers, Tracer):
            return None
        return int(np.asarray(numbers)[0])

    def pick(self, place: Int[Array, ""]) -> Instance:
        """Returns the instance at a place, or the only one."""
        return self.first() if self.count == 1 else self.at(place)

    def map(self, function: Callable[..., PyTree], *stacked: PyTree) -> PyTree:
        """Applies a function to every instance."""
        if self.count > 1:
            whole = lambda member, *rest: function(self.join(member), *rest)
            return eqx.filter_vmap(whole)(self.members, *stacked)
        # An axis of length one would turn the matrix products of a network into batches of one.
        drop = lambda x: x.reshape(x.shape[1:]) if eqx.is_array(x) else x
        return jax.tree.map(lambda x: x[None], function(self.first(), *jax.tree.map(drop, stacked)))

    def take(self, indices: Int[Array, "*some"]) -> "InstanceStack":
        """Selects instances."""
        members = jax.tree.map(lambda x: look_up(x, indices), self.members)
        return InstanceStack(members, self.shared)


def split_large(stacks: Sequence[InstanceStack]) -> list[InstanceStack]:
    """Returns stacks, of large members one for each.

    What a ray needs of a large array, such as the coefficients of its splines, is then computed
    once for all rays.
    """
    parts: list[InstanceStack] = []
    for stack in stacks:
        numbers = sum(x.size for x in jax.tree.leaves(stack.members))
        if stack.count == 1 or numbers <= _MOST_LOOKED_UP * stack.count:
            parts.append(stack)
            continue
        for place in range(stack.count):
            member = jax.tree.map(lambda x: x[place : place + 1], stack.members)  # noqa: B023
            parts.append(InstanceStack(member, stack.shared))
    return parts


def switch(kind: Int[Array, ""], branches: Sequence[Callable], *operands: PyTree) -> PyTree:
    """Computes one of several functions, as `jax.lax.switch` does, or the only one."""
    if len(branches) == 1:
        return branches[0](*operands)
    return jax.lax.switch(kind, branches, *operands)


def of_member(
    function: Callable[[Instance], PyTree],
    stacks: Sequence[InstanceStack],
    kind: Int[Array, ""],
    place: Int[Array, ""],
) -> PyTree:
    """Computes a function of the instance at a place of one of several stacks."""
    of_stack = lambda stack: lambda place: function(stack.pick(place))
    return switch(kind, list(map(of_stack, stacks)), place)


class Places(NamedTuple):
    """The places of surfaces in stacks, by their numbers or in another order."""

    kinds: Int[Array, " surfaces"]  # the stack
    places: Int[Array, " surfaces"]  # the place in it


def places_of_members(stacks: Sequence[InstanceStack]) -> Places:
    """Returns the places of all members of stacks, one stack after the other."""
    counts = [stack.count for stack in stacks]
    kinds = np.repeat(np.arange(len(stacks), dtype=np.int32), counts)
    places = np.concatenate([np.arange(count, dtype=np.int32) for count in counts])
    return Places(jnp.asarray(kinds), jnp.asarray(places))


def locate(stacks: Sequence[InstanceStack], total: int) -> Places:
    """Returns where the surfaces of all numbers below a total are; zeros for those of no stack."""
    if not stacks:
        return Places(*jnp.zeros((2, total), jnp.int32))
    numbers = jnp.concatenate([stack.members.number for stack in stacks])
    put = lambda x: jnp.zeros(total, x.dtype).at[numbers].set(x)
    return jax.tree.map(put, places_of_members(stacks))
