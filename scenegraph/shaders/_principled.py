from collections.abc import Callable
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Color, Float, Scalar, Vector
from ..numerics import (
    dot,
    require_at_least,
    require_not_negative,
    require_positive,
    safe_divide,
    safe_norm,
    safe_normalise,
    safe_sqrt,
    unfreeze,
)
from ..rays import Hit, Irradiance, LampPolygons, no_light
from ._albedo import albedo_of
from ._base import AbstractShader
from ._constant import as_shader, Constant, require_reflecting
from ._glass import fresnel, glass_parts, refract
from ._inputs import (
    as_input,
    as_optional_input,
    as_optional_shader,
    read_input,
    require_fraction_inputs,
)
from ._ltc import lamp_highlights
from ._material import AbstractReflectiveMaterial, ScatterSample, SecondaryRays
from ._microfacets import facet_density, facets, height_of, LEAST_COSINE, raise_eye, visibility
from ._normal_map import as_normal_map, NormalMap
from ._sampling import cosine_direction, luminance, visible_facet
from ._sheen import sheen_lobe, sheen_part
from ._split_sum import mean_reflected_parts, reflected_parts, SMOOTHEST, split_lights


# The index of refraction, and what a coat reflects at normal incidence.
_INDEX, _COAT = 1.5, 0.04
# Media that are more alike bend no light by facets, whose directions are then lost in rounding.
_LEAST_INDEX = 1.003
# A smoother lobe is one direction for paths.
_MIRROR = 0.03
# Cones show all of a lamp up to the first roughness, and none of it from the second one on.
_SHOWN, _SHADED = 0.1, 0.25
# The side of the square that blurs a cone, by the square of the roughness.
_SPREAD = 2.0


