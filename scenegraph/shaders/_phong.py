from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import as_float_leaf, dot, require_positive, safe_divide, safe_normalise
from ..rays import Hit, Irradiance, no_light
from ._albedo import albedo_of
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting
from ._lambert import cosines, incident
from ._ltc import lamp_highlights
from ._material import AbstractMaterial, ScatterSample
from ._sampling import cosine_direction, lobe_direction, luminance, scatter_sample
from ._split_sum import mirrored_light, split_lights


class Phong(AbstractMaterial):
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
        whole = self._ambient(hit, eye)
        gloss = self._highlight(hit, eye, split_lights(lights).sharp)
        gloss += whole * mirrored_light(lights, roughness)
        if lights.lamps is not None:
            lobe = lambda light: jnp.broadcast_to(self._lobe(hit, eye, light), (3,))
            gray = jnp.broadcast_to(whole, (3,))
            gloss += lamp_highlights(lobe, gray, hit.normal, eye, roughness, lights.lamps)
        return self.diffuse(hit, view, lights) * even + self.specular(hit, view, lights) * gloss

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.diffuse, hit, view)

    def scatter(self, hit: Hit, view: Vector, light: Vector) -> Color:
        dark, eye = no_light(light.dtype), -safe_normalise(view)
        lobe = self._lobe(hit, eye, light)
        even, gloss = self.diffuse(hit, view, dark) / jnp.pi, self.specular(hit, view, dark)
        return (even + gloss * lobe) * jnp.maximum(dot(hit.normal, light), 0)

    def density(self, hit: Hit, view: Vector, light: Vector) -> Scalar:
        eye, part = -safe_normalise(view), self._diffuse_part(hit, view)
        # (n + 1) / (2 pi) cos^n a about the mirrored eye; what lies below the horizon counts, too.
        lobe = (self.shininess + 1) / (2 * jnp.pi) * self._power(hit, eye, light)
        even = jnp.maximum(dot(hit.normal, light), 0) / jnp.pi
        return part * even + (1 - part) * lobe

    def sample(self, hit: Hit, view: Vector, uniform: Float[Array, "3"]) -> ScatterSample:
        eye = -safe_normalise(view)
        is_diffuse = uniform[0] < self._diffuse_part(hit, view)
        mirrored = 2 * dot(hit.normal, eye) * hit.normal - eye
        even = cosine_direction(hit.normal, uniform[1:])
        light = jnp.where(is_diffuse, even, lobe_direction(mirrored, self.shininess, uniform[1:]))
        scatter, density = self.scatter(hit, view, light), self.density(hit, view, light)
        return scatter_sample(light, scatter, density, is_diffuse)

    def _diffuse_part(self, hit: Hit, view: Vector) -> Scalar:
        """Returns how often a random direction is chosen evenly, and not in the highlight."""
        dark = no_light(view.dtype)
        even = luminance(self.diffuse(hit, view, dark))
        gloss = luminance(self.specular(hit, view, dark))
        return safe_divide(even, even + gloss, otherwise=1.0)

    def _highlight(self, hit: Hit, eye: Vector, lights: Irradiance) -> Color:
        lobe = jax.vmap(lambda light: self._lobe(hit, eye, light))(lights.direction)
        return jnp.sum((lobe * cosines(hit, lights))[:, None] * lights.irradiance, axis=0)

    def _lobe(self, hit: Hit, eye: Vector, light: Vector) -> Scalar:
        # (n + 2) / (2 pi) max(cos a, 0)^n
        return (self.shininess + 2) / (2 * jnp.pi) * self._power(hit, eye, light)

    def _power(self, hit: Hit, eye: Vector, light: Vector) -> Scalar:
        """Returns `max(cos a, 0)^n`, with gradient zero where the cosine is not positive."""
        # cos a = r . v with r = 2 (n . l) n - l
        cosine = 2 * dot(hit.normal, light) * dot(hit.normal, eye) - dot(light, eye)
        positive = cosine > 0
        logarithm = jnp.log(jnp.where(positive, cosine, 1))
        return jnp.where(positive, jnp.exp(self.shininess * logarithm), 0)

    def _ambient(self, hit: Hit, eye: Vector) -> Scalar:
        # sqrt(c^2 + (1 - c^2) / (4 + 2 pi n)), fitted to the integral over all directions.
        square = dot(hit.normal, eye) ** 2
        return jnp.sqrt(square + (1 - square) / (4 + 2 * jnp.pi * self.shininess))
