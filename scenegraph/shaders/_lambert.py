from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Vector
from ..numerics import dot
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._convert import as_shader


class Lambert(AbstractShader):
    """A surface that scatters light evenly.

    Albedo over pi, times irradiance, times the cosine of the angle of incidence.

    **Arguments:**

    - `albedo`: a shader or a colour: the part of the light that is scattered.
    """

    albedo: AbstractShader = eqx.field(converter=as_shader)

    needs_light: ClassVar[bool] = True

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        return self.albedo(hit, view, lights) * (incident(hit, lights) / jnp.pi + lights.ambient)


def cosines(hit: Hit, lights: Irradiance) -> Float[Array, " lights"]:
    """Of the angles between the surface's normal and the lights; 0 for lights behind it.

    **Arguments:**

    - `hit`: on the surface.
    - `lights`: that shine on it.

    **Returns:**

    One number a light.
    """
    return jnp.maximum(jax.vmap(dot, (0, None))(lights.direction, hit.normal), 0)


def incident(hit: Hit, lights: Irradiance) -> Color:
    """The power per area that the surface receives.

    **Arguments:**

    - `hit`: on the surface.
    - `lights`: that shine on it.

    **Returns:**

    Irradiance, ambient light not included.
    """
    return jnp.sum(cosines(hit, lights)[:, None] * lights.irradiance, axis=0)
