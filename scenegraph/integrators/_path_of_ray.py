"""All random paths of one ray as one function: a loop over what paths meet, in one kernel."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Int, Scalar, UInt32, Vector
from ..flat import FlatScene, Instance, opacity_at, with_own_view
from ..numerics import as_type, dot, safe_normalise
from ..rays import Hit, Irradiance, Ray
from ..shaders import AbstractMaterial, albedo_of
from ..shapes import fragment_hit
from ..visibility import nearest_on_line, OnLine, passing_of_line, thin_hits
from ._along_ray import with_color
from ._by_kind import of_surface
from ._emitters import (
    Emitters,
    escaped_light,
    fixed_samples,
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
    parts: int  # of a shape, at most
    albedo: bool  # whether it is asked for


class PathScene(NamedTuple):
    """What all rays share."""

    scene: FlatScene
    emitters: Emitters
    masks: MasksByOwner | None  # opacities of meshes that are shaders


# Surfaces that a path passes without being scattered; then it ends.
MOST_PASSES = 64
# Bounces from which on Russian roulette ends paths, and the least chance that one goes on.
_ROULETTE_FROM, _LEAST_CHANCE = 3, 0.05
# Counters of random numbers: that of the camera, and how many a hit has.
_CAMERA, COUNTERS = 2**31 - 1, 2


class PathSums(NamedTuple):
    """Sums over the samples of a ray."""

    rgb: Color
    square: Color  # of the colours' squares
    hits: Scalar  # of samples that hit something
    t: Scalar
    normal: Vector
    albedo: Color
    point: Vector
    cut: Int[Array, ""]  # paths that passed too many surfaces


class PathState(NamedTuple):
    """A path on its way."""

    sample: Int[Array, ""]
    event: Int[Array, ""]  # how many surfaces it has met
    bounce: Int[Array, ""]  # how often it was scattered
    origin: Vector
    direction: Vector
    near: Scalar
    passed: Int[Array, ""]  # the surface that it passed last; -1 for none
    throughput: Color
    density: Scalar  # by solid angle, of its direction; zero where no lamp was sampled for it
    sees_background: Bool[Array, ""]
    radiance: Color


def camera_ray(ray: Ray, words: UInt32[Array, "2"], sample: Array) -> tuple[Vector, Vector]:
    """Returns origin and direction of a random line through a pixel."""
    x, y, *_ = uniform_numbers(words, sample, _CAMERA, ray.near.dtype) - 0.5
    move = lambda sides: x * sides[0] + y * sides[1]
    return ray.origin + move(ray.d_origin), ray.direction + move(ray.d_direction)


def paths_of_ray(shared: PathScene, row: tuple, how: PathOptions) -> PathSums:
    """Follows all paths of a ray, one after the other.

    A turn of the loop is one surface that a path meets; where a path ends, the next one begins, so
    that rays of a packet need not wait for each other.
    """
    ray, words = row
    zero, none = jnp.zeros_like(ray.near), jnp.zeros_like(ray.origin)
    number = jnp.zeros((), jnp.int32)
    sums = PathSums(none, none, zero, zero, none, none, none, number)
    # A ray that ends where it begins, of no pixel, meets nothing.
    first = jnp.where(ray.far <= ray.near, how.samples, 0)

    def turn(carry: tuple[PathState, PathSums]) -> tuple[PathState, PathSums]:
        state, sums = carry
        state, sums, ends = _advance(shared, ray, words, state, sums, how)
        square = state.radiance**2
        sums = sums._replace(
            rgb=sums.rgb + jnp.where(ends, state.radiance, 0),
            square=sums.square + jnp.where(ends, square, 0),
        )
        fresh = _begin(ray, words, state.sample + 1)
        return jax.tree.map(lambda x, y: jnp.where(ends, x, y), fresh, state), sums

    start = _begin(ray, words, first.astype(jnp.int32)), sums
    goes_on = lambda carry: carry[0].sample < how.samples
    return jax.lax.while_loop(goes_on, turn, start)[1]


def _begin(ray: Ray, words: UInt32[Array, "2"], sample: Int[Array, ""]) -> PathState:
    """Returns a path at the camera."""
    origin, direction = camera_ray(ray, words, sample)
    zero, black = jnp.zeros((), jnp.int32), jnp.zeros_like(ray.origin)
    none, density = zero - 1, jnp.zeros_like(ray.near)
    back = jnp.zeros((), bool)
    return PathState(
        sample, zero, zero, origin, direction, ray.near, none, black + 1, density, back, black
    )


def line_of(state: PathState, ray: Ray) -> Ray:
    """Returns the next line of a path: that of the camera ends with its ray."""
    still = jnp.zeros_like(ray.d_origin)
    view = safe_normalise(state.direction)
    far = jnp.where(state.bounce > 0, jnp.inf, ray.far)
    return Ray(state.origin, state.direction, view, still, still, state.near, far)


def _advance(
    shared: PathScene,
    ray: Ray,
    words: UInt32[Array, "2"],
    state: PathState,
    sums: PathSums,
    how: PathOptions,
) -> tuple[PathState, PathSums, Bool[Array, ""]]:
    """Follows a path to the next surface; returns also whether it ends."""
    scene, emitters, masks = shared
    dtype = ray.near.dtype
    line = line_of(state, ray)
    used = state.sample < how.samples
    found = nearest_on_line(scene, line, state.passed, used, parts=how.parts)
    is_hit = jnp.isfinite(found.t)
    # With a camera's density of zero, lamps count in full.
    is_first = state.bounce == 0
    sky = escaped_light(scene, emitters, line, state.density, state.sees_background)
    # What a camera sees behind everything, whoever calls an integrator adds.
    sky = jnp.where(is_hit | is_first, 0, sky)

    hit, opacity, number = hit_of(shared, line, found, how.parts)
    counter = COUNTERS * state.event
    chance, *light_numbers = uniform_numbers(words, state.sample, counter, dtype)
    *surface_numbers, survival = uniform_numbers(words, state.sample, counter + 1, dtype)
    passes = is_hit & (chance >= opacity)
    lands = is_hit & ~passes
    is_last = state.bounce > how.bounces

    lit, visible, way = _light_at(
        shared, (hit, line.origin), number, jnp.stack(light_numbers), lands & ~is_last & used
    )
    emitted = mis_weight(state.density, lamp_density(emitters, number, state.origin, hit))
    row = hit, line.view, lit, way, jnp.stack(surface_numbers)
    scattered = of_surface(
        partial(scatter_at, row=row, albedo=how.albedo), scene.shaders, scene.shaders_at, number
    )
    radiance = jnp.where(lands, emitted * scattered.color, sky)
    state = state._replace(radiance=state.radiance + state.throughput * radiance)
    sums = _note_first(sums, lands & is_first & used, hit, scattered.albedo)

    throughput = state.throughput * scattered.weight
    goes_on = lands & scattered.goes_on & ~is_last & jnp.any(throughput > 0)
    if how.roulette:
        chance = jnp.clip(jnp.max(throughput), _LEAST_CHANCE, 1)
        chance = jnp.where(state.bounce >= _ROULETTE_FROM, chance, 1)
        goes_on &= survival < chance
        throughput = throughput / chance
    cut = passes & (state.event - state.bounce >= MOST_PASSES)
    sums = sums._replace(cut=sums.cut + (cut & used))

    gap = rounding_of(hit, line.origin)
    side = jnp.where(dot(scattered.direction, hit.normal) < 0, -gap, gap)
    take = lambda x, y: jnp.where(lands, x, y)
    length = jnp.sqrt(jnp.maximum(dot(line.direction, line.direction), jnp.finfo(dtype).tiny))
    after = PathState(
        state.sample,
        state.event + 1,
        state.bounce + lands,
        take(hit.point + side * hit.normal, state.origin),
        take(scattered.direction, state.direction),
        take(jnp.zeros_like(gap), found.t + gap / length),
        take(jnp.full_like(number, -1), number),
        take(throughput, state.throughput),
        take(scattered.density, state.density),
        take(~scattered.is_diffuse, state.sees_background),
        state.radiance,
    )
    return after, sums, ~(goes_on | (passes & ~cut))


def _note_first(sums: PathSums, counts: Bool[Array, ""], hit: Hit, albedo: Color) -> PathSums:
    """Adds what a camera ray hits first."""
    add = lambda total, x: total + jnp.where(counts, x, 0)
    return sums._replace(
        hits=add(sums.hits, jnp.ones_like(hit.t)),
        t=add(sums.t, hit.t),
        normal=add(sums.normal, hit.normal),
        albedo=add(sums.albedo, albedo),
        point=add(sums.point, hit.point),
    )


# Relative to the size of coordinates: how far from a surface a path goes on.
_ROUNDINGS = 750


def rounding_of(hit: Hit, eye: Vector) -> Scalar:
    """Returns a length that is more than the rounding of a hit's point, seen from another one."""
    point, origin = jax.lax.stop_gradient((hit.point, eye))
    size = jnp.maximum(jnp.max(jnp.abs(point)), jnp.max(jnp.abs(point - origin)))
    return _ROUNDINGS * jnp.finfo(point.dtype).eps * size


