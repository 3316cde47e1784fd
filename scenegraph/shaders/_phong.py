from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import as_float_leaf, dot, require_positive, safe_normalise
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._convert import as_shader
from ._lambert import cosines, incident


class Phong(AbstractShader):
    """An even scatterer with a highlight around the mirrored light.

    `diffuse / pi + specular (n + 2) / (2 pi) max(cos a, 0)^n`, times irradiance and the cosine of
    the angle of incidence; `a` lies between the eye and the reflection vector of the light. It is
    reciprocal, and reflects no more light than arrives if `diffuse + specular <= 1`.

    Of ambient light the highlight reflects `specular sqrt(c^2 + (1 - c^2) / (4 + 2 pi n))`, `c`
    being the cosine of the angle at which the surface is seen: off by at most 0.04 from the
    integral for `n >= 3`.

    **Arguments:**

    - `diffuse`: a shader or a colour: the part of the light that is scattered evenly.
    - `specular`: a shader or a colour: the part that goes into the highlight, seen head on.
    - `shininess`: the exponent `n`; positive.

    **Source:** Lafortune and Willems 1994, "Using the Modified Phong Reflectance Model for
    Physically Based Rendering"; the gleam was fitted to the integral.
    """

    diffuse: AbstractShader = eqx.field(converter=as_shader, default=(0.5, 0.5, 0.5))
    specular: AbstractShader = eqx.field(converter=as_shader, default=(0.2, 0.2, 0.2))
    shininess: Scalar = eqx.field(converter=as_float_leaf, default=30.0)

    needs_light: ClassVar[bool] = True

    def __check_init__(self):
        require_positive(self, "shininess")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        eye = -safe_normalise(view)
        even = incident(hit, lights) / jnp.pi + lights.ambient
        gloss = self._highlight(hit, eye, lights) + self._gleam(hit, eye) * lights.ambient
        return self.diffuse(hit, view, lights) * even + self.specular(hit, view, lights) * gloss

    def _highlight(self, hit: Hit, eye: Vector, lights: Irradiance) -> Color:
        along = jax.vmap(lambda light: _along_mirrored(light, hit.normal, eye))(lights.direction)
        lobe = (self.shininess + 2) / (2 * jnp.pi) * _power(along, self.shininess)
        return jnp.sum((lobe * cosines(hit, lights))[:, None] * lights.irradiance, axis=0)

    def _gleam(self, hit: Hit, eye: Vector) -> Scalar:
        square = jnp.minimum(dot(hit.normal, eye) ** 2, 1)
        return jnp.sqrt(square + (1 - square) / (4 + 2 * jnp.pi * self.shininess))


def _along_mirrored(light: Vector, normal: Vector, eye: Vector) -> Scalar:
    """The cosine of the angle between the eye and the reflection of a light."""
    return 2 * dot(normal, light) * dot(normal, eye) - dot(light, eye)


def _power(base: Float[Array, " n"], exponent: Scalar) -> Float[Array, " n"]:
    """0, with gradient zero, where the base is not positive."""
    positive = base > 0
    logarithm = jnp.log(jnp.where(positive, base, 1))
    return jnp.where(positive, jnp.exp(exponent * logarithm), 0)
