"""Shadows in scenes of many things: the fraction of shadow rays that arrives."""

import math
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..flat import FlatScene, occlusion
from ..numerics import safe_divide, safe_norm
from ..rays import Ray
from ..rows import map_rows
from ..rowwise import map_blocks
from ..shaders import asks_for_light_behind
from ..visibility import find_occluders, INVISIBLE, transmission
from ._by_kind import map_by_kind
from ._irradiance import visibility
from ._mesh_layers import mesh_transmission


class Shading(NamedTuple):
    """The static numbers and choices of shading layers."""

    layers: int
    occluders: int
    shadows: bool
    normal: bool


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
    scene: FlatScene, rays: Ray, own: Array, used: Array, how: Shading
) -> tuple[Float[Array, " rows"], Int[Array, " rows"]]:
    """Returns the fraction of shadow rays that arrives, past shapes and meshes."""
    visible, missed = _visible(scene, rays, own, used, occluders=how.occluders)
    if scene.triangles is None:
        return visible, missed
    past = past_footprint(rays, are_meshes(scene)[own])
    passed, faces = mesh_transmission(scene, past, used, occluders=how.occluders)
    return visible * passed, missed + faces


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


# Up to so many occluders, all are differentiated, and none is looked for.
_FEW = 8


@eqx.filter_custom_jvp
def _visible(
    scene: FlatScene,
    rays: Ray,
    own: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    *,
    occluders: int,
) -> tuple[Float[Array, " rows"], Int[Array, " rows"]]:
    """Returns the fraction of shadow rays that arrives, and the numbers of occluders left out.

    All occluders count; derivatives are those of the strongest.
    """
    visible, count = transmission(scene, rays, own, used)
    return visible, jnp.maximum(count - occluders, 0)


@_visible.def_jvp
def _visible_jvp(primals: tuple, tangents: tuple, *, occluders: int) -> tuple:
    scene, rays, own, used = primals
    if sum(stack.count for stack in scene.occluders) <= min(occluders, _FEW):
        see = lambda scene, row: visibility(scene, *row)
        every = lambda scene, rays: map_rows(see, scene, (rays, own))
        visible, change = eqx.filter_jvp(every, primals[:2], tangents[:2])
        return (visible, jnp.zeros(visible.shape, jnp.int32)), (change, None)
    found = find_occluders(*jax.lax.stop_gradient((scene, rays)), own, used, occluders)
    ranking = jax.lax.stop_gradient(found)
    missed = jnp.where(ranking.rest < 1 - INVISIBLE, jnp.maximum(ranking.total - occluders, 0), 0)

    ranks = jnp.minimum(jnp.max(jnp.where(used, ranking.total, 0)), occluders)

    def product(scene: FlatScene, rays: Ray) -> Float[Array, " rows"]:
        stop = partial(_stopped, total=scene.cuts.shape[0])
        stopped = map_blocks(stop, (scene.occluders, rays, own), ranking.codes, ranks)
        # prod over all of (1 - stopped): `rest` is the factor of the weaker ones, a constant.
        return ranking.rest * math.prod(1 - x for x in stopped)

    visible, change = eqx.filter_jvp(product, primals[:2], tangents[:2])
    return (visible, missed), (change, None)


def _stopped(shared: tuple, numbers: Int[Array, " rows"], total: int) -> Float[Array, " rows"]:
    """Returns what one occluder of each row stops; nothing without one."""
    occluders, *rows = shared
    stop = lambda instance, row: occlusion(instance, *row)
    some, there = jnp.maximum(numbers, 0), numbers >= 0
    return map_by_kind(stop, occluders, some, there, tuple(rows), total=total)
