"""Reflection and refraction: secondary cones, from what is met along them to colours."""

import functools
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Int, PyTree, Scalar, Vector
from ..compositing import composite_rows
from ..flat import FlatScene, hit_on_part, Instance, InstanceStack
from ..numerics import dot, safe_norm, safe_normalise, safe_sqrt, tangents
from ..rays import batched_jvp, Hit, pixel_jvp, Ray
from ..rows import list_true, map_rows
from ..shaders import AbstractReflectiveMaterial, SecondaryRays
from ..shapes import AbstractSmoothShape, fragment_hit
from ..transforms import rotate
from ..visibility import count_parts
from ._by_kind import map_by_kind
from ._irradiance import mirrors
from ._listed import find_rows, hits_on_rows, RowsOfLayers, shade_rows, take_layers, take_rows
from ._shadows import Shading


class Cones(NamedTuple):
    """Secondary rays of rows, along a second axis, and what becomes of the light along them."""

    rays: Ray
    weight: Float[Array, "rows cones 3"]
    roughness: Float[Array, "rows cones"]
    lamps: Float[Array, "rows cones"]  # the part of lamps' emission that they show
    starts: Int[Array, "rows cones"]  # the surface on whose outside they start; -1 for none


def shows_surroundings(scene: FlatScene) -> bool:
    """Returns true if shaders of a scene send secondary rays."""
    return any(map(_is_reflective, scene.shaders))


def _is_reflective(stack: InstanceStack) -> bool:
    return isinstance(stack.members.node, AbstractReflectiveMaterial)


