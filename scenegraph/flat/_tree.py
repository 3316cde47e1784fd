"""The tree of all surfaces but meshes: boxes in the world, by which rays find what they meet."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, UInt32
from ..numerics import order_by_place
from ..rows import map_rows
from ..transforms import Ball
from ._instances import InstanceStack, places_of_members, split_large
from ._surface_instances import world_ball


class SurfaceTree(NamedTuple):
    """A complete binary tree of boxes, without derivatives.

    The root is node 1, and the children of node `i` are nodes `2 i` and `2 i + 1`. The last half of
    the nodes are leaves, of which each holds one surface; those beyond the last surface have boxes
    that hold nothing, with their corners exchanged.
    """

    stacks: tuple[InstanceStack, ...]
    boxes: Float[Array, "nodes 6"]  # the least corner, and the greatest one
    kinds: Int[Array, " leaves"]  # the stack that a leaf's surface is in
    places: Int[Array, " leaves"]  # its place there
    # The number of the first leaf, which is how many there are: an operand of kernels, which are
    # then the same for any number of surfaces.
    first_leaf: UInt32[Array, ""]


# Relative to a ball's size and place: the rounding of its bounds.
_ROUNDING = 1e-5


def build_tree(stacks: Sequence[InstanceStack]) -> SurfaceTree | None:
    """Builds the tree of the members of stacks; `None` without any.

    Surfaces are sorted by place, so that those of a node are near to each other; those without
    bounds come last, where few nodes hold them.
    """
    if not stacks:
        return None
    stacks = tuple(split_large(jax.lax.stop_gradient(stacks)))
    each = [_balls_of(stack) for stack in stacks]
    balls = jax.tree.map(lambda *xs: jnp.concatenate(xs), *each)
    kinds, places = places_of_members(stacks)
    count = kinds.shape[0]

    center, radius = balls.center, balls.radius[:, None]
    margin = (1 + _ROUNDING) * radius + _ROUNDING * jnp.abs(center)
    boxes = jnp.concatenate([center - margin, center + margin], axis=1)
    if count > 1:
        order = order_by_place(center, jnp.all(jnp.isfinite(boxes), axis=1))
        boxes, kinds, places = boxes[order], kinds[order], places[order]
    boxes, first_leaf = boxes_above(boxes)
    pad = lambda x: jnp.pad(x, (0, boxes.shape[0] // 2 - count))
    return SurfaceTree(stacks, boxes, pad(kinds), pad(places), first_leaf)


def _balls_of(stack: InstanceStack) -> Ball:
    """Returns balls that hold the members of a stack, in the world."""
    if stack.count == 1:
        return stack.map(world_ball)
    ball_of = lambda shared, member: world_ball(eqx.combine(member, shared))
    return map_rows(ball_of, stack.shared, stack.members)


def boxes_above(
    leaves: Float[Array, "leaves 6"],
) -> tuple[Float[Array, "nodes 6"], UInt32[Array, ""]]:
    """Returns the boxes of a complete binary tree over those of leaves, and its first leaf."""
    count = leaves.shape[0]
    size = 1 << (count - 1).bit_length()
    nothing = jnp.asarray([jnp.inf] * 3 + [-jnp.inf] * 3, leaves.dtype)
    empty = jnp.broadcast_to(nothing, (size - count, 6))
    levels = [jnp.concatenate([leaves, empty])]
    while levels[0].shape[0] > 1:
        levels.insert(0, _joined(levels[0]))
    # Node 0 does not exist.
    return jnp.concatenate([nothing[None], *levels]), jnp.uint32(size)


def _joined(boxes: Float[Array, "nodes 6"]) -> Float[Array, "parents 6"]:
    """Returns the boxes about pairs of boxes; NaN where one has NaN, which counts as touched."""
    pairs = boxes.reshape(-1, 2, 6)
    lower = jnp.minimum(pairs[:, 0, :3], pairs[:, 1, :3])
    upper = jnp.maximum(pairs[:, 0, 3:], pairs[:, 1, 3:])
    return jnp.concatenate([lower, upper], axis=1)