def hit_of(
    shared: PathScene, line: Ray, found: OnLine, parts: int
) -> tuple[Hit, Scalar, Int[Array, ""]]:
    """Returns the hit on what a line meets, its opacity, and the surface's number."""
    scene = shared.scene
    code = jnp.maximum(found.code, 0)

    def on_shape() -> tuple[Hit, Scalar, Int[Array, ""]]:
        number, part = code // parts, code % parts
        meet = lambda instance: hit_on_line(instance, line, part)
        hit, opacity = of_surface(meet, scene.occluders, scene.occluders_at, number)
        return hit, opacity, number

    def on_mesh() -> tuple[Hit, Scalar, Int[Array, ""]]:
        assert scene.triangles is not None
        face = scene.triangles.take(jnp.maximum(found.face, 0))
        hit = fragment_hit(line, face.shape)
        hit = eqx.tree_at(lambda x: x.normal, hit, safe_normalise(hit.normal))
        hit = as_type(hit, line.near.dtype)
        opacity = face.opacity
        if shared.masks is not None:
            opacity = opacity * opacity_by_mask(shared.masks, hit, line.view, face.owner)
        return hit, opacity, face.owner

    if scene.triangles is None:
        return on_shape()
    if not scene.occluders:
        return on_mesh()

    def with_white() -> tuple[Hit, Scalar, Int[Array, ""]]:
        hit, opacity, number = on_shape()
        return *with_color(hit, opacity), number

    return jax.lax.cond(found.face >= 0, on_mesh, with_white)