class Principled(AbstractReflectiveMaterial):
    """Metals, plastics, glass, car paint and cloth: the material of glTF 2.0 and its extensions.

    It reflects as `GGX` does, with the light that is lost between facets given back, so that white
    surfaces of any roughness reflect all that arrives. It shows what is around it: its colour is
    that of its lights, and secondary rays add what they see.

    All inputs are numbers or shaders. What is `None` costs nothing.

    **Arguments:**

    - `base_color`: a shader or a colour: the colour of scattered light, of a metal's reflection,
      and of light that passes the surface.
    - `metallic`: 1 for metals, else 0; of a shader, blue counts.
    - `roughness`: 0 for a mirror, 1 for chalk; of a shader, green counts.
    - `normal_map`: a `NormalMap`, or the shader that it has. The coat keeps the surface's normal.
    - `emission`: the radiance that the surface sends out by itself.
    - `occlusion`: the part of ambient light and of panoramas that arrives; red counts.
    - `emission_strength`: a factor of `emission`; `None` for 1.
    - `ior`: the index of refraction, at least 1; `None` for 1.5.
    - `specular`: a factor of what others than metals reflect, from 0 to 1; red counts; `None`
      for 1.
    - `specular_color`: a factor of what they reflect at normal incidence; `None` for white.
    - `transmission`: the part of the light that passes the surface, instead of being scattered;
      red counts; `None` for 0.
    - `attenuation_color`, `attenuation_distance`: the colour that white light has after it has
      gone this far inside; `None` for clear glass. Needs both.
    - `clearcoat`, `clearcoat_roughness`: a second, clear layer, from 0 to 1, and its roughness; red
      and green count; `None` for none, and for 0.
    - `sheen_color`, `sheen_roughness`: fibres of cloth, seen from the side; `None` for none, and
      for 0; red counts.
    - `thin_walled`: true for a leaf or a soap bubble, which light passes straight on; false for the
      surface of a body, at which it is bent; static.

    **Source:** Khronos, glTF 2.0, appendix B, and the extensions KHR_materials_ior, _specular,
    _transmission, _volume, _clearcoat, _sheen and _emissive_strength; Kulla and Conty 2017,
    "Revisiting Physically Based Shading at Imageworks" (light between facets); Walter et al. 2007
    (rough glass); Heitz et al. 2016 (highlights of lamps with a size).

    Example: gold beside glass.

    ```python
    gold = sg.Principled(base_color=[0.9, 0.6, 0.2], metallic=1.0, roughness=0.2)
    glass = sg.Principled(base_color="white", transmission=1.0, ior=1.5, roughness=0.0)
    ball = sg.Surface(sg.Sphere([0.0, 0, 1], 1.0), gold)
    ```
    """

    base_color: AbstractShader = eqx.field(converter=as_shader, default=(0.7, 0.7, 0.7))
    metallic: Scalar | AbstractShader = eqx.field(converter=as_input, default=0.0)
    roughness: Scalar | AbstractShader = eqx.field(converter=as_input, default=0.5)
    normal_map: NormalMap | None = eqx.field(converter=as_normal_map, default=None)
    emission: AbstractShader | None = eqx.field(converter=as_optional_shader, default=None)
    occlusion: Scalar | AbstractShader | None = eqx.field(converter=as_optional_input, default=None)
    emission_strength: Scalar | AbstractShader | None = eqx.field(
        converter=as_optional_input, default=None
    )
    ior: Scalar | AbstractShader | None = eqx.field(converter=as_optional_input, default=None)
    specular: Scalar | AbstractShader | None = eqx.field(converter=as_optional_input, default=None)
    specular_color: AbstractShader | None = eqx.field(converter=as_optional_shader, default=None)
    transmission: Scalar | AbstractShader | None = eqx.field(
        converter=as_optional_input, default=None
    )
    attenuation_color: AbstractShader | None = eqx.field(converter=as_optional_shader, default=None)
    attenuation_distance: Scalar | AbstractShader | None = eqx.field(
        converter=as_optional_input, default=None
    )
    clearcoat: Scalar | AbstractShader | None = eqx.field(converter=as_optional_input, default=None)
    clearcoat_roughness: Scalar | AbstractShader | None = eqx.field(
        converter=as_optional_input, default=None
    )
    sheen_color: AbstractShader | None = eqx.field(converter=as_optional_shader, default=None)
    sheen_roughness: Scalar | AbstractShader | None = eqx.field(
        converter=as_optional_input, default=None
    )
    thin_walled: bool = eqx.field(static=True, default=False)

    needs_light: ClassVar[bool] = True
    needs_light_behind: ClassVar[bool] = False

    def __check_init__(self):
        given = lambda *names: [x for x in names if getattr(self, x) is not None]
        numbers = lambda *names: [
            x for x in given(*names) if not isinstance(unfreeze(getattr(self, x)), AbstractShader)
        ]
        fractions = "occlusion", "specular", "transmission", "clearcoat", "clearcoat_roughness"
        require_fraction_inputs(self, "metallic", "roughness", *given(*fractions))
        require_fraction_inputs(self, *given("sheen_roughness"))
        require_reflecting(self, "base_color", *given("attenuation_color", "sheen_color"))
        require_at_least(self, 1.0, *numbers("ior"))
        require_positive(self, *numbers("attenuation_distance"))
        require_not_negative(self, *numbers("emission_strength"))
        tint = unfreeze(self.specular_color)
        if isinstance(tint, Constant):
            require_not_negative(tint, "color")
        for name, other in (
            ("attenuation_color", "attenuation_distance"),
            ("attenuation_distance", "attenuation_color"),
            ("clearcoat_roughness", "clearcoat"),
            ("sheen_roughness", "sheen_color"),
        ):
            if getattr(self, name) is not None and getattr(self, other) is None:
                raise ValueError(f"`Principled.{name}` needs `{other}`, which is None.")

    # --- Light

    def __call__(self, hit: Hit, view: Vector, lights: Irradiance) -> Color:
        layers = self._layers(hit, view, lights)
        parts = split_lights(lights)
        even = jax.vmap(layers.even)(lights.direction)
        lit = jax.vmap(layers.lit)(lights.direction)
        scattered = even * lit[:, None] * lights.irradiance
        first = lights.direction.shape[0] - lights.soft
        direct = jnp.sum(scattered[:first], axis=0)
        around = jnp.sum(scattered[first:], axis=0) + layers.all_reflected() * lights.ambient
        highlights = jax.vmap(layers.highlight)(parts.sharp.direction) * parts.sharp.irradiance
        direct += jnp.sum(highlights, axis=0)
        if lights.lamps is not None:
            heights = jax.vmap(layers.height)(parts.lamps.direction)
            lamps = eqx.tree_at(
                lambda x: x.radiance, lights.lamps, heights[:, None] * lights.lamps.radiance
            )
            direct += layers.outlines(lamps)
        if layers.glass is not None:
            # Light comes into a body of glass bent, along what its surface shows.
            direct *= 1 - (1 - layers.glass.lit) * layers.glass.part
        if self.occlusion is not None:
            around *= read_input(self.occlusion, 0, hit, view, lights)
        if self.emission is not None:
            emission = self.emission(hit, view, lights) * layers.coated(layers.coat_seen)
            if self.emission_strength is not None:
                emission *= read_input(self.emission_strength, 0, hit, view, lights)
            direct += emission
        return direct + around

    def albedo_at(self, hit: Hit, view: Vector) -> Color:
        return albedo_of(self.base_color, hit, view)

    def attenuation(self, hit: Hit, view: Vector, distance: Scalar) -> Color:
        """Computes the part of light that is left after a way inside.

        **Arguments:**

        - `hit`, `view`: as for `scatter`.
        - `distance`: the length of the way.

        **Returns:**

        Red, green and blue, from 0 to 1.
        """
        if self.attenuation_color is None or self.attenuation_distance is None:
            return jnp.ones(3, view.dtype)
        dark = no_light(view.dtype)
        color = self.attenuation_color(hit, view, dark)
        whole = read_input(self.attenuation_distance, 0, hit, view, dark)
        # Beer's law: color^(distance / attenuation_distance)
        black = color <= 0
        power = jnp.exp(distance / whole * jnp.log(jnp.where(black, 1, color)))
        return jnp.where(black, jnp.where(distance > 0, 0, 1), power)

    def _inside(self, hit: Hit, view: Vector) -> Color | None:
        """Returns what is left of light on its way from where the ray has entered; else `None`."""
        if self.attenuation_color is None or self.thin_walled:
            return None
        # Of a ray whose direction has length one, `t` is the distance.
        return self.attenuation(hit, view, jnp.where(hit.side < 0, jnp.maximum(hit.t, 0), 0))

    # --- Secondary rays

    def secondary(self, hit: Hit, view: Vector) -> SecondaryRays:
        layers = self._layers(hit, view, no_light(view.dtype))
        cones = [
            _Cone(
                _dominant(layers.normal, layers.eye, layers.roughness, hit.normal),
                # What several facets reflect is part of what is scattered in all directions.
                layers.gloss_part(),
                _SPREAD * layers.alpha,
                layers.roughness,
                _shown(layers.roughness),
            )
        ]
        if layers.glass is not None:
            cones.append(layers.behind())
        if layers.coat is not None:
            cones.append(layers.coat_cone())
        direction, weight, spread, roughness, lamps = (
            jnp.stack(x) for x in zip(*cones, strict=True)
        )
        inside = self._inside(hit, view)
        weight = weight if inside is None else weight * inside
        return SecondaryRays(direction, weight, spread, roughness, lamps)

    # --- Paths

    def scatter(self, hit: Hit, view: Vector, light: Vector) -> Color:
        layers = self._layers(hit, view, no_light(light.dtype))
        return self._scattered(layers, hit, view, light)

    def density(self, hit: Hit, view: Vector, light: Vector) -> Scalar:
        return self._layers(hit, view, no_light(light.dtype)).density(light)

    def sample(self, hit: Hit, view: Vector, uniform: Float[Array, "3"]) -> ScatterSample:
        layers = self._layers(hit, view, no_light(view.dtype))
        draw = layers.draw(uniform)
        density = layers.density(draw.light)
        scattered = self._scattered(layers, hit, view, draw.light)
        spread = safe_divide(scattered, jnp.broadcast_to(density, (3,)))
        inside = self._inside(hit, view)
        mirrored = draw.weight if inside is None else draw.weight * inside
        weight = jnp.where(draw.is_specular, mirrored, spread)
        weight = jnp.where(draw.is_lost, 0, weight)
        density = jnp.where(draw.is_specular | draw.is_lost, 0, density)
        return ScatterSample(draw.light, weight, density, draw.is_specular, draw.is_diffuse)

    def _scattered(self, layers: "_Layers", hit: Hit, view: Vector, light: Vector) -> Color:
        # What a mirror reflects has no density.
        gloss = jnp.where(layers.is_mirror(), 0, layers.gloss(light))
        total = layers.even(light) * layers.lit(light) + layers.height(light) * gloss
        if layers.coat is not None:
            is_mirror = layers.coat.roughness < _MIRROR
            total += jnp.where(is_mirror, 0, layers.coat_gloss(light))
        if layers.glass is not None:
            through = jnp.where(layers.is_mirror(), 0, layers.through(light))
            total += layers.height(light, behind=True) * through
        inside = self._inside(hit, view)
        return total if inside is None else total * inside

    def _layers(self, hit: Hit, view: Vector, lights: Irradiance) -> "_Layers":
        """Returns the numbers of the material at a hit."""
        ask = lambda value, channel: read_input(value, channel, hit, view, lights)
        base = self.base_color(hit, view, lights)
        metallic, roughness = ask(self.metallic, 2), ask(self.roughness, 1)
        normal, ior = hit.normal, jnp.asarray(_INDEX, view.dtype)
        if self.normal_map is not None:
            normal = self.normal_map(hit, view, lights)
        if self.ior is not None:
            ior = ask(self.ior, 0)
        # KHR_materials_specular: f0 = min(((n - 1) / (n + 1))^2 color, 1) specular, f90 = specular
        head_on = jnp.broadcast_to(((ior - 1) / (ior + 1)) ** 2, (3,))
        grazing = jnp.ones((), view.dtype)
        if self.specular_color is not None:
            head_on = jnp.minimum(head_on * self.specular_color(hit, view, lights), 1)
        if self.specular is not None:
            grazing = ask(self.specular, 0)
            head_on = head_on * grazing
        opaque, glass = 1 - metallic, None
        if self.transmission is not None:
            passes = ask(self.transmission, 0)
            # Of two media, and of the two sides of one surface, all is the other way round.
            outside = (hit.side >= 0) | self.thin_walled
            index = jnp.maximum(ior, _LEAST_INDEX)
            ratio = jnp.where(outside, index, 1 / index)
            lit = jnp.where(outside, 1, 0).astype(view.dtype)
            glass = _Glass((1 - metallic) * passes, base, ratio, lit, self.thin_walled)
            opaque = opaque * (1 - passes)
        coat = sheen = None
        if self.clearcoat is not None:
            smooth = jnp.zeros((), view.dtype)
            rough = smooth if self.clearcoat_roughness is None else ask(self.clearcoat_roughness, 1)
            coat = _Coat(ask(self.clearcoat, 0), rough)
        if self.sheen_color is not None:
            smooth = jnp.zeros((), view.dtype)
            rough = smooth if self.sheen_roughness is None else ask(self.sheen_roughness, 0)
            sheen = _Sheen(self.sheen_color(hit, view, lights), rough)
        eye = raise_eye(normal, -safe_normalise(view))
        bumped = self.normal_map is not None
        return _prepare(
            hit.normal,
            normal,
            eye,
            bumped,
            _Base(base, metallic, roughness, head_on, grazing, opaque),
            glass,
            coat,
            sheen,
        )


