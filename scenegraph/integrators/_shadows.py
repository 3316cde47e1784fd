"""Shadows in scenes of many things: the fraction of shadow rays that arrives."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar
from ..flat import FlatScene, occlusion, Places, split_large, switch
from ..numerics import safe_divide, safe_norm
from ..rays import Ray
from ..shaders import asks_for_light_behind
from ..visibility import find_passing, next_surfaces, sum_over_pairs
from ._mesh_layers import mesh_transmission


class Shading(NamedTuple):
    """The static numbers and choices of shading layers."""

    layers: int
    shadows: bool
    fields: tuple[str, ...]  # of `Layers`, beside those that are always there
    bounces: int  # how often cones are reflected or refracted


def reaches_front(
    scene: FlatScene,
    ways: Float[Array, "lights *rows 3"],
    normals: Float[Array, "*rows 3"],
    own: Int[Array, "*rows"],
) -> Bool[Array, "lights *rows"]:
    """Returns false for light from behind surfaces that ignore it: it needs no shadow."""
    behind = jnp.zeros(scene.cuts.shape[0], bool)
    for stack in scene.shaders:
        if asks_for_light_behind(stack.shared.node):
            behind = behind.at[stack.members.number].set(True)
    return (jnp.sum(ways * normals, axis=-1) >= 0) | behind[own]


def visible_past_all(
    scene: FlatScene,
    rays: Ray,
    own: Int[Array, "rows *ends"],
    used: Bool[Array, " rows"],
) -> Float[Array, " rows"]:
    """Returns the fraction of shadow rays that arrive, past shapes and meshes."""
    visible = jnp.ones_like(rays.near)
    if scene.tree is not None:
        visible = _past_shapes(scene, rays, own, used)
    if scene.triangles is None:
        return visible
    begin = own if own.ndim == 1 else own[:, 0]
    past = past_footprint(rays, are_meshes(scene)[begin])
    return visible * mesh_transmission(scene, past, used)


# The part of a footprint's size within which a mesh is taken for the surface that a ray leaves.
_OWN = 0.25


def are_meshes(scene: FlatScene) -> Bool[Array, " surfaces"]:
    """Returns which surfaces, by their numbers, are meshes."""
    on_mesh = jnp.ones(scene.cuts.shape[0], bool)
    for stack in scene.occluders:
        on_mesh = on_mesh.at[stack.map(lambda instance: instance.number)].set(False)
    return on_mesh


def past_footprint(rays: Ray, on_mesh: Bool[Array, "*rows"]) -> Ray:
    """Begins shadow rays past the unevenness of small faces, which a pixel has a point of."""
    size = safe_norm(rays.d_origin.reshape(*rays.near.shape, -1))
    near = safe_divide(_OWN * size, safe_norm(rays.direction))
    # At most half of the way to a lamp.
    near = jnp.minimum(jax.lax.stop_gradient(near), rays.far / 2)
    near = jnp.where(on_mesh, jnp.maximum(rays.near, near), rays.near)
    return eqx.tree_at(lambda x: x.near, rays, near)


def _past_shapes(
    scene: FlatScene, rays: Ray, own: Int[Array, "rows *ends"], used: Bool[Array, " rows"]
) -> Float[Array, " rows"]:
    """Returns the fraction of shadow rays that arrives past shapes, `prod(1 - occlusion)`."""
    product, rest, closed = _passing(scene, rays, own, used)
    return product * jnp.where(closed > 0, jnp.where(closed > 1, 0, rest), 1)


@eqx.filter_custom_jvp
def _passing(
    scene: FlatScene, rays: Ray, own: Int[Array, "rows *ends"], used: Bool[Array, " rows"]
) -> tuple[Float[Array, " rows"], Float[Array, " rows"], Int[Array, " rows"]]:
    """Computes what passes surfaces that let any light pass, and what passes the others.

    The second is zero, but has derivatives. Returns also the number of these others.
    """
    product, closed = find_passing(scene, rays, own, used)
    return product, jnp.zeros_like(product), closed


@_passing.def_jvp
def _passing_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    scene, rays, own, used = primals
    # By this function again, so that second derivatives know how these values change.
    product, rest, closed = _passing(scene, rays, own, used)
    # What nothing stops does not change.
    used &= ~(product >= 1) | (closed > 0)
    sums = lambda scene, rays: _sum_changes(scene, rays, own, used)
    logarithm, by_rest = eqx.filter_jvp(sums, primals[:2], tangents[:2])[1] or (None, None)
    # d prod_i p_i = prod_i p_i sum_i d log p_i
    by_product = None if logarithm is None else product * logarithm
    return (product, rest, closed), (by_product, by_rest, None)


def _sum_changes(
    scene: FlatScene, rays: Ray, own: Int[Array, "rows *ends"], used: Bool[Array, " rows"]
) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    """Sums the logarithms of what surfaces let pass that let any, and what the others do."""
    tree = scene.tree
    assert tree is not None
    stacks, still = split_large(scene.occluders), jax.lax.stop_gradient((tree, rays))
    members = [None if stack.count == 1 else stack.members for stack in stacks]
    # What belongs to one surface alone belongs to all pairs, however large it is.
    shared = [stack.first() if stack.count == 1 else stack.shared for stack in stacks]
    (members, shared), static = eqx.partition((members, shared), eqx.is_array)

    def stop(row: tuple, leaf: tuple, shared: list) -> tuple[Scalar, Scalar]:
        stack, own = leaf
        whole = eqx.combine((list(own), shared), static)
        occlude = lambda *parts: lambda: occlusion(eqx.combine(*parts), *row)
        passes = 1 - switch(stack, list(map(occlude, *whole)))
        closed = passes <= 0
        return jnp.log(jnp.where(closed, 1, passes)), jnp.where(closed, passes, 0)

    operands, at = ((rays, own), tuple(members), shared), Places(tree.kinds, tree.places)
    return sum_over_pairs(stop, next_surfaces, *still, used, operands, at)