def hit_on_line(instance: Instance, line: Ray, part: Int[Array, ""]) -> tuple[Hit, Scalar]:
    """Returns the hit of a line on a part of a shape, and the opacity there."""
    hits = thin_hits(instance, line)
    is_it = jnp.arange(hits.t.shape[0]) == part
    pick = lambda x: jnp.sum(jnp.where(is_it.reshape(-1, *(1,) * (x.ndim - 1)), x, 0), axis=0)
    hit = jax.tree.map(pick, hits)
    return hit, opacity_at(instance.node.opacity, hit, line.view).astype(hit.t.dtype)


class Way(NamedTuple):
    """The direction to a lamp or panorama that was chosen at random."""

    direction: Vector
    irradiance: Color  # radiance times visibility over density
    density: Scalar


def _light_at(
    shared: PathScene,
    seen: tuple[Hit, Vector],
    number: Int[Array, ""],
    uniform: Float[Array, "3"],
    used: Bool[Array, ""],
) -> tuple[Irradiance, Float[Array, " lights"], Way | None]:
    """Returns the light at a hit: that of lights without a size, and one sample of the others.

    Also the visible parts of all of them, that of the sample at last.
    """
    (hit, _), emitters = seen, shared.emitters
    lines, irradiance, ambient = fixed_samples(emitters, hit)
    ways, ends, directions = [], [], []
    if lines is not None:
        ways, ends = list(jnp.unstack(lines.direction)), list(jnp.unstack(lines.far))
        directions = list(jnp.unstack(lines.view))
    sample = None
    if emitters.count:
        sample = sample_emitter(emitters, hit.point, uniform)
        ways.append(sample.way)
        ends.append(sample.far)
        directions.append(sample.direction)
    ambient = jnp.where(used, ambient, 0)
    if not ways:
        none = jnp.zeros((0, 3), hit.point.dtype)
        return Irradiance(none, none, ambient), jnp.zeros(0, hit.point.dtype), None
    visible = _visible_parts(shared, seen, number, (jnp.stack(ways), jnp.stack(ends)), used)
    count = irradiance.shape[0]
    lit = Irradiance(jnp.stack(directions)[:count], visible[:count, None] * irradiance, ambient)
    if sample is None:
        return lit, visible, None
    has_density = sample.density > 0
    density = jnp.where(has_density, sample.density, 1)
    share = jnp.where(has_density, visible[-1] / density, 0)
    return lit, visible, Way(sample.direction, share * sample.radiance, sample.density)


