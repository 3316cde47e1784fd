"""The light on rows of hits: samples of all lights, shadows, and what panoramas are reflected."""

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..flat import FlatScene, InstanceStack
from ..rays import Hit, Irradiance, no_light
from ..rows import map_rows
from ._irradiance import (
    join_samples,
    light_at_point,
    LightAtPoint,
    mirrors,
    received,
    shadow_ends,
)
from ._shadows import reaches_front, visible_past_all


def light_on_rows(
    scene: FlatScene,
    hits: Hit,
    views: Float[Array, "rows 3"],
    owners: Int[Array, " rows"],
    used: Bool[Array, " rows"],
    *,
    shadows: bool,
) -> Irradiance:
    """Returns the light on every row; that of rows that are not used is zero."""
    if not scene.lights:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (*used.shape, *x.shape)), no_light())
    light = join_samples([_light_of_stack(stack, hits, used) for stack in scene.lights])
    visible = None
    if shadows and light.irradiance.shape[0]:
        # The rays of all lights, one after the other: the search is compiled once for all.
        reaching = reaches_front(scene, light.rays.view, hits.normal, owners) & used
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (light.rays, reaching))
        ends = shadow_ends(light, owners)
        ends = ends.reshape(-1, *ends.shape[2:])
        visible = visible_past_all(scene, flat[0], ends, flat[1]).reshape(reaching.shape)
    panoramas = [stack for stack in scene.lights if mirrors(stack)]
    counts = [stack.count * _rays_of(stack) for stack in panoramas]
    swap = lambda x: jnp.swapaxes(x, 0, 1)
    seen = light.rays.view, light.irradiance, light.lamps, visible
    directions, irradiance, lamps, visible = jax.tree.map(swap, seen)
    rows = directions, irradiance, light.ambient, lamps, visible, hits.normal, views
    receive = lambda panoramas, row: received(panoramas, counts, *row)
    return map_rows(receive, panoramas, rows, used=used)


def _rays_of(stack: InstanceStack) -> int:
    """Returns the number of shadow rays to a light of a stack of panoramas."""
    return stack.members.node.irradiance.shape[1]


def _light_of_stack(stack: InstanceStack, hits: Hit, used: Bool[Array, " rows"]) -> LightAtPoint:
    """Computes the light of a stack of lights at hits, with axes over rays and rows."""

    def at_hit(lights: InstanceStack, row: tuple) -> LightAtPoint:
        number, *where = row
        return light_at_point(lights.pick(number), *where)

    # The rows of the first light, then those of the second one.
    count, rows = stack.count, used.shape[0]
    again = lambda x: jnp.tile(x, (count, *(1,) * (x.ndim - 1)))
    number = jnp.repeat(jnp.arange(count, dtype=jnp.int32), rows)
    where = number, *map(again, (hits.point, hits.d_point, hits.normal))
    samples = map_rows(at_hit, stack, where, used=again(used))
    apart = lambda x: x.reshape(count, rows, *x.shape[1:])
    # lights rows rays -> lights rays rows -> rays rows
    in_front = lambda x: jnp.swapaxes(apart(x), 1, 2).reshape(-1, rows, *x.shape[2:])
    ambient = jnp.sum(apart(samples.ambient), axis=0)
    return jax.tree.map(in_front, samples._replace(ambient=None))._replace(ambient=ambient)