# --- The numbers of the material at a hit


class _Base(NamedTuple):
    """Metal, paint, and what reflects on paint."""

    color: Color
    metallic: Scalar
    roughness: Scalar
    head_on: Color  # what others than metals reflect at normal incidence
    grazing: Scalar  # and at a slant
    opaque: Scalar  # the part of the surface that scatters light


class _Glass(NamedTuple):
    """The part of the surface that light passes."""

    part: Scalar
    color: Color
    ratio: Scalar  # the index behind the surface by that before it
    lit: Scalar  # 1 where ambient light arrives, 0 inside of a body
    thin: bool


class _Coat(NamedTuple):
    part: Scalar
    roughness: Scalar


class _Sheen(NamedTuple):
    color: Color
    roughness: Scalar


class _Cone(NamedTuple):
    """One of the secondary rays."""

    direction: Vector
    weight: Color
    spread: Scalar
    roughness: Scalar
    lamps: Scalar


class _Draw(NamedTuple):
    """A random direction; its weight, if it is the only one of its kind."""

    light: Vector
    weight: Color
    is_lost: Bool[Array, ""]  # mirrored into the surface, or bent out of it
    is_specular: Bool[Array, ""]
    is_diffuse: Bool[Array, ""]


class _Even(NamedTuple):
    """Light that is scattered evenly: paint, and light that has met several facets.

    Both are reciprocal, and leave as much light as the rest of the surface does not reflect:
    `paint (1 - E_d(v)) (1 - E_d(l)) / mean(1 - E_d) + again (1 - E(v)) (1 - E(l)) / mean(1 - E)`,
    over pi, where `E` is what white facets reflect of a direction, and `E_d` what paint's do.
    """

    paint: Color
    again: Color  # what facets reflect that light meets again
    dielectric: Color  # the same of paint alone, in `E_d`
    mean_lost: Scalar  # the mean of 1 - E
    mean_passed: Color  # the mean of 1 - E_d


