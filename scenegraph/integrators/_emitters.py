"""Emitters of light, as random paths use them: lamps, panoramas, and lights without a size."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Int, Scalar, Vector
from ..flat import FlatScene, Instance, InstanceStack, of_member, switch
from ..lights import (
    AbstractSizedLight,
    panorama_density,
    panorama_radiance,
    PanoramaTable,
    PreparedEnvironment,
    sample_panorama,
    tabulate_panorama,
)
from ..numerics import as_type, safe_normalise
from ..rays import Hit, Ray
from ..scene import Sky
from ..shaders import asks_for_light_behind


class Emitters(NamedTuple):
    """The lights of a scene, as paths use them."""

    fixed: tuple[InstanceStack, ...]  # lights of which every sample is taken
    lamps: tuple[InstanceStack, ...]  # of those that follow, one is chosen at random
    panoramas: tuple[PanoramaTable, ...]
    sky: PanoramaTable | None  # the background, if that is a panorama
    # By the surface's number: the stack of `lamps` and the place there; -1 for no lamp.
    kinds: Int[Array, " surfaces"]
    places: Int[Array, " surfaces"]
    behind: Bool[Array, " surfaces"]  # whether light from behind counts

    @property
    def total(self) -> int:
        """The number of lamps and panoramas."""
        return sum(stack.count for stack in self.lamps) + len(self.panoramas)


class EmitterSample(NamedTuple):
    """A random point of a lamp or a panorama."""

    way: Vector  # to the lamp, or a unit vector
    far: Scalar  # the end of the shadow ray, in `t`
    direction: Vector  # a unit vector
    radiance: Color
    density: Scalar  # by solid angle, of all lamps and panoramas together
    is_lamp: Bool[Array, ""]
    number: Int[Array, ""]  # among lamps, and panoramas after them


class FixedSamples(NamedTuple):
    """Shadow rays of lights of which every sample is taken, and the light along them."""

    way: Float[Array, "lights 3"]
    far: Float[Array, " lights"]  # the rays' ends, in `t`
    direction: Float[Array, "lights 3"]
    irradiance: Float[Array, "lights 3"]
    ambient: Color


def gather_emitters(scene: FlatScene) -> Emitters:
    """Sorts the lights of a scene, and computes the chances of panoramas' texels."""
    fixed, lamps, panoramas = [], [], []
    ranks = []  # of stacks of lights, among the lamps
    for stack in scene.lights:
        ranks.append(len(lamps))
        node = stack.members.node
        if isinstance(node, PreparedEnvironment) and node.texels is not None:
            members = [jax.tree.map(lambda x, i=i: x[i], stack.members) for i in range(stack.count)]
            panoramas += [_table_of(stack.join(member).node) for member in members]
        elif isinstance(node, AbstractSizedLight):
            lamps.append(stack)
        else:
            fixed.append(stack)
    sky, background = None, scene.background
    if isinstance(background, Sky):
        sky = tabulate_panorama(background.light.texels, background.light.frames)
    total = scene.cuts.shape[0]
    behind = jnp.zeros(total, bool)
    for stack in scene.shaders:
        if asks_for_light_behind(stack.shared.node):
            behind = behind.at[stack.members.number].set(True)
    kinds = places = jnp.full(total, -1, jnp.int32)
    if scene.lamps is not None:
        # The bodies of lamps are the last surfaces.
        bodies = scene.lamps.kinds.shape[0]
        kinds = kinds.at[total - bodies :].set(jnp.asarray(ranks, jnp.int32)[scene.lamps.kinds])
        places = places.at[total - bodies :].set(scene.lamps.places)
    return Emitters(tuple(fixed), tuple(lamps), tuple(panoramas), sky, kinds, places, behind)


def _table_of(light: PreparedEnvironment) -> PanoramaTable:
    assert light.texels is not None
    return tabulate_panorama(light.texels, light.frames)


def sample_emitter(emitters: Emitters, point: Vector, uniform: Float[Array, "3"]) -> EmitterSample:
    """Chooses one of the lamps and panoramas, and a point of it; there must be one."""
    count = emitters.total
    number = jnp.minimum((uniform[0] * count).astype(jnp.int32), count - 1)

    def of_panorama(table: PanoramaTable) -> EmitterSample:
        light = as_type(sample_panorama(table, uniform[1:]), point.dtype)
        return _to_panorama(emitters, light.direction, light.radiance, light.density, number)

    return _of_number(emitters, number, point, uniform, of_panorama)


def sample_again(
    emitters: Emitters, point: Vector, uniform: Float[Array, "3"], known: EmitterSample
) -> EmitterSample:
    """Returns what was sampled as seen from a point that moves: points of lamps move with these."""

    def of_panorama(table: PanoramaTable) -> EmitterSample:
        radiance = as_type(panorama_radiance(table, known.direction), point.dtype)
        density = emitters.total * known.density
        return _to_panorama(emitters, known.direction, radiance, density, known.number)

    return _of_number(emitters, known.number, point, uniform, of_panorama)


