"""One surface that a path meets: what it is, the light that it shows, and where the path goes on.

Kernels find an event and follow it at once. Derivatives find it without any, and follow it again
with them: choices stay as they are, and so do directions, unless they are mirrored.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Int, Scalar, UInt32, Vector
from ..flat import FlatScene, Instance, opacity_at, with_own_view
from ..numerics import as_type, dot, safe_divide, safe_normalise
from ..rays import Hit, Irradiance, Ray
from ..shaders import AbstractMaterial, albedo_of
from ..shapes import fragment_hit
from ..visibility import nearest_on_line, OnLine, passing_of_line, thin_hits
from ._along_ray import with_color
from ._by_kind import of_surface
from ._emitters import (
    Emitters,
    EmitterSample,
    escaped_light,
    fixed_samples,
    FixedSamples,
    lamp_density,
    mis_weight,
    sample_emitter,
)
from ._masks import MasksByOwner, opacity_by_mask
from ._random import uniform_numbers


class PathOptions(NamedTuple):
    """The static numbers and choices of paths."""

    samples: int
    bounces: int
    roulette: bool
    interreflection: bool  # light is followed on after it was scattered below a surface
    parts: int  # of a shape, at most
    albedo: bool  # whether it is requested
    replays: bool = False  # paths are followed again, for derivatives
    # Lamps, or what they light, have derivatives by place: the light of lamps is then that of
    # points which move with them, in full, because scattered rays do not move with a lamp's edge.
    moves: bool = False


class PathScene(NamedTuple):
    """Scene, lights and masks, which all rays share."""

    scene: FlatScene
    emitters: Emitters
    masks: MasksByOwner | None  # opacities of meshes that are shaders


class PathState(NamedTuple):
    """A path on its way."""

    sample: Int[Array, "*rows"]
    event: Int[Array, "*rows"]  # how many surfaces it has met
    bounce: Int[Array, "*rows"]  # how often it was scattered
    origin: Float[Array, "*rows 3"]
    direction: Float[Array, "*rows 3"]
    near: Float[Array, "*rows"]
    passed: Int[Array, "*rows"]  # the surface that it passed last; -1 for none
    throughput: Float[Array, "*rows 3"]
    # By solid angle, of its direction; zero where no lamp was sampled for it.
    density: Float[Array, "*rows"]
    sees_background: Bool[Array, "*rows"]


class Event(NamedTuple):
    """Things that are found, and chosen at random, where a path meets something."""

    found: OnLine
    is_hit: Bool[Array, "*rows"]
    passes: Bool[Array, "*rows"]  # the surface lets the path pass
    visible: Float[Array, "*rows lights"]  # the part of each shadow ray that arrives
    way: EmitterSample | None  # to the lamp or panorama that was chosen; `None` without any


class Met(NamedTuple):
    """The surface of an event."""

    hit: Hit
    opacity: Scalar
    number: Int[Array, ""]


class Numbers(NamedTuple):
    """The random numbers of an event."""

    opacity: Scalar
    light: Vector
    surface: Vector
    survival: Scalar


class Seen(NamedTuple):
    """Values that an event adds to the picture."""

    radiance: Color
    # Of the first hits of cameras; zero elsewhere.
    share: Scalar
    t: Scalar
    normal: Vector
    albedo: Color
    point: Vector


# Surfaces that a path passes without being scattered; then it ends.
MOST_PASSES = 64
# Bounces from which on Russian roulette ends paths, and the least chance that one goes on.
_ROULETTE_FROM, _LEAST_CHANCE = 3, 0.05
# Counters of random numbers: that of the camera, and how many an event has.
_CAMERA, _COUNTERS = 2**31 - 1, 2


def begin_path(ray: Ray, words: UInt32[Array, "2"], sample: Int[Array, ""]) -> PathState:
    """Returns a path at the camera: on a random line through the pixel."""
    x, y, *_ = uniform_numbers(words, sample, _CAMERA, ray.near.dtype) - 0.5
    move = lambda sides: x * sides[0] + y * sides[1]
    origin = ray.origin + move(ray.d_origin)
    direction = ray.direction + move(ray.d_direction)
    zero, white = jnp.zeros((), jnp.int32), jnp.ones_like(ray.origin)
    none, no = jnp.zeros_like(ray.near), jnp.zeros((), bool)
    return PathState(sample, zero, zero, origin, direction, ray.near, zero - 1, white, none, no)


def line_of(state: PathState, ray: Ray) -> Ray:
    """Returns the next line of a path: that of the camera ends with its ray."""
    still = jnp.zeros_like(ray.d_origin)
    view = safe_normalise(state.direction)
    far = jnp.where(state.bounce > 0, jnp.inf, ray.far)
    return Ray(state.origin, state.direction, view, still, still, state.near, far)


def numbers_of(state: PathState, words: UInt32[Array, "2"]) -> Numbers:
    """Returns the random numbers of the next event of a path."""
    counter, dtype = _COUNTERS * state.event, state.near.dtype
    opacity, *light = uniform_numbers(words, state.sample, counter, dtype)
    *surface, survival = uniform_numbers(words, state.sample, counter + 1, dtype)
    return Numbers(opacity, jnp.stack(light), jnp.stack(surface), survival)


def find_event(
    shared: PathScene,
    state: PathState,
    line: Ray,
    numbers: Numbers,
    used: Bool[Array, ""],
    how: PathOptions,
) -> tuple[Event, Met, FixedSamples]:
    """Finds what a path meets, whether it passes, and which lights are seen from there."""
    found = nearest_on_line(shared.scene, line, state.passed, used, parts=how.parts)
    met = meet(shared, line, found, how.parts)
    is_hit = jnp.isfinite(found.t)
    passes = is_hit & (numbers.opacity >= met.opacity)
    is_lit = is_hit & ~passes & used & ~_is_last(state, how)
    fixed, way = fixed_samples(shared.emitters, met.hit), None
    if shared.emitters.total:
        way = sample_emitter(shared.emitters, met.hit.point, numbers.light)
    visible = _visible_parts(shared, met, line.origin, (fixed, way), is_lit)
    return Event(found, is_hit, passes, visible, way), met, fixed


def _is_last(state: PathState, how: PathOptions) -> Bool[Array, ""]:
    """Returns true if a path ends at what it meets next, of which emission alone counts."""
    is_last = state.bounce > how.bounces
    if how.interreflection:
        return is_last
    # What is scattered below a surface finds lamps and panoramas alone.
    return is_last | ((state.bounce > 0) & ~state.sees_background)


def follow(
    shared: PathScene,
    state: PathState,
    line: Ray,
    numbers: Numbers,
    event: Event,
    met: Met,
    fixed: FixedSamples,
    how: PathOptions,
) -> tuple[PathState, Seen, Bool[Array, ""], Bool[Array, ""]]:
    """Follows a path past an event. Returns also whether it ends, and whether it was cut."""
    (scene, emitters, _), (hit, opacity, number) = shared, met
    stop, dtype = jax.lax.stop_gradient, line.near.dtype
    passes, lands = event.passes, event.is_hit & ~event.passes
    is_first, is_last = state.bounce == 0, _is_last(state, how)
    sky = escaped_light(scene, emitters, line, state.density, state.sees_background)
    # What a camera sees behind everything, whoever calls an integrator adds.
    sky = jnp.where(event.is_hit | is_first, 0, sky)

    row = hit, line.view, _light_of(event, fixed, lands & ~is_last), numbers.surface
    scatter = partial(_scatter, row=row, way=event.way, visible=event.visible[-1:], how=how)
    scattered = of_surface(scatter, scene.shaders, scene.shaders_at, number)
    emitted = _emission_weight(emitters, state, hit, number, how)
    radiance = jnp.where(lands, emitted * scattered.color, sky)
    throughput = state.throughput
    if how.replays:
        # The chance of what was chosen is fixed: o / o, or (1 - o) / (1 - o).
        chance = jnp.where(passes, 1 - opacity, opacity)
        fixed_chance = jnp.where(event.is_hit & (chance > 0), stop(chance), 1)
        throughput *= jnp.where(event.is_hit, chance / fixed_chance, 1)
    counts = jnp.where(lands & is_first, 1.0, 0.0) * throughput[0]
    first = lambda x: jnp.where(lands & is_first, x, 0)
    seen = Seen(
        throughput * radiance,
        counts.astype(dtype),
        first(hit.t),
        first(hit.normal),
        first(scattered.albedo),
        first(hit.point),
    )

    after = throughput * scattered.weight
    goes_on = lands & scattered.goes_on & ~is_last & jnp.any(after > 0)
    if how.roulette:
        chance = jnp.clip(stop(jnp.max(after)), _LEAST_CHANCE, 1)
        chance = jnp.where(state.bounce >= _ROULETTE_FROM, chance, 1)
        goes_on &= numbers.survival < chance
        after = after / chance
    cut = passes & (state.event - state.bounce >= MOST_PASSES)

    gap = _rounding_of(hit, line.origin)
    side = jnp.where(dot(scattered.direction, hit.normal) < 0, -gap, gap)
    length = jnp.sqrt(jnp.maximum(dot(line.direction, line.direction), jnp.finfo(dtype).tiny))
    take = lambda x, y: jnp.where(lands, x, y)
    state = PathState(
        state.sample,
        state.event + 1,
        state.bounce + lands,
        take(hit.point + side * stop(hit.normal), state.origin),
        take(scattered.direction, state.direction),
        take(jnp.zeros_like(gap), stop(event.found.t + gap / length)),
        take(jnp.full_like(number, -1), number),
        take(after, throughput),
        take(scattered.density, state.density),
        take(~scattered.is_diffuse, state.sees_background),
    )
    return state, seen, ~(goes_on | (passes & ~cut)), cut


def _emission_weight(
    emitters: Emitters, state: PathState, hit: Hit, number: Int[Array, ""], how: PathOptions
) -> Scalar:
    """Returns what counts of the emission of a surface that a path meets: all if it is no lamp."""
    if not emitters.lamps:
        return jnp.ones_like(hit.t)
    if how.moves:
        is_found_twice = (emitters.kinds[number] >= 0) & (state.density > 0)
        return jnp.where(is_found_twice, 0.0, 1.0).astype(hit.t.dtype)
    other = lamp_density(emitters, number, state.origin, hit)
    return jax.lax.stop_gradient(mis_weight(state.density, other))


# Relative to the size of coordinates: how far from a surface a path goes on.
_ROUNDINGS = 750


def _rounding_of(hit: Hit, eye: Vector) -> Scalar:
    """Returns a length that is more than the rounding of a hit's point, seen from another one."""
    point, origin = jax.lax.stop_gradient((hit.point, eye))
    size = jnp.maximum(jnp.max(jnp.abs(point)), jnp.max(jnp.abs(point - origin)))
    return _ROUNDINGS * jnp.finfo(point.dtype).eps * size


