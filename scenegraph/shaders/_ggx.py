from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import as_float_leaf, dot, require_finite, safe_divide, safe_norm, safe_normalise
from ..rays import Hit, Irradiance
from ._base import AbstractShader
from ._convert import as_shader
from ._lambert import cosines


# What anything but a metal reflects of light that comes head on.
_DIELECTRIC = 0.04
# A smoother surface has highlights too bright and too small for single precision.
_SMOOTHEST = 1e-3
# A surface is never seen more from the side than by this cosine, where the model divides by zero.
_LEAST_COSINE = 1e-4
# The mean of 1 - (1 - c)^5 over light that comes evenly from all sides.
_EVENLY = 20 / 21


class GGX(AbstractShader):
    """Metals, plastics and paints: the metallic-roughness model of real-time rendering.

    With `a = max(roughness^2, 0.001)`, the half vector `h` between light `l` and eye `v`, and
    `F(f, c) = f + (1 - f) (1 - c)^5`, it scatters, times irradiance and the cosine `n.l`,

    - `D G F(f0, v.h) / (4 n.l n.v)` with `f0 = 0.04` mixed with the base colour by `metallic`, the
      microfacets `D = a^2 / (pi ((n.h)^2 (a^2 - 1) + 1)^2)`, and Smith's shadowing of heights that
      go together, `G`;
    - and evenly what passes the surface inwards and outwards:
      `(1 - metallic) base (1 - F(0.04, n.l)) (1 - F(0.04, n.v)) / pi`. Without the two factors, a
      white surface would send out more light than it receives.

    It is reciprocal. Rough metals are too dark, head on by a sixth at roughness 0.6 and by two
    thirds at 1, because light that meets a second facet is lost. Of ambient light it reflects the
    second part's exact integral, and a fit to the first's that is off by at most 0.1 where
    `n.v >= 0.05`.

    **Arguments:**

    - `base_color`: a shader or a colour: of the scattered light, or of a metal's reflections.
    - `metallic`: 0 for all else, 1 for metals.
    - `roughness`: 0 for a mirror, 1 for chalk.

    **Source:** Walter et al. 2007, equation 33 (`D`); Heitz 2014, "Understanding the
    Masking-Shadowing Function", with correlated heights (`G`); Schlick 1994 (`F`); Khronos,
    glTF 2.0, appendix B (the parameters); Shirley et al. 1997, "A Practitioners' Assessment of
    Light Reflection Models" (the passage inwards and outwards).
    """

    base_color: AbstractShader = eqx.field(converter=as_shader, default=(0.7, 0.7, 0.7))
    metallic: Scalar = eqx.field(converter=as_float_leaf, default=0.0)
    roughness: Scalar = eqx.field(converter=as_float_leaf, default=0.5)

    needs_light: ClassVar[bool] = True

    def __check_init__(self):
        require_finite(self, "metallic", "roughness")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        base, eye = self.base_color(hit, view, lights), -safe_normalise(view)
        alpha = jnp.maximum(self.roughness**2, _SMOOTHEST)
        paint = (1 - self.metallic) * base
        metal = _DIELECTRIC + self.metallic * (base - _DIELECTRIC)
        seen = jnp.clip(dot(hit.normal, eye), _LEAST_COSINE, 1)

        def scattered(light: Vector, cosine: Scalar) -> Color:
            half = eye + light
            # The half of this is the cosine between light and half vector, both of length one.
            mirrors = _schlick(metal, safe_norm(half) / 2) * _facets(alpha, hit.normal, half)
            even = _passed(seen) * _passed(cosine) * cosine / jnp.pi
            return paint * even + mirrors * _seen_part(alpha, cosine, seen)

        parts = jax.vmap(scattered)(lights.direction, cosines(hit, lights))
        ambient = paint * _passed(seen) * (1 - _DIELECTRIC) * _EVENLY
        ambient += _reflected_evenly(metal, alpha, seen)
        return jnp.sum(parts * lights.irradiance, axis=0) + ambient * lights.ambient


def _facets(alpha: Scalar, normal: Vector, half: Vector) -> Scalar:
    """The density of microfacets that are turned to a vector, of any length.

    The sine comes from the cross product: from the cosine it would be lost in rounding.
    """
    across, along = jnp.cross(normal, half), dot(normal, half)
    spread = dot(across, across) + (alpha * along) ** 2
    return safe_divide(alpha * dot(half, half), spread) ** 2 / jnp.pi


def _seen_part(alpha: Scalar, cosine: Scalar, seen: Scalar) -> Scalar:
    """`G / (4 n.l n.v)`, the part of the facets that is both lit and seen, times `n.l`."""

    def spread(x: Scalar) -> Scalar:
        return jnp.sqrt(alpha**2 + (1 - alpha**2) * x**2)

    return cosine / (2 * (cosine * spread(seen) + seen * spread(cosine)))


def _schlick(head_on: Float[Array, "*n"], cosine: Scalar) -> Float[Array, "*n"]:
    """The part of the light that a smooth surface reflects."""
    return head_on + (1 - head_on) * jnp.clip(1 - cosine, 0, 1) ** 5


def _passed(cosine: Scalar) -> Scalar:
    """The part of the light that passes the surface of a paint."""
    return 1 - _schlick(jnp.asarray(_DIELECTRIC, cosine.dtype), cosine)


def _reflected_evenly(head_on: Color, alpha: Scalar, seen: Scalar) -> Color:
    """The part that is reflected of light from all sides, as fitted to the integral.

    It has two terms: what perfect mirrors would send, and how much of it is light that Schlick's
    term adds at the side.
    """
    perfect = 1 - 0.76 * alpha**1.2 * seen ** (0.52 * alpha)
    side = (1 - seen) ** 5 / (1 + (8.8 + 35 * alpha) * alpha * (1 - seen) ** 3)
    return head_on * (perfect - side) + side
