"""The layers of one ray as one function, from the search to the colours; without derivatives."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..flat import (
    FlatScene,
    hit_on_part,
    Instance,
    InstanceStack,
    Places,
    shade,
    split_large,
    SurfaceTree,
)
from ..rays import Hit, Layers, Ray
from ..rows import as_operands, map_rows
from ..visibility import count_parts, find_layers_of_ray, needed_layers, transmission_of_ray
from ._irradiance import irradiance_at
from ._shadows import reaches_front, Shading


def layers_of_rays(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Finds the nearest layers of rays and shades them, ray by ray; the scene has no meshes."""
    along = partial(_layers_of_ray, how=how, parts=count_parts(scene))
    return map_rows(along, as_operands(scene.without_media()), rays)


def _layers_of_ray(scene: FlatScene, ray: Ray, *, how: Shading, parts: int) -> Layers:
    tree, occluders_at, shaders_at = scene.tree, scene.occluders_at, scene.shaders_at
    assert tree is not None and occluders_at is not None and shaders_at is not None
    used = ~(ray.far <= ray.near)
    found = find_layers_of_ray(tree, scene.cuts, ray, used, parts=parts, count=how.layers)
    needed, missed = needed_layers(found, scene.cuts, jnp.maximum(found.codes, 0) // parts)
    count = jnp.sum(needed, dtype=jnp.int32)

    def turn(state: tuple[Array, tuple]) -> tuple[Array, tuple]:
        k, layers = state
        code = jnp.maximum(found.codes[k], 0)
        number = code // parts
        meet = partial(hit_on_part, ray=ray, part=code % parts)
        hit, alpha = _of_surface(meet, scene.occluders, occluders_at, number)
        see = partial(_visible, scene, tree, own=number, hit=hit, used=k < count)
        lit = irradiance_at(scene, hit, number, ray.view, shadows=how.shadows, see=see)
        paint = lambda instance: shade(instance, instance.node, hit, ray.view, lit)
        rgb = _of_surface(paint, scene.shaders, shaders_at, number)
        one = hit.t, alpha, rgb, hit.normal if how.normal else None
        return k + 1, jax.tree.map(lambda layers, x: layers.at[k].set(x), layers, one)

    empty = jnp.zeros(how.layers, ray.near.dtype)
    wide = jnp.zeros((how.layers, 3), ray.near.dtype)
    start = jnp.zeros((), jnp.int32), (empty, empty, wide, wide if how.normal else None)
    _, (t, alpha, rgb, normal) = jax.lax.while_loop(lambda state: state[0] < count, turn, start)
    return Layers(t, alpha, rgb, missed, normal)


def _of_surface(
    function: Callable[[Instance], PyTree],
    stacks: Sequence[InstanceStack],
    at: Places,
    number: Int[Array, ""],
) -> PyTree:
    """Computes a function of the instance of a surface."""
    of_stack = lambda stack: lambda place: function(stack.pick(place))
    branches, place = list(map(of_stack, split_large(stacks))), at.places[number]
    if len(branches) == 1:
        return branches[0](place)
    return jax.lax.switch(at.kinds[number], branches, place)


def _visible(
    scene: FlatScene,
    tree: SurfaceTree,
    rays: Ray,
    *,
    own: Int[Array, ""],
    hit: Hit,
    used: Bool[Array, ""],
) -> Float[Array, " directions"]:
    """Returns the fractions of shadow rays that arrive, one ray after the other."""
    lit = used & reaches_front(scene, rays.view, hit.normal, own)

    def see(i: Int[Array, ""], visible: Array) -> Array:
        ray = jax.tree.map(lambda x: x[i], rays)
        return visible.at[i].set(transmission_of_ray(tree, ray, own, lit[i])[0])

    count = rays.near.shape[0]
    if count == 1:
        return see(jnp.zeros((), jnp.int32), jnp.ones_like(rays.near))
    return jax.lax.fori_loop(0, count, see, jnp.ones_like(rays.near))
