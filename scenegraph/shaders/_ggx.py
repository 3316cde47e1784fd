from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import as_float_leaf, dot, require_fraction, safe_divide, safe_norm, safe_normalise
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting
from ._lambert import cosines
from ._split_sum import mirrored_light, reflected_parts, SMOOTHEST, split_lights


# The part of light at normal incidence that surfaces other than metals reflect.
_DIELECTRIC = 0.04
# The least cosine to the eye: at zero, the model divides by zero.
_LEAST_COSINE = 1e-4
# The mean of 1 - (1 - c)^5 over light that arrives evenly from all sides.
_EVENLY = 20 / 21


class GGX(AbstractShader):
    """Metals, plastics and paints: the metallic-roughness model of real-time rendering.

    With `a = max(roughness^2, 0.001)`, the half vector `h` between light `l` and eye `v`, and
    `F(f, c) = f + (1 - f) (1 - c)^5`, it scatters, times irradiance and the cosine `n.l`,

    - `D G F(f0, v.h) / (4 n.l n.v)` with `f0 = 0.04` mixed with the base colour by `metallic`, the
      microfacets `D = a^2 / (pi ((n.h)^2 (a^2 - 1) + 1)^2)`, and Smith's height-correlated
      shadowing `G`;
    - and evenly the light that passes the surface inwards and outwards:
      `(1 - metallic) base (1 - F(0.04, n.l)) (1 - F(0.04, n.v)) / pi`. Without the two factors, a
      white surface would send out more light than it receives.

    It is reciprocal. Rough metals are too dark, at normal incidence by a sixth at roughness 0.6 and
    by two thirds at 1, because light that hits a second facet is lost. Of ambient light it reflects
    the second part's exact integral, and the first's from a table that is off by at most 0.01 where
    `n.v >= 0.05`. It mirrors a panorama's mean over the first part's lobe, times the same integral.

    **Arguments:**

    - `base_color`: a shader or a colour: the colour of scattered light, or of a metal's reflection.
    - `metallic`: 1 for metals, else 0.
    - `roughness`: 0 for a mirror, 1 for chalk.

    **Source:** Walter et al. 2007, equation 33 (`D`); Heitz 2014, "Understanding the
    Masking-Shadowing Function", with correlated heights (`G`); Schlick 1994 (`F`); Khronos,
    glTF 2.0, appendix B (the parameters); Shirley et al. 1997, "A Practitioners' Assessment of
    Light Reflection Models" (the passage inwards and outwards); Karis 2013, "Real Shading in Unreal
    Engine 4" (ambient light and panoramas).
    """

    base_color: AbstractShader = eqx.field(converter=as_shader, default=(0.7, 0.7, 0.7))
    metallic: Scalar = eqx.field(converter=as_float_leaf, default=0.0)
    roughness: Scalar = eqx.field(converter=as_float_leaf, default=0.5)

    needs_light: ClassVar[bool] = True

    def __check_init__(self):
        require_fraction(self, "metallic", "roughness")
        require_reflecting(self, "base_color")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        base, eye = self.base_color(hit, view, lights), -safe_normalise(view)
        # Paint scatters evenly, metal does not; both reflect, f0 = mix(0.04, base, metallic).
        alpha = jnp.maximum(self.roughness**2, SMOOTHEST)
        paint = (1 - self.metallic) * base
        metal = _DIELECTRIC + self.metallic * (base - _DIELECTRIC)
        seen = jnp.clip(dot(hit.normal, eye), _LEAST_COSINE, 1)

        def scattered(light: Vector, cosine: Scalar) -> Color:
            half = eye + light
            # Half of its length is the cosine v.h, both of length one.
            mirrors = _schlick(metal, safe_norm(half) / 2) * _facets(alpha, hit.normal, half)
            even = _passed(seen) * _passed(cosine) * cosine / jnp.pi
            return paint * even + mirrors * _visibility(alpha, cosine, seen)

        sharp, soft = split_lights(lights)
        parts = jax.vmap(scattered)(sharp.direction, cosines(hit, sharp))
        total = jnp.sum(parts * sharp.irradiance, axis=0)
        if lights.soft:
            total += paint * _passed(seen) * _enter(hit, soft) / jnp.pi
        # Even light from all sides: the integral of (1 - F(0.04, n.l)) n.l / pi over all directions
        # is (1 - 0.04) * 20 / 21.
        ambient = paint * _passed(seen) * (1 - _DIELECTRIC) * _EVENLY
        head_on, grazing = reflected_parts(self.roughness, seen)
        mirrored = (metal * head_on + grazing) * mirrored_light(lights, self.roughness)
        return total + ambient * lights.ambient + mirrored


def _enter(hit: Hit, lights: Irradiance) -> Color:
    """Returns the irradiance that passes the surface of a paint."""
    cosine = cosines(hit, lights)
    return jnp.sum((_passed(cosine) * cosine)[:, None] * lights.irradiance, axis=0)


def _facets(alpha: Scalar, normal: Vector, half: Vector) -> Scalar:
    # D = (a |h|^2 / (|n x h|^2 + (a n.h)^2))^2 / pi, for an h of any length. The sine comes from
    # the cross product: from the cosine it would be lost in rounding.
    across, along = jnp.cross(normal, half), dot(normal, half)
    spread = dot(across, across) + (alpha * along) ** 2
    return safe_divide(alpha * dot(half, half), spread) ** 2 / jnp.pi


def _visibility(alpha: Scalar, cosine: Scalar, seen: Scalar) -> Scalar:
    """Returns `G / (4 n.l n.v)`, the part of the facets that is both lit and seen, times `n.l`."""

    def spread(x: Scalar) -> Scalar:
        return jnp.sqrt(alpha**2 + (1 - alpha**2) * x**2)

    # G / (4 n.l n.v) = 1 / (2 (n.l s(n.v) + n.v s(n.l))), with s(x) = sqrt(a^2 + (1 - a^2) x^2)
    return cosine / (2 * (cosine * spread(seen) + seen * spread(cosine)))


def _schlick(head_on: Float[Array, "*n"], cosine: Scalar) -> Float[Array, "*n"]:
    """Returns `F(f, c) = f + (1 - f) (1 - c)^5`, the part of light that is reflected."""
    return head_on + (1 - head_on) * jnp.clip(1 - cosine, 0, 1) ** 5


def _passed(cosine: Scalar) -> Scalar:
    """Returns `1 - F(0.04, c)`, the part of light that passes the surface of a paint."""
    return 1 - _schlick(jnp.asarray(_DIELECTRIC, cosine.dtype), cosine)
