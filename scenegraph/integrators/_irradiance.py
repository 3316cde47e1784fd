import jax
import jax.numpy as jnp

from .._typing import Array, Int, Scalar
from ..lights import LightSample
from ..rays import Hit, Irradiance, no_light, Ray
from ..scene import FlatScene, occlusion


def irradiance_at(
    scene: FlatScene, hit: Hit, number: Int[Array, ""], *, shadows: bool = True
) -> Irradiance:
    """Returns the light that arrives at a hit on the surface of a number, shadows included."""
    if not scene.lights:
        return no_light(hit.point.dtype)
    samples = [
        _merge(stack.map(lambda light: light.node.sample(hit.point, hit.d_point)))
        for stack in scene.lights
    ]
    rays, irradiance = jax.tree.map(
        lambda *parts: jnp.concatenate(parts), *[(x.rays, x.irradiance) for x in samples]
    )
    if shadows and irradiance.shape[0]:
        # All shadow rays at once: the occluders are then compiled once, not once a light.
        visible = jax.vmap(lambda ray: visibility(scene, ray, number))(rays)
        irradiance = visible[:, None] * irradiance
    return Irradiance(rays.view, irradiance, sum(x.ambient for x in samples))


def _merge(samples: LightSample) -> LightSample:
    """Joins the samples of a stack of lights, which have an axis over lights and one over rays."""
    join = lambda x: x.reshape(-1, *x.shape[2:])
    rays, irradiance = jax.tree.map(join, (samples.rays, samples.irradiance))
    return LightSample(rays, irradiance, jnp.sum(samples.ambient, axis=0))


def visibility(scene: FlatScene, ray: Ray, number: Int[Array, ""]) -> Scalar:
    """Returns the fraction of a shadow ray's cone that reaches the light.

    The ray begins on the surface of a number. Edges of several shapes that meet in one pixel count
    as uncorrelated: `prod(1 - occlusion)`.
    """
    total = jnp.ones_like(ray.near)
    for stack in scene.occluders:
        stopped = stack.map(lambda occluder: occlusion(occluder, ray, number))
        total = total * jnp.prod(1 - stopped)
    return total