class _Layers(NamedTuple):
    """All that a material reflects to one eye."""

    surface: Vector
    normal: Vector
    eye: Vector
    bumped: bool
    roughness: Scalar
    alpha: Scalar
    seen: Scalar
    head_on: Color
    grazing: Scalar
    seen_parts: tuple[Scalar, Scalar]  # A and B for the eye
    base: _Base
    scattering: _Even
    glass: _Glass | None
    glass_parts: tuple[Scalar, Scalar] | None
    coat: _Coat | None
    coat_seen: Scalar
    sheen: _Sheen | None

    # --- What is reflected of one direction

    def height(self, light: Vector, behind: bool = False) -> Scalar:
        """Returns the part of a light that is on its side of the surface itself, under bumps."""
        if not self.bumped:
            return jnp.ones((), light.dtype)
        return height_of(-self.surface if behind else self.surface, light)

    def lit(self, light: Vector) -> Scalar:
        """Returns the cosine of incidence."""
        return self.height(light) * jnp.maximum(dot(self.normal, light), 0)

    def even(self, light: Vector) -> Color:
        """Returns the BSDF of what is scattered in all directions, sheen included."""
        cosine = jnp.maximum(dot(self.normal, light), LEAST_COSINE)
        parts = reflected_parts(self.roughness, cosine)
        lost = self._lost(parts) * self._lost(self.seen_parts) / self.scattering.mean_lost
        passed = self._passed(parts) * self._passed(self.seen_parts) / self.scattering.mean_passed
        total = (self.scattering.paint * passed + self.scattering.again * lost) / jnp.pi
        total = total * self._layered(light)
        if self.sheen is not None:
            total += self._coated_by(light) * self._fibres(light)
        return total

    def gloss(self, light: Vector) -> Color:
        """Returns the lobe of the facets, with the cosine."""
        cosine = jnp.maximum(dot(self.normal, light), 0)
        return cosine * self._facets(light)

    def _facets(self, light: Vector) -> Color:
        """Returns the BSDF of the facets: D F G / (4 n.l n.v)."""
        half = self.eye + light
        # Half of its length is the cosine v.h, both of length one.
        mirrors = self._fresnel(safe_norm(half) / 2) * facets(self.alpha, self.normal, half)
        cosine = jnp.maximum(dot(self.normal, light), 0)
        return mirrors * visibility(self.alpha, cosine, self.seen) * self._layered(light)

    def _fresnel(self, cosine: Scalar) -> Color:
        """Returns what a facet reflects: F(f0, f90, c) = f0 + (f90 - f0) (1 - c)^5, and glass."""
        total = self.head_on + (self.grazing - self.head_on) * (1 - cosine) ** 5
        if self.glass is not None and self.glass_parts is not None:
            rest = self.glass.part / self.glass_parts[1]
            total += rest * fresnel(cosine, self.glass.ratio)
        return total

    def highlight(self, light: Vector) -> Color:
        """Returns all that a small lamp mirrors in, with the cosine."""
        total = self.height(light) * self.gloss(light)
        return total if self.coat is None else total + self.coat_gloss(light)

    def coat_gloss(self, light: Vector) -> Color:
        """Returns the lobe of the coat, with the cosine."""
        cosine = jnp.maximum(dot(self.surface, light), 0)
        return jnp.broadcast_to(cosine * self._coat_facets(light), (3,))

    def _coat_facets(self, light: Vector) -> Scalar:
        assert self.coat is not None
        half, alpha = self._coat_eye() + light, _squared(self.coat.roughness)
        reflected = _COAT + (1 - _COAT) * (1 - safe_norm(half) / 2) ** 5
        cosine = jnp.maximum(dot(self.surface, light), 0)
        shape = facets(alpha, self.surface, half) * visibility(alpha, cosine, self.coat_seen)
        return self.coat.part * reflected * shape

    def _coat_eye(self) -> Vector:
        return raise_eye(self.surface, self.eye)

    def through(self, light: Vector) -> Color:
        """Returns what passes of light from behind, with its cosine."""
        assert self.glass is not None and self.glass_parts is not None
        part = self.glass.part / self.glass_parts[1] * self._layered(-light)
        half, share = self._facet_behind(light)
        cosine, down = dot(self.eye, half), jnp.maximum(-dot(self.normal, light), 0)
        passed = 1 - fresnel(jnp.maximum(cosine, 0), self.glass.ratio)
        if self.glass.thin:
            # As if the light came from its mirror image in the surface.
            shape = down * facets(self.alpha, self.normal, half)
            shape *= visibility(self.alpha, down, self.seen)
        else:
            # D G1(v) G1(l) v.h / n.v times d omega_h / d omega_l, with G1(c) = 2 c / (c + s(c))
            view = self.seen + _spread(self.alpha, self.seen)
            shadowing = 2 * down / (down + _spread(self.alpha, down))
            shape = 2 * jnp.maximum(cosine, 0) / view * shadowing * share
            shape *= facets(self.alpha, self.normal, half)
        return part * passed * self.glass.color * jnp.where(down > 0, shape, 0)

    def _facet_behind(self, light: Vector) -> tuple[Vector, Scalar]:
        """Returns the facet that sends light from behind to the eye, and d omega_h / d omega_l."""
        assert self.glass is not None
        if self.glass.thin:
            mirrored = light - 2 * dot(self.normal, light) * self.normal
            half = safe_normalise(self.eye + mirrored)
            return half, safe_divide(jnp.ones((), light.dtype), 4 * dot(self.eye, half))
        # h = -(v + r l) / |.|, on the side of the normal; r^2 |l.h| / (v.h + r l.h)^2
        ratio = self.glass.ratio
        half = safe_normalise(self.eye + ratio * light)
        half = jnp.where(dot(half, self.normal) < 0, -half, half)
        view, behind = dot(self.eye, half), dot(light, half)
        # Both on one side of the facet: no light goes that way.
        passes = (view > 0) & (behind < 0)
        share = safe_divide(ratio**2 * jnp.abs(behind), (view + ratio * behind) ** 2)
        return half, jnp.where(passes, share, 0)

    def outlines(self, lamps: LampPolygons) -> Color:
        """Returns highlights of lamps with a size, but for what the cones show of them."""
        place = self.normal, self.eye, self.roughness
        total = _outlines(self._facets, self.gloss_part(), *place, lamps)
        if self.coat is not None:
            facet = lambda light: jnp.broadcast_to(self._coat_facets(light), (3,))
            whole = jnp.broadcast_to(self._coat_part(self.coat_seen), (3,))
            place = self.surface, self._coat_eye(), self.coat.roughness
            total += _outlines(facet, whole, *place, lamps)
        return total

    # --- What is reflected of all directions

    def gloss_part(self) -> Color:
        """Returns what facets reflect of even light, once."""
        head_on, grazing = self.seen_parts
        total = self.head_on * head_on + self.grazing * grazing
        if self.glass is not None and self.glass_parts is not None:
            total += self.glass.part * self.glass_parts[0]
        return total * self._layer(self.seen, self.coat_seen)

    def reflected(self) -> Color:
        """Returns what facets reflect of even light, also if it meets several of them."""
        again = self.scattering.again * self._lost(self.seen_parts)
        return self.gloss_part() + again * self._layer(self.seen, self.coat_seen)

    def all_reflected(self) -> Color:
        """Returns what facets, paint, sheen and coat reflect of even light."""
        total = self.scattering.paint * self._passed(self.seen_parts)
        if self.glass is not None and self.glass_parts is not None:
            total -= (1 - self.glass.lit) * self.glass.part * self.glass_parts[0]
        total = self.reflected() + total * self._layer(self.seen, self.coat_seen)
        if self.sheen is not None:
            total += self.coated(self.coat_seen) * self.sheen.color * self._fibre_part(self.seen)
        return total if self.coat is None else total + self._coat_part(self.coat_seen)

    def _lost(self, parts: tuple[Scalar, Scalar]) -> Scalar:
        """Returns 1 - E, what white facets do not reflect at once."""
        return jnp.maximum(1 - parts[0] - parts[1], 0)

    def _passed(self, parts: tuple[Scalar, Scalar]) -> Color:
        """Returns 1 - E_d, what passes the facets of paint inwards."""
        once = self.base.head_on * parts[0] + self.base.grazing * parts[1]
        return 1 - once - self.scattering.dielectric * self._lost(parts)

    # --- Layers above

    def _layered(self, light: Vector) -> Scalar:
        """Returns what coat and sheen leave, of light and of its reflection: the lesser of both."""
        if self.coat is None and self.sheen is None:
            return jnp.ones((), light.dtype)
        cosines = (jnp.clip(dot(x, light), LEAST_COSINE, 1) for x in (self.normal, self.surface))
        return jnp.minimum(self._layer(self.seen, self.coat_seen), self._layer(*cosines))

    def _layer(self, cosine: Scalar, coat_cosine: Scalar) -> Scalar:
        left = self.coated(coat_cosine)
        if self.sheen is not None:
            left *= 1 - jnp.max(self.sheen.color) * self._fibre_part(cosine)
        return left

    def coated(self, cosine: Scalar) -> Scalar:
        """Returns what the coat leaves of light from one direction."""
        return jnp.ones_like(cosine) if self.coat is None else 1 - self._coat_part(cosine)

    def _coated_by(self, light: Vector) -> Scalar:
        cosine = jnp.clip(dot(self.surface, light), LEAST_COSINE, 1)
        return jnp.minimum(self.coated(self.coat_seen), self.coated(cosine))

    def _coat_part(self, cosine: Scalar) -> Scalar:
        assert self.coat is not None
        head_on, grazing = reflected_parts(self.coat.roughness, cosine)
        return self.coat.part * (_COAT * head_on + grazing)

    def _fibres(self, light: Vector) -> Color:
        """Returns the BSDF of sheen, of which no direction sends out more than arrives."""
        assert self.sheen is not None
        cosine = jnp.clip(dot(self.normal, light), LEAST_COSINE, 1)
        parts = sheen_part(self.sheen.roughness, cosine)
        parts = jnp.maximum(parts, sheen_part(self.sheen.roughness, self.seen))
        lobe = sheen_lobe(self.sheen.roughness, self.normal, self.eye, light)
        return self.sheen.color * lobe / jnp.maximum(parts, 1)

    def _fibre_part(self, cosine: Scalar) -> Scalar:
        assert self.sheen is not None
        return jnp.minimum(sheen_part(self.sheen.roughness, cosine), 1)

    # --- Cones

    def behind(self) -> _Cone:
        """Returns the cone that shows what is behind the surface."""
        assert self.glass is not None and self.glass_parts is not None
        reflected, _ = self.glass_parts
        weight = self.glass.part * (1 - reflected) * self.glass.color
        weight = weight * self._layer(self.seen, self.coat_seen)
        # A facet that is turned by d turns what is mirrored by 2 d, and what passes by about
        # |1 - 1 / r| d; what passes a leaf, by as much as what is mirrored.
        bend = jnp.full_like(self.alpha, 2.0)
        direction = -self.eye
        if not self.glass.thin:
            bend = jnp.abs(1 - 1 / self.glass.ratio)
            direction = refract(self.eye, self.normal, self.glass.ratio)
        roughness = self.roughness * safe_sqrt(jnp.minimum(bend / 2, 1))
        spread = _SPREAD / 2 * bend * self.alpha
        return _Cone(direction, weight, spread, roughness, jnp.ones_like(self.alpha))

    def coat_cone(self) -> _Cone:
        """Returns the cone that the coat mirrors."""
        assert self.coat is not None
        rough = self.coat.roughness
        return _Cone(
            _dominant(self.surface, self._coat_eye(), rough, self.surface),
            jnp.broadcast_to(self._coat_part(self.coat_seen), (3,)),
            _SPREAD * _squared(rough),
            rough,
            _shown(rough),
        )

    # --- Random directions

    def is_mirror(self) -> Bool[Array, ""]:
        return self.roughness < _MIRROR

    def _chances(self) -> tuple[Scalar, Scalar]:
        """Returns how often a direction is chosen evenly, and by the coat."""
        again = self.scattering.again * self._lost(self.seen_parts)
        even = luminance(self.scattering.paint * self._passed(self.seen_parts) + again)
        gloss = luminance(self.gloss_part())
        if self.sheen is not None:
            even += luminance(self.sheen.color) * self._fibre_part(self.seen)
        if self.glass is not None and self.glass_parts is not None:
            passed = 1 - self.glass_parts[0]
            gloss += luminance(self.glass.color) * self.glass.part * passed
        coat = jnp.zeros_like(even) if self.coat is None else self._coat_part(self.coat_seen)
        total = even + gloss + coat
        return safe_divide(even, total, 1.0), safe_divide(coat, total)

    def _mirrored_chance(self, cosine: Scalar) -> Scalar:
        """Returns how often a facet is chosen to reflect, and not to let light pass."""
        if self.glass is None or self.glass_parts is None:
            return jnp.ones_like(cosine)
        reflected, passed = luminance(self._fresnel(cosine)), luminance(self._passed_by(cosine))
        return safe_divide(reflected, reflected + passed, 1.0)

    def _passed_by(self, cosine: Scalar) -> Color:
        """Returns what a facet lets pass."""
        assert self.glass is not None and self.glass_parts is not None
        rest = self.glass.part / self.glass_parts[1]
        return rest * self.glass.color * (1 - fresnel(cosine, self.glass.ratio))

    def density(self, light: Vector) -> Scalar:
        """Returns the density of directions that are not those of mirrors."""
        even, coat = self._chances()
        cosine = dot(self.normal, light)
        half = self.eye + light
        mirrored = facet_density(self.alpha, self.normal, self.eye, light)
        mirrored *= self._mirrored_chance(safe_norm(half) / 2)
        gloss = jnp.where(self.is_mirror(), 0, 1 - even - coat)
        above = even * cosine / jnp.pi + gloss * mirrored
        density = jnp.where(cosine > 0, above, 0)
        if self.coat is not None:
            lobe = facet_density(
                _squared(self.coat.roughness), self.surface, self._coat_eye(), light
            )
            smooth = self.coat.roughness < _MIRROR
            up = dot(self.surface, light) > 0
            density += jnp.where(smooth | ~up, 0, coat * lobe)
        if self.glass is not None:
            half, share = self._facet_behind(light)
            view = dot(self.eye, half)
            # 2 v.h D / (n.v + s(n.v)) d omega_h / d omega_l
            seen_facets = 2 * jnp.maximum(view, 0) * facets(self.alpha, self.normal, half)
            seen_facets *= share / (self.seen + _spread(self.alpha, self.seen))
            passed = 1 - self._mirrored_chance(jnp.maximum(view, 0))
            density += jnp.where(cosine < 0, gloss * passed * seen_facets, 0)
        return density

    def draw(self, uniform: Float[Array, "3"]) -> _Draw:
        """Chooses a direction."""
        even, coat = self._chances()
        is_diffuse = uniform[0] < even
        is_coat = ~is_diffuse & (uniform[0] < even + coat)
        rest = safe_divide(uniform[0] - even - coat, 1 - even - coat)
        facet = visible_facet(self.alpha, self.normal, self.eye, uniform[1:])
        facet = jnp.where(self.is_mirror(), self.normal, facet)
        cosine = dot(self.eye, facet)
        mirrored = self._mirrored_chance(jnp.maximum(cosine, 0))
        reflects = rest < mirrored
        light = 2 * cosine * facet - self.eye
        # What a mirror reflects, by how often it is chosen.
        layer = self._layer(self.seen, self.coat_seen)
        chance = (1 - even - coat) * mirrored
        weight = _over(layer * self._fresnel(jnp.maximum(cosine, 0)), chance)
        is_lost = dot(self.normal, light) <= 0
        if self.glass is not None:
            if self.glass.thin:
                behind = light - 2 * dot(self.normal, light) * self.normal
            else:
                behind = refract(self.eye, facet, self.glass.ratio)
            chance = (1 - even - coat) * (1 - mirrored)
            passed = _over(layer * self._passed_by(jnp.maximum(cosine, 0)), chance)
            is_lost = jnp.where(reflects, is_lost, dot(self.normal, behind) >= 0)
            light = jnp.where(reflects, light, behind)
            weight = jnp.where(reflects, weight, passed)
        is_specular = self.is_mirror()
        if self.coat is not None:
            eye, smooth = self._coat_eye(), self.coat.roughness < _MIRROR
            facet = visible_facet(_squared(self.coat.roughness), self.surface, eye, uniform[1:])
            facet = jnp.where(smooth, self.surface, facet)
            cosine = jnp.maximum(dot(eye, facet), 0)
            light = jnp.where(is_coat, 2 * cosine * facet - eye, light)
            reflected = self.coat.part * (_COAT + (1 - _COAT) * (1 - cosine) ** 5)
            clear = _over(jnp.broadcast_to(reflected, (3,)), coat)
            weight = jnp.where(is_coat, clear, weight)
            is_specular = jnp.where(is_coat, smooth, is_specular)
            is_lost = jnp.where(is_coat, dot(self.surface, light) <= 0, is_lost)
        light = jnp.where(is_diffuse, cosine_direction(self.normal, uniform[1:]), light)
        is_lost = is_lost & ~is_diffuse
        return _Draw(light, weight, is_lost, is_specular & ~is_diffuse, is_diffuse)