def secondary_light(
    scene: FlatScene, rays: Ray, rows: RowsOfLayers, how: Shading
) -> tuple[Float[Array, "rays layers 3"], Int[Array, " rays"]]:
    """Computes what layers show of their surroundings.

    Returns also how many layers of each ray had no space, or saw what had none.
    """
    count = rays.near.shape[0]
    wanted = rows.needed & _reflective_surfaces(scene)[rows.owners]
    # Space for one such layer on every ray, and for some more.
    listed = list_true(wanted, count + count // 4)
    used = listed.places >= 0
    cones = _cones_of_rows(scene, rays, rows, listed.places)
    light, lost = _light_along(scene, cones, used, how)
    rgb = jnp.sum(cones.weight * light, axis=1)
    ranks = listed.ranks.reshape(how.layers, -1).T
    missed = ranks >= used.shape[0]
    shown = rgb, jnp.any(lost, axis=1).astype(jnp.int32)
    rgb, lost = map_rows(take_layers, shown, jnp.where(missed, -1, ranks))
    return rgb, jnp.sum(missed + lost, axis=1, dtype=jnp.int32)


def _reflective_surfaces(scene: FlatScene) -> Bool[Array, " surfaces"]:
    """Returns which surfaces, by their numbers, have shaders that send secondary rays."""
    reflective = jnp.zeros(scene.cuts.shape[0], bool)
    for stack in filter(_is_reflective, scene.shaders):
        reflective = reflective.at[stack.members.number].set(True)
    return reflective


def _light_along(
    scene: FlatScene, cones: Cones, used: Bool[Array, " rows"], how: Shading
) -> tuple[Float[Array, "rows cones 3"], Bool[Array, "rows cones"]]:
    """Computes the radiance along cones, and of which some had no space."""
    shape, count = cones.roughness.shape, cones.roughness.size
    flat = jax.tree.map(lambda x: x.reshape(count, *x.shape[2:]), cones)
    start = _Wave(
        flat.rays,
        jnp.repeat(used, shape[1]) & _exist(flat.rays),
        jnp.ones_like(flat.weight),
        jnp.arange(count, dtype=jnp.int32),
        flat.roughness,
        flat.lamps,
        flat.starts,
    )
    state = start, jnp.zeros_like(flat.weight), jnp.zeros(count, bool)
    if how.bounces == 0:
        light = _surroundings(scene, start.rays, start.roughness)
        return light.reshape(*shape, 3), state[2].reshape(shape)
    how = how._replace(fields=())
    for bounce in range(how.bounces):
        # Traced once for all bounces.
        is_last = jnp.asarray(bounce == how.bounces - 1)
        state = _follow(state, is_last, scene, how, shape[1])
    _, light, missed = state
    return light.reshape(*shape, 3), missed.reshape(shape)


class _Wave(NamedTuple):
    """Rays that are followed at once, and what they contribute to."""

    rays: Ray
    used: Bool[Array, " rays"]
    throughput: Float[Array, "rays 3"]
    slots: Int[Array, " rays"]  # the first cone that a ray goes back to
    roughness: Float[Array, " rays"]
    lamps: Float[Array, " rays"]
    starts: Int[Array, " rays"]


@eqx.filter_jit
def _follow(
    state: tuple[_Wave, Array, Array],
    is_last: Bool[Array, ""],
    scene: FlatScene,
    how: Shading,
    cones: int,
) -> tuple[_Wave, Array, Array]:
    """Adds up what rays meet, and replaces them by those that start there."""
    wave, light, missed = state
    used = wave.used
    rays = eqx.tree_at(lambda x: x.far, wave.rays, jnp.where(used, wave.rays.far, wave.rays.near))
    rows, overflow = find_rows(scene, rays, how, wave.starts)
    layers = shade_rows(scene, rays, (rows, overflow), how, wave.lamps)
    radiance = composite_rows(layers, rays)
    # What passes all layers shows what is all around.
    behind = _surroundings(scene, rays, wave.roughness)
    arriving = radiance.rgb + (1 - radiance.alpha)[:, None] * behind
    seen = jnp.where(used[:, None], wave.throughput * arriving, 0)
    light = light.at[wave.slots].add(seen)
    following, lost = _next_wave(scene, rays, rows, wave, radiance.weights, cones)
    # The last ones are not followed.
    rest = following.throughput * _surroundings(scene, following.rays, following.roughness)
    ends = is_last & following.used
    light = light.at[following.slots].add(jnp.where(ends[:, None], rest, 0))
    missed = missed.at[wave.slots].max(used & ((overflow > 0) | lost))
    return following._replace(used=following.used & ~is_last), light, missed


def _next_wave(
    scene: FlatScene,
    rays: Ray,
    rows: RowsOfLayers,
    wave: _Wave,
    weights: Float[Array, "rays layers"],
    cones: int,
) -> tuple[_Wave, Bool[Array, " rays"]]:
    """Returns the secondary rays of layers, as many as rays before, and which rays lose some."""
    count = rays.near.shape[0]
    length = count // cones
    listed = list_true(rows.needed & _reflective_surfaces(scene)[rows.owners], length)
    used = listed.places >= 0
    place = jnp.maximum(listed.places, 0)
    ray, layer = place % count, place // count
    found = _cones_of_rows(scene, rays, rows, listed.places)
    share = wave.throughput[ray] * weights[ray, layer][:, None]
    slots = jnp.broadcast_to(wave.slots[ray][:, None], (length, cones))
    following = _Wave(
        found.rays,
        used[:, None] & _exist(found.rays),
        share[:, None] * found.weight,
        slots,
        found.roughness,
        found.lamps,
        found.starts,
    )
    join = lambda x: x.reshape(length * cones, *x.shape[2:])
    lost = jnp.any(listed.ranks.reshape(-1, count) >= length, axis=0)
    return jax.tree.map(join, following), lost


def _exist(rays: Ray) -> Bool[Array, "*rays"]:
    """Returns false for the cones that a hit has fewer than others, which lead nowhere."""
    return jnp.any(rays.direction != 0, axis=-1)


def _surroundings(
    scene: FlatScene, rays: Ray, roughness: Float[Array, " rays"]
) -> Float[Array, "rays 3"]:
    """Computes the radiance from all around: of panoramas among the lights, or the background."""
    panoramas = [stack for stack in scene.lights if mirrors(stack)]
    if not panoramas:
        return jax.vmap(scene.background)(rays).astype(rays.near.dtype)

    def one(panoramas: list[InstanceStack], row: tuple[Vector, Scalar]) -> Color:
        around = lambda light: light.node.mirror(*row)
        return functools.reduce(jnp.add, [jnp.sum(x.map(around), axis=0) for x in panoramas])

    return map_rows(one, panoramas, (rays.direction, roughness))


def _cones_of_rows(
    scene: FlatScene, rays: Ray, rows: RowsOfLayers, order: Int[Array, " rows"]
) -> Cones:
    """Computes the secondary rays of some layers; those of the number -1 have none."""
    used = order >= 0
    rays, layers = take_rows(rays, rows, order)
    hits, _ = hits_on_rows(scene, rays, layers, used)
    bends = _changes_of_normals(scene, rays, hits, layers, used)
    count = max(_count_cones(stack, rays, hits) for stack in filter(_is_reflective, scene.shaders))
    cones_of = partial(_cones_of_hit, count=count)
    shaders = scene.shaders, scene.shaders_at
    return map_by_kind(cones_of, *shaders, layers.owners, used, (rays, hits, bends))


def _count_cones(stack: InstanceStack, rays: Ray, hits: Hit) -> int:
    """Returns the number of secondary rays of a shader of a stack."""
    ask = lambda instance, hit, view: instance.node.secondary(hit, view).roughness
    first = lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
    row = jax.tree.map(first, (hits, rays.view))
    return eqx.filter_eval_shape(ask, stack.first(), *row).shape[0]


def _changes_of_normals(
    scene: FlatScene, rays: Ray, hits: Hit, layers: RowsOfLayers, used: Bool[Array, " rows"]
) -> Float[Array, "rows 2 3"]:
    """Computes derivatives of normals by the pixel: curved surfaces spread what they reflect."""
    on_mesh = jnp.zeros_like(used) if layers.sheets is None else layers.sheets.kind != 0
    bends = jnp.zeros_like(rays.d_direction)
    if scene.occluders:
        of_shape = partial(_bend_of_shape, parts=count_parts(scene))
        code = jnp.where(on_mesh, 0, jnp.maximum(layers.codes, 0))
        where = scene.occluders, scene.occluders_at, jnp.where(on_mesh, 0, layers.owners)
        bends += map_by_kind(of_shape, *where, used & ~on_mesh, (rays, hits, code))
    if layers.faces is None or scene.triangles is None:
        return bends

    def of_face(meshes: PyTree, row: tuple[Ray, Array]) -> Float[Array, "2 3"]:
        ray, face = row
        shape = meshes.take(face).shape
        normal = lambda *line: safe_normalise(fragment_hit(_along(ray, *line), shape).normal)
        return pixel_jvp(normal, ray)[1].T

    # Of a sheet, the face that covers most stands for all.
    face = layers.faces[:, 0]
    there = used & on_mesh & (face >= 0)
    return bends + map_rows(of_face, scene.triangles, (rays, face), used=there)


def _bend_of_shape(
    instance: Instance, row: tuple[Ray, Hit, Int[Array, ""]], *, parts: int
) -> Float[Array, "2 3"]:
    """Returns derivatives of the normal at a hit on a shape, by the pixel."""
    ray, hit, code = row
    shape, inverse = instance.node.shape, instance.node_from_world
    if not isinstance(shape, AbstractSmoothShape):
        normal = lambda *line: hit_on_part(instance, _along(ray, *line), code % parts)[0].normal
        return pixel_jvp(normal, ray)[1].T

    def normal_at(place: Vector) -> Vector:
        normal = shape.normal_at(place)
        # Normals are covectors: n' = A^-T n, of length one again.
        return normal if inverse is None else safe_normalise(rotate(inverse.matrix.T, normal))

    changes = jax.vmap(lambda side: jax.jvp(normal_at, (hit.place,), (side,))[1])(hit.d_place)
    # The hit's normal is turned to the eye.
    turned = dot(normal_at(hit.place), hit.normal) < 0
    return jnp.where(turned, -changes, changes).astype(ray.near.dtype)


def _along(ray: Ray, origin: Vector, direction: Vector) -> Ray:
    """Returns a ray along another line."""
    return eqx.tree_at(lambda x: (x.origin, x.direction), ray, (origin, direction))


# Cones begin so far behind a surface, beside the size of its coordinates and the footprint's size:
# the surface itself is then before them.
_ROUNDING, _NEAR = 4e-5, 1e-3
# The cosine to a normal below which a ray passes along a surface.
_GRAZING = 1e-2
# The longest side of what curvature makes of a footprint, at a distance of one.
_WIDEST = 1.0


def _cones_of_hit(
    instance: Instance, row: tuple[Ray, Hit, Float[Array, "2 3"]], *, count: int
) -> Cones:
    """Returns the secondary rays of one hit; none have weight for shaders that send none."""
    ray, hit, bend = row
    dtype = ray.near.dtype
    shader = instance.node
    if not isinstance(shader, AbstractReflectiveMaterial):
        none = jnp.zeros((count, 3), dtype)
        sides = jnp.zeros((count, 2, 3), dtype)
        zero = jnp.zeros(count, dtype)
        no_surface = jnp.full(count, -1, jnp.int32)
        return Cones(Ray(none, none, none, sides, sides, zero, zero), none, zero, zero, no_surface)
    view = safe_normalise(ray.direction)
    turn = lambda side: jax.jvp(safe_normalise, (ray.direction,), (side,))[1]
    d_view = jax.vmap(turn)(ray.d_direction)

    def secondary(normal: Vector, view: Vector) -> SecondaryRays:
        return shader.secondary(eqx.tree_at(lambda x: x.normal, hit, normal), view)

    found = secondary(hit.normal, view)
    direction_of = lambda *at: secondary(*at).direction
    changes = batched_jvp(direction_of, (hit.normal, view), (bend.T, d_view.T))[1]
    changes = jnp.moveaxis(changes, -1, 1)
    share = _seen_part(changes)
    sides = jax.vmap(_widened)(found.direction, share[..., None] * changes, found.spread)
    start = share[..., None] * hit.d_point
    size = jnp.max(jnp.abs(hit.point))
    gap = jax.lax.stop_gradient(_ROUNDING * size + _NEAR * safe_norm(hit.d_point.ravel()))
    more = count - found.roughness.shape[0]
    pad = lambda x: jnp.pad(x, ((0, more), *((0, 0),) * (x.ndim - 1)))
    direction, sides, start = pad(found.direction), pad(sides), pad(start)
    rays = Ray(
        hit.point + gap * direction,
        direction,
        direction,
        start + gap * sides,
        sides,
        jnp.zeros(count, dtype),
        jnp.full(count, jnp.inf, dtype),
    )
    rise = jax.vmap(dot, (0, None))(direction, hit.normal)
    # At an outline, rounding says which side is seen.
    grazes = (jnp.abs(dot(view, hit.normal)) < _GRAZING) & (jnp.abs(rise) < _GRAZING)
    outside = grazes | ((hit.side > 0) & (rise > 0))
    starts = jnp.where(outside, instance.number, -1).astype(jnp.int32)
    return Cones(rays, pad(found.weight), pad(found.roughness), pad(found.lamps), starts)


def _seen_part(changes: Float[Array, "cones 2 3"]) -> Float[Array, "cones 2"]:
    """Returns the part of a pixel's sides in which a curved surface turns no more than so far."""
    # At outlines, a pixel's derivatives stand for much less than a pixel.
    length = safe_norm(changes)
    return jnp.where(length > _WIDEST, _WIDEST / jnp.where(length > 0, length, 1), 1)


def _widened(direction: Vector, sides: Float[Array, "2 3"], spread: Scalar) -> Float[Array, "2 3"]:
    """Returns the sides of a footprint, widened by those of a square across a direction."""
    # In the frame of the first side, the squares of widths add: those of both boxes' variances.
    length = safe_norm(sides[0])
    along = jnp.where(length > 0, safe_normalise(sides[0]), tangents(direction)[0])
    across = jnp.cross(direction, along)
    place = jnp.stack([dot(sides[1], along), dot(sides[1], across)])
    sign = jnp.where(place[1] < 0, -1.0, 1.0)
    first = safe_sqrt(length**2 + spread**2) * along
    second = place[0] * along + sign * safe_sqrt(place[1] ** 2 + spread**2) * across
    return jnp.stack([first, second])
