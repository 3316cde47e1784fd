import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, Scalar
from ..rays import Hit, Illumination, Ray
from ..scene import Stage


def illuminate(
    stage: Stage, hit: Hit, number: Int[Array, ""], *, shadows: bool = True
) -> Illumination:
    """The light that arrives at a hit.

    **Arguments:**

    - `stage`: with the lights, and what stands in their way.
    - `hit`: on a surface.
    - `number`: of that surface.
    - `shadows`: whether anything is looked for that stands in the way. Keyword only argument.

    **Returns:**

    The illumination of the point.
    """
    none = jnp.zeros((0, 3), hit.point.dtype)
    directions, arriving, ambient = [none], [none], jnp.zeros(3, hit.point.dtype)
    for light in stage.lights:
        shine = light.shine(hit.point, hit.d_point)
        left = shine.irradiance
        if shadows and shine.irradiance.shape[0]:
            open_parts = jax.vmap(lambda ray: visibility(stage, ray, number))(shine.rays)
            left = open_parts[:, None] * left
        directions.append(shine.rays.view)
        arriving.append(left)
        ambient = ambient + shine.ambient
    return Illumination(jnp.concatenate(directions), jnp.concatenate(arriving), ambient)


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
