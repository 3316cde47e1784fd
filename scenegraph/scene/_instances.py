"""Nodes placed in the world, and stacks of those that have one structure."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, PyTree
from ..numerics import AbstractModule
from ..transforms import AffineMap, compose, invert
from ._contents import Leaf


class Instance(AbstractModule):
    """A leaf node of the tree, placed in the world.

    **Arguments:**

    - `node`: the node in its own frame.
    - `world_from_node`, `node_from_world`: the composed map of all transforms above the node, and
      its inverse; `None` without transforms.
    - `number`: the node's place among those of its kind in the scene.
    """

    node: Any
    world_from_node: AffineMap | None
    node_from_world: AffineMap | None
    number: Int[Array, ""]


class InstanceStack(AbstractModule):
    """Instances of one structure along a leading axis, so that many compile like one.

    **Arguments:**

    - `members`: an `Instance` whose arrays have the leading axis.
    """

    members: Instance

    @property
    def count(self) -> int:
        """The number of instances."""
        return self.members.number.shape[0]

    def map(self, function: Callable[..., PyTree], *stacked: PyTree) -> PyTree:
        """Applies a function to every instance.

        **Arguments:**

        - `function`: a function of one instance, and of one entry of each of `stacked`.
        - `stacked`: trees of arrays with a leading axis over the instances.

        **Returns:**

        The function's results, with a leading axis over the instances.
        """
        if self.count > 1:
            return eqx.filter_vmap(function)(self.members, *stacked)
        # An axis of length one would turn the matrix products of a network into batches of one.
        # (A reshape, because the gradient of an index would copy a large table.)
        drop = lambda x: x.reshape(x.shape[1:]) if eqx.is_array(x) else x
        first = jax.tree.map(drop, (self.members, *stacked))
        return jax.tree.map(lambda x: x[None], function(*first))

    def take(self, indices: Int[Array, " some"]) -> "InstanceStack":
        """Selects instances.

        **Arguments:**

        - `indices`: the numbers of the instances in this stack.

        **Returns:**

        A stack of these instances.
        """
        chosen = jax.tree.map(lambda x: x[indices] if eqx.is_array(x) else x, self.members)
        return InstanceStack(chosen)


def place(leaf: Leaf, number: int) -> Instance:
    """Composes the transforms above a leaf node, once for all rays."""
    if not leaf.transforms:
        return Instance(leaf.node, None, None, jnp.asarray(number))
    world_from_node = compose(leaf.transforms)
    return Instance(leaf.node, world_from_node, invert(world_from_node), jnp.asarray(number))


def stack_instances(instances: Sequence[Instance]) -> tuple[InstanceStack, ...]:
    """Stacks the instances of equal structure, in the order of each structure's first."""
    alike: dict[Any, list[Instance]] = {}
    for instance in instances:
        alike.setdefault(_structure(instance), []).append(instance)
    return tuple(InstanceStack(_stack(members)) for members in alike.values())


def _structure(instance: Instance) -> Any:
    arrays, rest = eqx.partition(instance, eqx.is_array)
    shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
    return jax.tree.structure(instance), shapes, tuple(jax.tree.leaves(rest))


def _stack(members: list[Instance]) -> Instance:
    if len(members) == 1:
        return jax.tree.map(lambda x: x[None] if eqx.is_array(x) else x, members[0])
    arrays = [eqx.filter(member, eqx.is_array) for member in members]
    rest = eqx.filter(members[0], eqx.is_array, inverse=True)
    return eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), rest)
