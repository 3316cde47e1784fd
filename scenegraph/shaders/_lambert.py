from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..numerics import dot
from ..rays import Hit, Irradiance
from ._albedo import AbstractAlbedoShader, albedo_of
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting


class Lambert(AbstractAlbedoShader):
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


def cosines(hit: Hit, lights: Irradiance) -> Float[Array, " lights"]:
    """Computes the cosines of incidence, `max(n . l, 0)`, one for each light."""
    return jnp.maximum(jax.vmap(dot, (0, None))(lights.direction, hit.normal), 0)


def incident(hit: Hit, lights: Irradiance) -> Color:
    """Computes the power per area that the surface receives."""
    return jnp.sum(cosines(hit, lights)[:, None] * lights.irradiance, axis=0)
