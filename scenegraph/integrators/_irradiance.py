import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Int, Scalar, Vector
from ..flat import FlatScene, InstanceStack, occlusion
from ..lights import AbstractEnvironment, LightSample
from ..numerics import as_type, dot, matmul, safe_divide, safe_normalise
from ..rays import Hit, Irradiance, no_light, Ray


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
    see: Callable[[Ray], Float[Array, " directions"]] | None = None,
) -> Irradiance:
    """Returns the light that arrives at a hit on the surface of a number, shadows included.

    Panoramas are mirrored if the view is given. See `visibility` for `known`; `see` does the same
    for the shadow rays of all lights.
    """
    if not scene.lights:
        return no_light(hit.point.dtype)
    samples = sample_lights(scene, hit)
    rays, irradiance = jax.tree.map(
        lambda *parts: jnp.concatenate(parts), *[(x.rays, x.irradiance) for x in samples]
    )
    visible = None
    if shadows and irradiance.shape[0]:
        # All shadow rays at once: the occluders are then compiled once, not once a light.
        see = see or jax.vmap(lambda ray: visibility(scene, ray, number, known))
        visible = see(rays)
    panoramas = [stack for stack in scene.lights if mirrors(stack)]
    counts = [x.irradiance.shape[0] for x in samples[len(samples) - len(panoramas) :]]
    ambient = functools.reduce(jnp.add, (x.ambient for x in samples))
    light = rays.view, irradiance, ambient, visible
    return received(panoramas, counts, *light, hit.normal, view)


def received(
    panoramas: Sequence[InstanceStack],
    counts: Sequence[int],
    directions: Float[Array, "directions 3"],
    irradiance: Float[Array, "directions 3"],
    ambient: Color,
    visible: Float[Array, " directions"] | None,
    normal: Vector,
    view: Vector | None,
) -> Irradiance:
    """Returns the light at a point, shadows included, from what lights send there without any.

    Panoramas also send light into the lobes of a normal and a view; `counts` are the numbers of
    directions of each stack of them.
    """
    if visible is not None:
        irradiance = visible[:, None] * irradiance
    if view is None or not panoramas:
        return Irradiance(directions, irradiance, ambient)
    # Panoramas are the last lights: theirs are the last directions.
    total, begin = jnp.zeros((), irradiance.dtype), directions.shape[0] - sum(counts)
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
    return Irradiance(directions, irradiance, ambient, total, sum(counts))


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


def sample_lights(scene: FlatScene, hit: Hit) -> list[LightSample]:
    """Returns the light that would arrive at a hit without shadows, stack by stack of lights."""
    dtype = hit.point.dtype
    sample = lambda light: as_type(light.node.sample(hit.point, hit.d_point), dtype)
    return [_merge(stack.map(sample)) for stack in scene.lights]


def _merge(samples: LightSample) -> LightSample:
    """Joins the samples of a stack of lights, which have an axis over lights and one over rays."""
    join = lambda x: x.reshape(-1, *x.shape[2:])
    rays, irradiance = jax.tree.map(join, (samples.rays, samples.irradiance))
    return LightSample(rays, irradiance, jnp.sum(samples.ambient, axis=0))


def visibility(
    scene: FlatScene, ray: Ray, number: Int[Array, ""], known: int | None = None
) -> Scalar:
    """Returns the fraction of a shadow ray's cone that reaches the light.

    The ray begins on the surface of a number. Edges of several shapes that meet in one pixel count
    as uncorrelated: `prod(1 - occlusion)`. If the number is `known` while rays are traced, nothing
    is computed of the shadow of a convex surface on itself, which it does not have.
    """
    # docs/surfaces.md, "Shadows": the product of 1 - opacity coverage over all occluders
    total = jnp.ones_like(ray.near)
    for stack in scene.occluders:
        convex = stack.shared.node.shape.is_convex
        if convex and known is not None and stack.known_number() == known:
            continue
        stopped = stack.map(lambda occluder: occlusion(occluder, ray, number))
        total = total * jnp.prod(1 - stopped)
    return total
