from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import dot, safe_norm, safe_normalise
from ..rays import Hit, Irradiance, LampPolygons, no_light
from ._albedo import albedo_of
from ._base import AbstractShader
from ._constant import as_shader, require_reflecting
from ._inputs import (
    as_input,
    as_optional_input,
    as_optional_shader,
    read_input,
    require_fraction_inputs,
)
from ._lambert import cosines
from ._ltc import lamp_highlights
from ._material import AbstractMaterial, ScatterSample
from ._microfacets import (
    facet_density,
    facets,
    height_of,
    LEAST_COSINE,
    raise_eye,
    visibility,
)
from ._normal_map import as_normal_map, NormalMap
from ._sampling import cosine_direction, luminance, scatter_sample, visible_facet
from ._split_sum import mirrored_light, reflected_parts, SMOOTHEST, split_lights


# The part of light at normal incidence that surfaces other than metals reflect.
_DIELECTRIC = 0.04
# The mean of 1 - (1 - c)^5 over light that arrives evenly from all sides.
# 2 int_0^1 (1 - (1 - c)^5) c dc = 1 - 2 / 42.
_EVENLY = 20 / 21


class GGX(AbstractMaterial):
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
    - `metallic`: 1 for metals, else 0; a number, or a shader of which blue counts.
    - `roughness`: 0 for a mirror, 1 for chalk; a number, or a shader of which green counts. So
      one texture in the packing of glTF may be both, and anything grey, too.
    - `normal_map`: a `NormalMap`, or the shader that it has; `None` for none. A panorama that the
      surface mirrors, and shadows, follow the surface's own normal.
    - `emission`: a shader or a colour: the radiance that it sends out by itself, without any
      light, too; `None` for none.
    - `occlusion`: the part of ambient light and of panoramas that arrives, as in glTF; a
      number, or a shader of which red counts; `None` for all.

    **Source:** Walter et al. 2007, equation 33 (`D`); Heitz 2014, "Understanding the
    Masking-Shadowing Function", with correlated heights (`G`); Schlick 1994 (`F`); Khronos,
    glTF 2.0, appendix B (the parameters); Shirley et al. 1997, "A Practitioners' Assessment of
    Light Reflection Models" (the passage inwards and outwards); Karis 2013, "Real Shading in Unreal
    Engine 4" (ambient light and panoramas).
    """

    base_color: AbstractShader = eqx.field(converter=as_shader, default=(0.7, 0.7, 0.7))
    metallic: Scalar | AbstractShader = eqx.field(converter=as_input, default=0.0)
    roughness: Scalar | AbstractShader = eqx.field(converter=as_input, default=0.5)
    normal_map: NormalMap | None = eqx.field(converter=as_normal_map, default=None)
    emission: AbstractShader | None = eqx.field(converter=as_optional_shader, default=None)
    occlusion: Scalar | AbstractShader | None = eqx.field(converter=as_optional_input, default=None)

    needs_light: ClassVar[bool] = True
    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        occlusion = [] if self.occlusion is None else ["occlusion"]
        require_fraction_inputs(self, "metallic", "roughness", *occlusion)
        require_reflecting(self, "base_color")

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        material, eye = self._material(hit, view, lights), -safe_normalise(view)
        if self.normal_map is not None:
            lights = _above_surface(hit, lights)
            hit = self._bumped(hit, view, lights)
        seen = jnp.maximum(dot(hit.normal, eye), LEAST_COSINE)
        parts = split_lights(lights)
        direct = _lamps(material, hit, eye, parts.sharp)
        if lights.lamps is not None:
            direct += material.paint * _passed(seen) * _enter(hit, parts.lamps) / jnp.pi
            direct += _outlines(material, hit, eye, seen, lights.lamps)
        around = _surroundings(material, hit, seen, parts.soft, lights)
        if self.occlusion is not None:
            around *= read_input(self.occlusion, 0, hit, view, lights)
        if self.emission is not None:
            direct += self.emission(hit, view, lights)
        return direct + around

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.base_color, hit, view)

    def scatter(self, hit: Hit, view: Vector, light: Vector) -> Color:
        dark, eye = no_light(light.dtype), -safe_normalise(view)
        material = self._material(hit, view, dark)
        if self.normal_map is None:
            return _scattered(material, hit.normal, eye, light)
        bumped = self._bumped(hit, view, dark)
        return height_of(hit.normal, light) * _scattered(material, bumped.normal, eye, light)

    def density(self, hit: Hit, view: Vector, light: Vector) -> Scalar:
        material = self._material(hit, view, no_light(light.dtype))
        normal = self._bumped(hit, view, no_light(light.dtype)).normal
        eye = raise_eye(normal, -safe_normalise(view))
        seen, cosine = dot(normal, eye), dot(normal, light)
        part = _diffuse_part(material, seen)
        density = part * cosine / jnp.pi + (1 - part) * facet_density(
            material.alpha, normal, eye, light
        )
        return jnp.where(cosine > 0, density, 0)

    def sample(self, hit: Hit, view: Vector, uniform: Float[Array, "3"]) -> ScatterSample:
        material = self._material(hit, view, no_light(view.dtype))
        normal = self._bumped(hit, view, no_light(view.dtype)).normal
        eye = raise_eye(normal, -safe_normalise(view))
        is_diffuse = uniform[0] < _diffuse_part(material, dot(normal, eye))
        facet = visible_facet(material.alpha, normal, eye, uniform[1:])
        even = cosine_direction(normal, uniform[1:])
        light = jnp.where(is_diffuse, even, 2 * dot(facet, eye) * facet - eye)
        scatter, density = self.scatter(hit, view, light), self.density(hit, view, light)
        return scatter_sample(light, scatter, density, is_diffuse)

    def _bumped(self, hit: Hit, view: Vector, lights: Irradiance) -> Hit:
        """Returns the hit with the normal of the normal map, if there is one."""
        if self.normal_map is None:
            return hit
        normal = self.normal_map(hit, view, lights)
        return eqx.tree_at(lambda x: x.normal, hit, normal)

    def _material(self, hit: Hit, view: Vector, lights: Irradiance) -> "_Material":
        base = self.base_color(hit, view, lights)
        metallic = read_input(self.metallic, 2, hit, view, lights)
        roughness = read_input(self.roughness, 1, hit, view, lights)
        # Paint scatters evenly, metal does not; both reflect, f0 = mix(0.04, base, metallic).
        paint = (1 - metallic) * base
        metal = _DIELECTRIC + metallic * (base - _DIELECTRIC)
        return _Material(paint, metal, roughness, jnp.maximum(roughness**2, SMOOTHEST))


class _Material(NamedTuple):
    """The numbers of the model at a hit."""

    paint: Color  # what is scattered
    metal: Color  # what is reflected at normal incidence
    roughness: Scalar
    alpha: Scalar


def _lamps(material: _Material, hit: Hit, eye: Vector, lights: Irradiance) -> Color:
    """Returns the reflected light of lights with a direction each."""
    scattered = lambda light: _scattered(material, hit.normal, eye, light)
    return jnp.sum(jax.vmap(scattered)(lights.direction) * lights.irradiance, axis=0)


def _scattered(material: _Material, normal: Vector, eye: Vector, light: Vector) -> Color:
    """Returns the BSDF times `n.l`."""
    paint, metal, _, alpha = material
    seen = jnp.maximum(dot(normal, eye), LEAST_COSINE)
    cosine = jnp.maximum(dot(normal, light), 0)
    # (1 - F(0.04, n.v)) (1 - F(0.04, n.l)) n.l / pi
    even = _passed(seen) * _passed(cosine) * cosine / jnp.pi
    return paint * even + _mirrors(metal, alpha, normal, eye, light) * (
        cosine * visibility(alpha, cosine, seen)
    )


def _mirrors(metal: Color, alpha: Scalar, normal: Vector, eye: Vector, light: Vector) -> Color:
    """Returns `D F`: the facets that mirror the light to the eye, and what they reflect."""
    half = eye + light
    # Half of its length is the cosine v.h, both of length one.
    return _schlick(metal, safe_norm(half) / 2) * facets(alpha, normal, half)


def _outlines(
    material: _Material, hit: Hit, eye: Vector, seen: Scalar, lamps: LampPolygons
) -> Color:
    """Returns the highlights of lamps with a size."""
    _, metal, roughness, alpha = material

    def scattered(light: Vector) -> Color:
        cosine = jnp.maximum(dot(hit.normal, light), 0)
        shape = visibility(alpha, cosine, seen)
        return _mirrors(metal, alpha, hit.normal, eye, light) * shape

    head_on, grazing = reflected_parts(roughness, seen)
    whole = metal * head_on + grazing
    return lamp_highlights(scattered, whole, hit.normal, eye, roughness, lamps)


def _diffuse_part(material: _Material, seen: Scalar) -> Scalar:
    """Returns how often a random direction is chosen evenly, and not by a facet."""
    head_on, grazing = reflected_parts(material.roughness, seen)
    even = luminance(material.paint) * _passed(seen)
    return even / (even + luminance(material.metal * head_on + grazing))


def _surroundings(
    material: _Material, hit: Hit, seen: Scalar, soft: Irradiance, lights: Irradiance
) -> Color:
    """Returns the reflected light of all around: ambient, and panoramas."""
    # Even light from all sides: the integral of (1 - F(0.04, n.l)) n.l / pi over all directions
    # is (1 - 0.04) * 20 / 21.
    even = _passed(seen) * (1 - _DIELECTRIC) * _EVENLY * lights.ambient
    if lights.soft:
        even += _passed(seen) * _enter(hit, soft) / jnp.pi
    # docs/surfaces.md, "Panoramas in highlights": (f0 A + B) L(roughness, r)
    head_on, grazing = reflected_parts(material.roughness, seen)
    mirrored = mirrored_light(lights, material.roughness)
    return material.paint * even + (material.metal * head_on + grazing) * mirrored


def _above_surface(hit: Hit, lights: Irradiance) -> Irradiance:
    """Fades lights that set behind the surface itself, whose bumps would still see them."""
    height = jax.vmap(lambda light: height_of(hit.normal, light))(lights.direction)
    faded = eqx.tree_at(lambda x: x.irradiance, lights, height[:, None] * lights.irradiance)
    if lights.lamps is None:
        return faded
    last = height.shape[0] - lights.soft
    first = last - lights.lamps.radiance.shape[-2]
    radiance = height[first:last, None] * lights.lamps.radiance
    return eqx.tree_at(lambda x: x.lamps.radiance, faded, radiance)


def _enter(hit: Hit, lights: Irradiance) -> Color:
    """Returns the irradiance that passes the surface of a paint."""
    cosine = cosines(hit, lights)
    return jnp.sum((_passed(cosine) * cosine)[:, None] * lights.irradiance, axis=0)


def _schlick(head_on: Float[Array, "*n"], cosine: Scalar) -> Float[Array, "*n"]:
    """Returns `F(f, c) = f + (1 - f) (1 - c)^5`, the part of light that is reflected."""
    return head_on + (1 - head_on) * (1 - cosine) ** 5


def _passed(cosine: Scalar) -> Scalar:
    """Returns `1 - F(0.04, c)`, the part of light that passes the surface of a paint."""
    return 1 - _schlick(jnp.asarray(_DIELECTRIC, cosine.dtype), cosine)
