from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Color, Scalar, Vector
from ..numerics import as_float_leaf, dot, require_positive, safe_normalise
from ..rays import Hit, Irradiance
from ._albedo import AbstractAlbedoShader, albedo_of
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting
from ._lambert import cosines, incident
from ._split_sum import mirrored_light, split_lights


class Phong(AbstractAlbedoShader):
    """A diffuse surface with a highlight around the mirrored light.

    `diffuse / pi + specular (n + 2) / (2 pi) max(cos a, 0)^n`, times irradiance and the cosine of
    incidence; `a` lies between the eye and the reflection vector of the light. It is reciprocal,
    and reflects no more light than arrives if `diffuse + specular <= 1`.

    Of ambient light the highlight reflects `specular sqrt(c^2 + (1 - c^2) / (4 + 2 pi n))`, with
    the cosine `c` of the angle between normal and eye: a fit, off by at most 0.04 from the integral
    for `n >= 3`. It reflects the same part of a panorama, averaged over the lobe of a `GGX` with
    roughness `(2 n + 1)^(-1/4)`, which is about as wide.

    **Arguments:**

    - `diffuse`: a shader or a colour: the part of the light that is scattered evenly.
    - `specular`: a shader or a colour: the part that goes into the highlight at normal incidence.
    - `shininess`: the exponent `n`; positive.

    **Source:** Lafortune and Willems 1994, "Using the Modified Phong Reflectance Model for
    Physically Based Rendering".
    """

    diffuse: AbstractShader = eqx.field(converter=as_shader, default=(0.5, 0.5, 0.5))
    specular: AbstractShader = eqx.field(converter=as_shader, default=(0.2, 0.2, 0.2))
    shininess: Scalar = eqx.field(converter=as_float_leaf, default=30.0)

    needs_light: ClassVar[bool] = True
    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        require_positive(self, "shininess")
        require_reflecting(self, "diffuse", "specular")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        eye = -safe_normalise(view)
        even = incident(hit, lights) / jnp.pi + lights.ambient
        # The lobe of a^2 = 2 / (4 n + 2) = roughness^4: cos^n of the mirrored light is about cos^4n
        # of the half vector, and a^2 = 2 / (m + 2) for an exponent m.
        roughness = (2 * self.shininess + 1) ** -0.25
        mirrored = self._ambient(hit, eye) * mirrored_light(lights, roughness)
        gloss = self._highlight(hit, eye, split_lights(lights)[0]) + mirrored
        return self.diffuse(hit, view, lights) * even + self.specular(hit, view, lights) * gloss

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.diffuse, hit, view)

    def _highlight(self, hit: Hit, eye: Vector, lights: Irradiance) -> Color:
        def mirrored(light: Vector) -> Scalar:
            # cos a = r . v with r = 2 (n . l) n - l
            return 2 * dot(hit.normal, light) * dot(hit.normal, eye) - dot(light, eye)

        # (n + 2) / (2 pi) max(cos a, 0)^n, with gradient zero where the cosine is not positive.
        cosine = jax.vmap(mirrored)(lights.direction)
        positive = cosine > 0
        logarithm = jnp.log(jnp.where(positive, cosine, 1))
        power = jnp.where(positive, jnp.exp(self.shininess * logarithm), 0)
        lobe = (self.shininess + 2) / (2 * jnp.pi) * power
        return jnp.sum((lobe * cosines(hit, lights))[:, None] * lights.irradiance, axis=0)

    def _ambient(self, hit: Hit, eye: Vector) -> Scalar:
        # sqrt(c^2 + (1 - c^2) / (4 + 2 pi n)), fitted to the integral over all directions.
        square = dot(hit.normal, eye) ** 2
        return jnp.sqrt(square + (1 - square) / (4 + 2 * jnp.pi * self.shininess))