def _of_number(
    emitters: Emitters,
    number: Int[Array, ""],
    point: Vector,
    uniform: Float[Array, "3"],
    of_panorama: Callable[[PanoramaTable], EmitterSample],
) -> EmitterSample:
    """Returns the sample of a lamp or a panorama of a number."""
    branches: list[Callable[[Array], EmitterSample]] = []
    kinds: list[int] = []
    places: list[int] = []

    def of_lamp(stack: InstanceStack, place: Array) -> EmitterSample:
        light = as_type(stack.pick(place).node.sample_point(point, uniform[1:]), point.dtype)
        way, far = light.position - point, jnp.asarray(1 - _GAP, point.dtype)
        density = light.density / emitters.total
        yes = jnp.ones((), bool)
        return EmitterSample(way, far, safe_normalise(way), light.radiance, density, yes, number)

    for kind, stack in enumerate(emitters.lamps):
        branches.append(partial(of_lamp, stack))
        kinds += [kind] * stack.count
        places += range(stack.count)
    for table in emitters.panoramas:
        kinds.append(len(branches))
        places.append(0)
        branches.append(lambda _, table=table: of_panorama(table))
    if len(kinds) == 1:
        return branches[0](jnp.zeros((), jnp.int32))
    tables = (jnp.asarray(x, jnp.int32) for x in (kinds, places))
    kind, place = (x[number] for x in tables)
    return switch(kind, branches, place)


def _to_panorama(
    emitters: Emitters, direction: Vector, radiance: Color, density: Scalar, number: Array
) -> EmitterSample:
    far, no = jnp.full((), jnp.inf, direction.dtype), jnp.zeros((), bool)
    return EmitterSample(direction, far, direction, radiance, density / emitters.total, no, number)


# Shadow rays end before the lamp's own body by this part of their length.
_GAP = 1e-3


def lamp_density(emitters: Emitters, number: Int[Array, ""], point: Vector, hit: Hit) -> Scalar:
    """Computes the density with which `sample_emitter` chooses a hit on a lamp; 0 on others."""
    if not emitters.lamps:
        return jnp.zeros_like(hit.t)
    kind = emitters.kinds[number]

    def density(light: Instance) -> Scalar:
        value = light.node.density(point, hit.point, hit.normal)
        return jnp.asarray(value, hit.t.dtype)

    of_lamp = of_member(density, emitters.lamps, jnp.maximum(kind, 0), emitters.places[number])
    return jnp.where(kind >= 0, of_lamp / emitters.total, 0)


def escaped_light(
    scene: FlatScene, emitters: Emitters, ray: Ray, density: Scalar, sees_background: Array
) -> Color:
    """Returns the light that a ray sees which nothing stops.

    `density` is that with which its direction was chosen; zero where no lamp could be sampled for
    it. Panoramas are weighted against `sample_emitter` by the power heuristic.
    """
    total, direction = jnp.zeros_like(ray.direction), safe_normalise(ray.direction)
    for table in emitters.panoramas:
        chosen = panorama_density(table, direction) / emitters.total
        weight = jax.lax.stop_gradient(mis_weight(density, chosen))
        total += weight * panorama_radiance(table, direction)
    if emitters.panoramas:
        return total
    if emitters.sky is not None:
        behind = panorama_radiance(emitters.sky, direction)
    else:
        behind = jnp.asarray(scene.background(ray), ray.direction.dtype)
    return jnp.where(sees_background, behind, 0)


def mis_weight(density: Scalar, other: Scalar) -> Scalar:
    """Returns the power heuristic's weight of a density; one where it is zero, as is no other."""
    # w = p^2 / (p^2 + q^2)
    has_density = density > 0
    ratio = other / jnp.where(has_density, density, 1)
    return jnp.where(has_density, 1 / (1 + ratio**2), 1)


def fixed_samples(emitters: Emitters, hit: Hit) -> FixedSamples:
    """Returns the shadow rays of lights of which every sample is taken, and their light."""
    dtype, still = hit.point.dtype, jnp.zeros_like(hit.d_point)
    sample = lambda light: as_type(light.node.sample(hit.point, still), dtype)
    samples = [stack.map(sample) for stack in emitters.fixed]
    if not samples:
        none = jnp.zeros((0, 3), dtype)
        return FixedSamples(none, jnp.zeros(0, dtype), none, none, jnp.zeros(3, dtype))
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    join = lambda *xs: jnp.concatenate(list(map(flat, xs)))
    rays, irradiance = jax.tree.map(join, *((x.rays, x.irradiance) for x in samples))
    ambient = sum((jnp.sum(x.ambient, axis=0) for x in samples), jnp.zeros(3, dtype))
    return FixedSamples(rays.direction, rays.far, rays.view, irradiance, ambient)