def _prepare(
    surface: Vector,
    normal: Vector,
    eye: Vector,
    bumped: bool,
    base: _Base,
    glass: _Glass | None,
    coat: _Coat | None,
    sheen: _Sheen | None,
) -> _Layers:
    """Returns what all directions of light have in common."""
    color, metallic, roughness, head_on, grazing, opaque = base
    seen = jnp.maximum(dot(normal, eye), LEAST_COSINE)
    means = mean_reflected_parts(roughness)
    mean_lost = jnp.maximum(1 - means[0] - means[1], _LEAST_LOST)
    # F_again = F^2 E / (1 - F (1 - E)), with means F over directions, f0 + (f90 - f0) / 21.
    again = lambda mean: mean**2 * (1 - mean_lost) / (1 - mean * mean_lost)
    dielectric = again(head_on + (grazing - head_on) / 21)
    metal = again(color + (1 - color) / 21)
    mean_once = head_on * means[0] + grazing * means[1]
    scattering = _Even(
        opaque * color,
        opaque * dielectric + metallic * metal,
        dielectric,
        mean_lost,
        jnp.maximum(1 - mean_once - dielectric * mean_lost, _LEAST_LOST),
    )
    return _Layers(
        surface,
        normal,
        eye,
        bumped,
        roughness,
        _squared(roughness),
        seen,
        opaque * head_on + metallic * color,
        opaque * grazing + metallic,
        reflected_parts(roughness, seen),
        base,
        scattering,
        glass,
        None if glass is None else _glass_parts(glass, roughness, seen),
        coat,
        jnp.maximum(dot(surface, eye), LEAST_COSINE),
        sheen,
    )