def meet(shared: PathScene, line: Ray, found: OnLine, parts: int) -> Met:
    """Returns the hit on what a line meets, its opacity, and the surface's number."""
    scene = shared.scene
    code = jnp.maximum(found.code, 0)

    def on_shape() -> Met:
        number, part = code // parts, code % parts
        of_one = lambda instance: hit_on_line(instance, line, part)
        hit, opacity = of_surface(of_one, scene.occluders, scene.occluders_at, number)
        return Met(hit, opacity, number)

    def on_mesh() -> Met:
        assert scene.triangles is not None
        face = scene.triangles.take(jnp.maximum(found.face, 0))
        hit = fragment_hit(line, face.shape)
        hit = eqx.tree_at(lambda x: x.normal, hit, safe_normalise(hit.normal))
        hit, opacity = as_type((hit, face.opacity), line.near.dtype)
        if shared.masks is not None:
            opacity = opacity * opacity_by_mask(shared.masks, hit, line.view, face.owner)
        return Met(hit, opacity, face.owner)

    if scene.triangles is None:
        return on_shape()
    if not scene.occluders:
        return on_mesh()

    def with_white() -> Met:
        met = on_shape()
        return Met(*with_color(met.hit, met.opacity), met.number)

    return jax.lax.cond(found.face >= 0, on_mesh, with_white)


