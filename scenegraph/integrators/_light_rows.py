"""The light on rows of hits: samples of all lights, shadows, and what panoramas are reflected."""

import functools

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..flat import FlatScene, InstanceStack
from ..lights import LightSample
from ..numerics import as_type
from ..rays import Hit, Irradiance, no_light, Ray
from ..rows import map_rows
from ._irradiance import mirrors, received
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
    parts = [_samples_of_stack(stack, hits, used) for stack in scene.lights]
    ambient = functools.reduce(jnp.add, [x[2] for x in parts])
    join = lambda *xs: xs[0] if len(xs) == 1 else jnp.concatenate(xs)
    rays, irradiance = jax.tree.map(join, *(x[:2] for x in parts))
    visible = None
    if shadows and irradiance.shape[0]:
        # The rays of all lights, one after the other: the search is compiled once for all.
        reaching = reaches_front(scene, rays.view, hits.normal, owners) & used
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (rays, reaching))
        again = jnp.tile(owners, irradiance.shape[0])
        visible = visible_past_all(scene, flat[0], again, flat[1]).reshape(reaching.shape)
    panoramas = [stack for stack in scene.lights if mirrors(stack)]
    counts = [x[1].shape[0] for x in parts[len(parts) - len(panoramas) :]]
    swap = lambda x: None if x is None else jnp.swapaxes(x, 0, 1)
    light = swap(rays.view), swap(irradiance), ambient, swap(visible)
    receive = lambda panoramas, row: received(panoramas, counts, *row)
    return map_rows(receive, panoramas, (*light, hits.normal, views), used=used)


def _samples_of_stack(
    stack: InstanceStack, hits: Hit, used: Bool[Array, " rows"]
) -> tuple[Ray, Array, Array]:
    """Returns shadow rays and irradiance, `rays rows`, and ambient light of a stack of lights."""

    def sample(lights: InstanceStack, row: tuple) -> LightSample:
        number, point, sides = row
        return as_type(lights.pick(number).node.sample(point, sides), point.dtype)

    # The rows of the first light, then those of the second one.
    count, rows = stack.count, used.shape[0]
    again = lambda x: jnp.tile(x, (count, *(1,) * (x.ndim - 1)))
    number = jnp.repeat(jnp.arange(count, dtype=jnp.int32), rows)
    where = number, *map(again, (hits.point, hits.d_point))
    samples = map_rows(sample, stack, where, used=again(used))
    apart = lambda x: x.reshape(count, rows, *x.shape[1:])
    # lights rows rays -> lights rays rows -> rays rows
    in_front = lambda x: jnp.swapaxes(apart(x), 1, 2).reshape(-1, rows, *x.shape[2:])
    rays, irradiance = jax.tree.map(in_front, (samples.rays, samples.irradiance))
    return rays, irradiance, jnp.sum(apart(samples.ambient), axis=0)
