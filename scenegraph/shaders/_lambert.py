from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import dot
from ..rays import Hit, Irradiance, no_light
from ._albedo import albedo_of
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting
from ._material import AbstractMaterial, ScatterSample
from ._sampling import cosine_direction, scatter_sample


class Lambert(AbstractMaterial):
    """A diffuse surface: albedo / pi, times irradiance, times the cosine of incidence.

    **Arguments:**

    - `albedo`: a shader or a colour: the part of the light that is scattered.
    """

    albedo: AbstractShader = eqx.field(converter=as_shader)

    needs_light: ClassVar[bool] = True
    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_reflecting(self, "albedo")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        # albedo / pi * sum of E_l max(n . l, 0); even radiance L from all sides integrates to pi L.
        return self.albedo(hit, view, lights) * (incident(hit, lights) / jnp.pi + lights.ambient)

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.albedo, hit, view)

    def scatter(self, hit: Hit, view: Vector, light: Vector) -> Color:
        # albedo / pi * max(n . l, 0)
        return self.albedo(hit, view, no_light(light.dtype)) * self.density(hit, view, light)

    def density(self, hit: Hit, view: Vector, light: Vector) -> Scalar:
        return jnp.maximum(dot(hit.normal, light), 0) / jnp.pi

    def sample(self, hit: Hit, view: Vector, uniform: Float[Array, "3"]) -> ScatterSample:
        light = cosine_direction(hit.normal, uniform[1:])
        scatter, density = self.scatter(hit, view, light), self.density(hit, view, light)
        return scatter_sample(light, scatter, density, jnp.ones((), bool))


def cosines(hit: Hit, lights: Irradiance) -> Float[Array, " lights"]:
    """Computes the cosines of incidence, `max(n . l, 0)`, one for each light."""
    return jnp.maximum(jax.vmap(dot, (0, None))(lights.direction, hit.normal), 0)


def incident(hit: Hit, lights: Irradiance) -> Color:
    """Computes the power per area that the surface receives."""
    return jnp.sum(cosines(hit, lights)[:, None] * lights.irradiance, axis=0)