def hit_on_line(instance: Instance, line: Ray, part: Int[Array, ""]) -> tuple[Hit, Scalar]:
    """Returns the hit of a line on a part of a shape, and the opacity there."""
    hits = thin_hits(instance, line)
    is_it = jnp.arange(hits.t.shape[0]) == part
    pick = lambda x: jnp.sum(jnp.where(is_it.reshape(-1, *(1,) * (x.ndim - 1)), x, 0), axis=0)
    hit = jax.tree.map(pick, hits)
    return hit, opacity_at(instance.node.opacity, hit, line.view).astype(hit.t.dtype)


def _visible_parts(
    shared: PathScene,
    met: Met,
    eye: Vector,
    lights: tuple[FixedSamples, EmitterSample | None],
    used: Bool[Array, ""],
) -> Float[Array, " lights"]:
    """Returns what arrives along shadow rays from a hit, one after the other; that chosen last."""
    (fixed, chosen), hit = lights, met.hit
    count = fixed.far.shape[0]
    ways, ends = [fixed.way[i] for i in range(count)], [fixed.far[i] for i in range(count)]
    if chosen is not None:
        ways.append(chosen.way)
        ends.append(chosen.far)
    start = jnp.zeros(len(ways), hit.point.dtype)
    if not ways:
        return start
    all_ways, all_ends = jnp.stack(ways), jnp.stack(ends)
    gap, still = _rounding_of(hit, eye), jnp.zeros_like(hit.d_point)
    behind = shared.emitters.behind[met.number]

    def see(i: Int[Array, ""], visible: Array) -> Array:
        way = all_ways[i]
        is_front = dot(way, hit.normal) >= 0
        aside = jnp.where(is_front, gap, -gap) * hit.normal
        # A ray that has an end ends there: one beside it would meet a round lamp before.
        way = jnp.where(jnp.isfinite(all_ends[i]), way - aside, way)
        origin = hit.point + aside
        line = Ray(origin, way, way, still, still, jnp.zeros_like(gap), all_ends[i])
        # Of a convex shape nothing is in the way of light on its outer side.
        own = jnp.where(is_front & (hit.side > 0), met.number, -1)
        counts = used & (is_front | behind)
        passes = passing_of_line(shared.scene, line, own, counts)
        return visible.at[i].set(jnp.where(counts, passes, 0))

    if len(ways) == 1:
        return see(jnp.zeros((), jnp.int32), start)
    return jax.lax.fori_loop(0, len(ways), see, start)


