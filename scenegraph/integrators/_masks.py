"""Opacities of meshes that are shaders: computed at hits, where searches knew means over faces."""

from collections.abc import Sequence

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Vector
from ..flat import Instance, InstanceStack, opacity_at
from ..rays import Hit
from ._by_kind import map_by_kind


def mask_opacities(
    masks: Sequence[InstanceStack],
    hits: Hit,
    views: Float[Array, "rows 3"],
    owners: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    *,
    total: int,
) -> Float[Array, " rows"]:
    """Returns the opacities of the meshes that rows hit; one where they are no shaders.

    `total` is the number of surfaces.
    """
    ones = jnp.ones_like(hits.t)
    if not masks:
        return ones
    numbers = jnp.concatenate([stack.members.number for stack in masks])
    masked = used & jnp.any(owners[:, None] == numbers, axis=1)

    def read(instance: Instance, row: tuple[Hit, Vector]) -> Array:
        return opacity_at(instance.node, *row)

    found = map_by_kind(read, masks, owners, masked, (hits, views), total=total)
    return jnp.where(masked, found, ones)
