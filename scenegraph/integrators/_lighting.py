import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, Scalar
from ..rays import Hit, Irradiance, no_light, Ray
from ..scene import Stage


def illuminate(
    stage: Stage, hit: Hit, number: Int[Array, ""], *, shadows: bool = True
) -> Irradiance:
    """The light that arrives at a hit.

    **Arguments:**

    - `stage`: with the lights, and what stands in their way.
    - `hit`: on a surface.
    - `number`: of that surface.
    - `shadows`: whether anything is looked for that stands in the way. Keyword only argument.

    **Returns:**

    The illumination of the point.
    """
    shines = [light.sample(hit.point, hit.d_point) for light in stage.lights]
    if not shines:
        return no_light(hit.point.dtype)
    rays, irradiance = jax.tree.map(
        lambda *parts: jnp.concatenate(parts), *[(shine.rays, shine.irradiance) for shine in shines]
    )
    if shadows and irradiance.shape[0]:
        # All rays at once: what stands in their way is then compiled once, not once a light.
        open_parts = jax.vmap(lambda ray: visibility(stage, ray, number))(rays)
        irradiance = open_parts[:, None] * irradiance
    ambient = sum((shine.ambient for shine in shines), jnp.zeros(3, hit.point.dtype))
    return Irradiance(rays.view, irradiance, ambient)


def visibility(stage: Stage, ray: Ray, number: Int[Array, ""]) -> Scalar:
    """The part of a shadow ray's cone that reaches the light.

    **Arguments:**

    - `stage`: what may stand in the way.
    - `ray`: from a surface to a light.
    - `number`: of the surface on which the ray begins.

    **Returns:**

    Between 0 and 1; edges of several shapes that meet in one pixel are taken as uncorrelated.
    """
    total = jnp.ones_like(ray.near)
    for casters in stage.casters:
        stopped = eqx.filter_vmap(lambda caster: caster.stops(ray, number))(casters)
        total = total * jnp.prod(1 - stopped)
    return total