def _glass_parts(glass: _Glass, roughness: Scalar, seen: Scalar) -> tuple[Scalar, Scalar]:
    """Returns what glass reflects of all light, and how much of it does not meet two facets."""
    reflected, total = glass_parts(glass.ratio, roughness, seen)
    if glass.thin:
        # What passes is a mirror image of what is reflected, and facets hide as much of it.
        head_on, grazing = reflected_parts(roughness, seen)
        total = head_on + grazing
    return reflected, total


# The least part of light that facets lose, which a mirror's do not.
_LEAST_LOST = 1e-4


def _squared(roughness: Scalar) -> Scalar:
    return jnp.maximum(roughness**2, SMOOTHEST)


def _spread(alpha: Scalar, cosine: Scalar) -> Scalar:
    # s(x) = sqrt(a^2 + (1 - a^2) x^2)
    return jnp.sqrt(alpha**2 + (1 - alpha**2) * cosine**2)


def _over(color: Color, chance: Scalar) -> Color:
    return safe_divide(color, jnp.broadcast_to(chance, (3,)))


def _shown(roughness: Scalar) -> Scalar:
    """Returns the part of lamps that a cone shows: 1 - (3 s^2 - 2 s^3) between two roughnesses."""
    step = jnp.clip((roughness - _SHOWN) / (_SHADED - _SHOWN), 0, 1)
    return 1 - step**2 * (3 - 2 * step)


def _dominant(normal: Vector, eye: Vector, roughness: Scalar, surface: Vector) -> Vector:
    """Returns about where the light comes from that a rough surface reflects to the eye."""
    mirrored = 2 * dot(normal, eye) * normal - eye
    # n + (r - n) (1 - a) (sqrt(1 - a) + a), with a = roughness^2: Lagarde and de Rousiers 2014.
    smooth = 1 - roughness**2
    share = smooth * (safe_sqrt(smooth) + 1 - smooth)
    direction = normal + share * (mirrored - normal)
    # Not into the surface, to which a bump may turn it.
    sinks = jnp.maximum(LEAST_COSINE - dot(direction, surface), 0)
    return safe_normalise(direction + sinks * surface)


def _outlines(
    scattered: Callable[[Vector], Color],
    whole: Color,
    normal: Vector,
    eye: Vector,
    roughness: Scalar,
    lamps: LampPolygons,
) -> Color:
    """Returns what a lobe reflects of lamps that its cone does not show."""
    rest = 1 - _shown(roughness)
    return rest * lamp_highlights(scattered, whole, normal, eye, roughness, lamps)