def _light_of(event: Event, fixed: FixedSamples, is_lit: Bool[Array, ""]) -> Irradiance:
    """Returns the light of all lights without a size."""
    visible = event.visible[: fixed.irradiance.shape[0], None]
    ambient = jnp.where(is_lit, fixed.ambient, 0)
    return Irradiance(fixed.direction, visible * fixed.irradiance, ambient)


class _Scattered(NamedTuple):
    """The light that a surface shows, and the way on which a path goes on from it."""

    color: Color
    albedo: Color
    direction: Vector
    weight: Color
    density: Scalar
    is_diffuse: Bool[Array, ""]
    goes_on: Bool[Array, ""]  # the shader is a material


def _scatter(
    instance: Instance,
    *,
    row: tuple,
    way: EmitterSample | None,
    visible: Float[Array, "1"],
    how: PathOptions,
) -> _Scattered:
    """Returns the colour of a surface in the light at a hit, and a random way to go on."""
    (hit, view, lit, uniform), shader, stop = row, instance.node, jax.lax.stop_gradient
    hit = with_own_view(instance, shader, hit, view)
    is_material, dtype = isinstance(shader, AbstractMaterial), hit.t.dtype
    from_lamp = jnp.zeros_like(hit.point)
    if way is not None:
        share = jnp.ones_like(hit.t)
        if is_material:
            share = mis_weight(way.density, shader.density(hit, view, way.direction))
            if how.moves:
                share = jnp.where(way.is_lamp, 1, share)
        # E = L w V / p
        arrives = safe_divide(stop(share) * visible[0], way.density)
        light = arrives * way.radiance
        if is_material:
            # Not of its colour, which may have highlights where light is mirrored.
            from_lamp = as_type(shader.scatter(hit, view, way.direction), dtype) * light
        else:
            directions = jnp.concatenate([lit.direction, way.direction[None]])
            irradiance = jnp.concatenate([lit.irradiance, light[None]])
            lit = Irradiance(directions, irradiance, lit.ambient)
    color = as_type(shader(hit, view, lit), dtype) + from_lamp
    base = albedo_of(shader, hit, view).astype(dtype) if how.albedo else jnp.zeros_like(color)
    none, zero, no = jnp.zeros_like(hit.point), jnp.zeros_like(hit.t), jnp.zeros((), bool)
    if not is_material:
        return _Scattered(color, base, none, none, zero, no, no)
    sample = as_type(shader.sample(hit, view, uniform), dtype)
    is_specular = sample.is_specular | no
    direction, weight = sample.direction, sample.weight
    if how.replays:
        # A direction that was chosen stays, with its density; one that is mirrored turns.
        direction = jnp.where(is_specular, direction, stop(direction))
        scattered = as_type(shader.scatter(hit, view, stop(sample.direction)), dtype)
        kept = safe_divide(scattered, jnp.broadcast_to(stop(sample.density), scattered.shape))
        weight = jnp.where(is_specular, weight, kept)
    density = stop(jnp.where(is_specular, 0, sample.density))
    return _Scattered(color, base, direction, weight, density, sample.is_diffuse | no, ~no)
