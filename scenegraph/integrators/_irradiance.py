import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Int, Scalar, Vector
from ..flat import FlatScene, Instance, InstanceStack, occlusion
from ..lights import AbstractEnvironment, AbstractLight, AbstractSizedLight
from ..numerics import (
    as_type,
    dot,
    matmul,
    polygon_irradiance,
    safe_divide,
    safe_norm,
    safe_normalise,
)
from ..rays import Hit, Irradiance, LampPolygons, no_light, Ray


def mirrors(stack: InstanceStack) -> bool:
    """Returns true for a stack of panoramas, which make no highlights of their own."""
    return isinstance(stack.members.node, AbstractEnvironment)


def irradiance_at(
    scene: FlatScene,
    hit: Hit,
    number: Int[Array, ""],
    view: Vector | None = None,
    *,
    shadows: bool = True,
    known: int | None = None,
    see: Callable[[Ray, Array], Float[Array, " directions"]] | None = None,
) -> Irradiance:
    """Returns the light that arrives at a hit on the surface of a number, shadows included.

    Panoramas are mirrored if the view is given. See `visibility` for `known`; `see` does the same
    for the shadow rays of all lights.
    """
    if not scene.lights:
        return no_light(hit.point.dtype)
    samples = [sample_stack(stack, hit) for stack in scene.lights]
    light = join_samples(samples)
    visible = None
    if shadows and light.irradiance.shape[0]:
        # All shadow rays at once: the occluders are then compiled once, not once a light.
        ends = shadow_ends(light, number)
        see = see or jax.vmap(lambda ray, ends: visibility(scene, ray, ends, known))
        visible = see(light.rays, ends)
    panoramas = [stack for stack in scene.lights if mirrors(stack)]
    counts = [x.irradiance.shape[0] for x in samples[len(samples) - len(panoramas) :]]
    seen = light.rays.view, light.irradiance, light.ambient, light.lamps, visible
    return received(panoramas, counts, *seen, hit.normal, view)


def received(
    panoramas: Sequence[InstanceStack],
    counts: Sequence[int],
    directions: Float[Array, "directions 3"],
    irradiance: Float[Array, "directions 3"],
    ambient: Color,
    lamps: LampPolygons | None,
    visible: Float[Array, " directions"] | None,
    normal: Vector,
    view: Vector | None,
) -> Irradiance:
    """Returns the light at a point, shadows included, from what lights send there without any.

    Panoramas also send light into the lobes of a normal and a view; `counts` are the numbers of
    directions of each stack of them. The directions of `lamps` come just before these.
    """
    around = sum(counts)
    if visible is not None:
        irradiance = visible[:, None] * irradiance
        if lamps is not None:
            end = len(visible) - around
            share = visible[end - len(lamps.radiance) : end]
            lamps = LampPolygons(lamps.corners, share[:, None] * lamps.radiance)
    if view is None or not panoramas:
        return Irradiance(directions, irradiance, ambient, lamps=lamps)
    # Panoramas are the last lights: theirs are the last directions.
    total, begin = jnp.zeros((), irradiance.dtype), directions.shape[0] - around
    for stack, count in zip(panoramas, counts, strict=True):
        light = stack.map(lambda x: x.node.reflect(normal, view))
        if visible is not None:
            own = slice(begin, begin + count)
            shape = light.shape[0], -1
            towards = directions[own].reshape(*shape, 3)
            share = jax.vmap(_visible_part, (0, 0, None))(
                towards, visible[own].reshape(shape), (normal, view)
            )
            light = share[:, None, None] * light
        total, begin = total + jnp.sum(light, axis=0), begin + count
    return Irradiance(directions, irradiance, ambient, total, around, lamps)


def _visible_part(
    directions: Float[Array, "samples 3"],
    visible: Float[Array, " samples"],
    seen: tuple[Vector, Vector],
) -> Scalar:
    """Returns the visible part of what lies around the mirrored view."""
    normal, view = seen
    view = safe_normalise(view)
    # v - 2 (n . v) n, with the view away from the eye
    mirrored = view - 2 * dot(normal, view) * normal
    # exp(k (cos - 1)) is about as wide as the samples are apart: k = 1 / their solid angle. Those
    # below the surface do not count.
    near = jnp.exp(directions.shape[0] / (4 * jnp.pi) * (matmul(directions, mirrored) - 1))
    weights = near * jnp.maximum(matmul(directions, normal), 0)
    return safe_divide(jnp.sum(weights * visible), jnp.sum(weights))


class LightAtPoint(NamedTuple):
    """The light of lights at a point, before shadows: that of `LightSample`, and of lamps.

    Of many points, these are the second axis.
    """

    rays: Ray
    irradiance: Float[Array, "lights *points 3"]
    ambient: Float[Array, "*points 3"]
    lamps: LampPolygons | None
    bodies: Int[Array, "lights *points"] | None  # surfaces of lamps; -1 for other lights