def _visible_parts(
    shared: PathScene,
    seen: tuple[Hit, Vector],
    number: Int[Array, ""],
    lines: tuple[Float[Array, "lights 3"], Float[Array, " lights"]],
    used: Bool[Array, ""],
) -> Float[Array, " lights"]:
    """Returns what arrives along shadow rays from a hit, one after the other."""
    (scene, emitters, _), (hit, eye), (ways, ends) = shared, seen, lines
    gap, still = rounding_of(hit, eye), jnp.zeros_like(hit.d_point)
    behind = emitters.behind[number]

    def see(i: Int[Array, ""], visible: Array) -> Array:
        way = ways[i]
        is_front = dot(way, hit.normal) >= 0
        origin = hit.point + jnp.where(is_front, gap, -gap) * hit.normal
        line = Ray(origin, way, way, still, still, jnp.zeros_like(gap), ends[i])
        # Of a convex shape nothing is in the way of light on its outer side.
        is_outside = is_front & (hit.side > 0)
        own = jnp.where(is_outside, number, -1)
        counts = used & (is_front | behind)
        passes = passing_of_line(scene, line, own, counts)
        return visible.at[i].set(jnp.where(counts, passes, 0))

    count = ways.shape[0]
    start = jnp.zeros(count, hit.point.dtype)
    if count == 1:
        return see(jnp.zeros((), jnp.int32), start)
    return jax.lax.fori_loop(0, count, see, start)


class Scattered(NamedTuple):
    """What a surface shows, and where a path goes on from it."""

    color: Color
    albedo: Color
    direction: Vector
    weight: Color
    density: Scalar
    is_diffuse: Bool[Array, ""]
    goes_on: Bool[Array, ""]  # the shader is a material


def scatter_at(instance: Instance, row: tuple, *, albedo: bool) -> Scattered:
    """Returns the colour of a surface in the light at a hit, and a random way to go on."""
    hit, view, lit, way, uniform = row
    shader = instance.node
    hit = with_own_view(instance, shader, hit, view)
    is_material = isinstance(shader, AbstractMaterial)
    if way is not None:
        share = jnp.ones_like(hit.t)
        if is_material:
            share = mis_weight(way.density, shader.density(hit, view, way.direction))
        lit = Irradiance(
            jnp.concatenate([lit.direction, way.direction[None]]),
            jnp.concatenate([lit.irradiance, (share * way.irradiance)[None]]),
            lit.ambient,
        )
    color = as_type(shader(hit, view, lit), hit.t.dtype)
    base = albedo_of(shader, hit, view).astype(color.dtype) if albedo else jnp.zeros_like(color)
    none = jnp.zeros_like(hit.point)
    zero, no = jnp.zeros_like(hit.t), jnp.zeros((), bool)
    if not is_material:
        return Scattered(color, base, none, none, zero, no, no)
    sample = as_type(shader.sample(hit, view, uniform), hit.t.dtype)
    density = jnp.where(sample.is_specular, 0, sample.density)
    return Scattered(
        color, base, sample.direction, sample.weight, density, sample.is_diffuse & ~no, ~no
    )
