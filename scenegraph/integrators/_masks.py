"""Opacities of meshes that are shaders: computed at hits, where searches knew means over faces."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar, Vector
from ..flat import FlatScene, Instance, InstanceStack, locate, opacity_at, Places, split_large
from ..rays import Hit
from ._by_kind import map_by_kind


def mask_opacities(
    scene: FlatScene,
    hits: Hit,
    views: Float[Array, "rows 3"],
    owners: Int[Array, " rows"],
    used: Bool[Array, " rows"],
) -> Float[Array, " rows"]:
    """Returns the opacities of the meshes that rows hit; one where they are no shaders."""
    ones = jnp.ones_like(hits.t)
    if not scene.masks:
        return ones
    masks = masks_by_owner(scene)
    masked = used & masks.is_masked[owners]

    def read(instance: Instance, row: tuple[Hit, Vector]) -> Array:
        return opacity_at(instance.node, *row)

    found = map_by_kind(read, masks.stacks, masks.at, owners, masked, (hits, views))
    return jnp.where(masked, found, ones)


class MasksByOwner(NamedTuple):
    """Opacities that are shaders, and where those of meshes are, by the surface's number."""

    stacks: tuple[InstanceStack, ...]
    at: Places
    is_masked: Bool[Array, " surfaces"]


def masks_by_owner(scene: FlatScene) -> MasksByOwner:
    """Returns the opacities of a scene's meshes that are shaders."""
    stacks, total = tuple(split_large(scene.masks)), scene.cuts.shape[0]
    is_masked = jnp.zeros(total, bool)
    for stack in stacks:
        is_masked = is_masked.at[stack.members.number].set(True)
    return MasksByOwner(stacks, locate(stacks, total), is_masked)


def opacity_by_mask(masks: MasksByOwner, hit: Hit, view: Vector, owner: Int[Array, ""]) -> Scalar:
    """Returns the opacity of the mesh of a number at a hit; one where it is no shader."""
    of_stack = lambda stack: lambda place: opacity_at(stack.pick(place).node, hit, view)
    branches, (kinds, places) = list(map(of_stack, masks.stacks)), masks.at
    read = lambda: jax.lax.switch(kinds[owner], branches, places[owner])
    return jax.lax.cond(masks.is_masked[owner], read, lambda: jnp.ones_like(hit.t))