def light_at_point(
    instance: Instance, point: Vector, d_point: Float[Array, "2 3"], normal: Vector
) -> LightAtPoint:
    """Computes the light of one light at a point; of a lamp, of what is above the surface."""
    light: AbstractLight = instance.node
    sample = as_type(light.sample(point, d_point), point.dtype)
    if not isinstance(light, AbstractSizedLight):
        return LightAtPoint(sample.rays, sample.irradiance, sample.ambient, None, None)
    lamps = as_type(light.outlines(point), point.dtype)
    vectors = jax.vmap(polygon_irradiance, (None, 0))(normal, lamps.corners)
    lengths = safe_norm(vectors)
    # A lamp that is behind the surface lights that side.
    above = lengths > 0
    directions = jnp.where(above[:, None], jax.vmap(safe_normalise)(vectors), sample.rays.view)
    irradiance = jnp.where(above[:, None], lengths[:, None] * lamps.radiance, sample.irradiance)
    rays = eqx.tree_at(lambda x: x.view, sample.rays, directions)
    bodies = jnp.broadcast_to(instance.number, lengths.shape).astype(jnp.int32)
    return LightAtPoint(rays, irradiance, sample.ambient, lamps, bodies)


def sample_stack(stack: InstanceStack, hit: Hit) -> LightAtPoint:
    """Computes the light of a stack of lights at a hit, before shadows."""
    where = hit.point, hit.d_point, hit.normal
    samples = stack.map(lambda light: light_at_point(light, *where))
    # There is an axis over lights, and one over the rays of each.
    join = lambda x: x.reshape(-1, *x.shape[2:])
    ambient = jnp.sum(samples.ambient, axis=0)
    return jax.tree.map(join, samples._replace(ambient=None))._replace(ambient=ambient)


def join_samples(samples: Sequence[LightAtPoint]) -> LightAtPoint:
    """Joins the light of stacks of lights."""
    join = lambda *parts: parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    rays, irradiance = jax.tree.map(join, *((x.rays, x.irradiance) for x in samples))
    ambient = functools.reduce(jnp.add, (x.ambient for x in samples))
    lamps = [x.lamps for x in samples if x.lamps is not None]
    if not lamps:
        return LightAtPoint(rays, irradiance, ambient, None, None)
    none = lambda x: jnp.full(x.irradiance.shape[:-1], -1, jnp.int32)
    bodies = join(*(none(x) if x.bodies is None else x.bodies for x in samples))
    # Outlines of fewer corners repeat the last one.
    most = max(x.corners.shape[-2] for x in lamps)
    lamps = [LampPolygons(_with_corners(x.corners, most), x.radiance) for x in lamps]
    return LightAtPoint(rays, irradiance, ambient, jax.tree.map(join, *lamps), bodies)


def shadow_ends(light: LightAtPoint, number: Int[Array, "*points"]) -> Int[Array, "lights *_"]:
    """Returns the surfaces on which shadow rays begin, and of those to lamps also where they end.

    They begin on the surface of a number.
    """
    begin = jnp.broadcast_to(number, light.irradiance.shape[:-1])
    return begin if light.bodies is None else jnp.stack([begin, light.bodies], axis=-1)


def _with_corners(
    corners: Float[Array, "*lamps few 3"], most: int
) -> Float[Array, "*lamps many 3"]:
    """Returns outlines of more corners, the last of which repeats."""
    more = most - corners.shape[-2]
    if not more:
        return corners
    again = jnp.broadcast_to(corners[..., -1:, :], (*corners.shape[:-2], more, 3))
    return jnp.concatenate([corners, again], axis=-2)


def visibility(
    scene: FlatScene, ray: Ray, ends: Int[Array, "*ends"], known: int | None = None
) -> Scalar:
    """Returns the fraction of a shadow ray's cone that reaches the light.

    The ray begins and ends on the surfaces of some numbers. Edges of several shapes that meet in
    one pixel count as uncorrelated: `prod(1 - occlusion)`. If the number is `known` while rays are
    traced, nothing is computed of the shadow of a convex surface on itself, which it does not have.
    """
    # docs/surfaces.md, "Shadows": the product of 1 - opacity coverage over all occluders
    total = jnp.ones_like(ray.near)
    for stack in scene.occluders:
        convex = stack.shared.node.shape.is_convex
        if convex and known is not None and stack.known_number() == known:
            continue
        stopped = stack.map(lambda occluder: occlusion(occluder, ray, ends))
        total = total * jnp.prod(1 - stopped)
    return total
