"""Materials of files to shaders."""

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..images import by_table, srgb_to_linear
from ..io import FileError
from ..models import ModelLayers, ModelMaterial, ModelPart, ModelTexture, textures_of
from ..shaders import (
    AbstractShader,
    Constant,
    GGX,
    ImageTexture,
    NormalMap,
    Principled,
    VertexColor,
    ViewDependent,
)


# The number of a material, and whether the part has coordinates and colours.
_Key = tuple[int | None, bool, bool]
# A part without a material.
_PLAIN = ModelMaterial(roughness=0.6)
_MOST_COPIED = 2**25
_RED, _GREEN, _BLUE, _ALPHA = 0, 1, 2, 3


# The channel of a texture that an input has, of those that are numbers.
_CHANNELS = {
    "specular": _ALPHA,
    "transmission": _RED,
    "clearcoat": _RED,
    "clearcoat_roughness": _GREEN,
    "sheen_roughness": _ALPHA,
}

_OWNERS = {"clearcoat_roughness": "clearcoat", "sheen_roughness": "sheen_color"}


class Appearance(NamedTuple):
    """A surface's shader and opacity; `plain` if both are numbers, which have been checked."""

    shader: AbstractShader
    opacity: Any  # a number, a leaf or an `ImageTexture`
    plain: bool = False


class Materials:
    """Makes the shader of each material of some parts, and counts what shaders cannot show."""

    def __init__(self, materials: tuple[ModelMaterial, ...], parts: Iterable[ModelPart]):
        self.materials, self.left_out = materials, Counter[str]()
        self._textures: dict[tuple, ImageTexture] = {}
        self._pictures, self._copied = set[tuple[int, str]](), 0
        keys = dict.fromkeys(map(_key, parts))
        plain = {key: x for key in keys if (x := self._numbers(key)) is not None}
        self._made = dict(zip(plain, _plain_appearances(list(plain.values())), strict=True))
        hidden = sum(x.opacity == 0 for x in plain.values())
        self.left_out["material that is wholly transparent"] += hidden

    def appearance(self, part: ModelPart) -> Appearance:
        """Returns the shader and the opacity of a part."""
        key = _key(part)
        if key not in self._made:
            self._made[key] = made = self._make(self._material(key), *key[1:])
            self.left_out["material that is wholly transparent"] += (
                isinstance(made.opacity, float) and made.opacity == 0
            )
        return self._made[key]

    def _material(self, key: _Key) -> ModelMaterial:
        return _PLAIN if key[0] is None else self.materials[key[0]]

    def _numbers(self, key: _Key) -> "_Plain | None":
        """Returns a material that is numbers alone; `None` for others."""
        material, (_, has_uv, has_colors) = self._material(key), key
        if has_uv and (textures_of(material) or material.view is not None):
            return None
        if material.layers is not None and not material.unlit:
            return None
        numbers = () if material.unlit else (material.metallic, material.roughness)
        if np.any(material.emission > 0) and not material.unlit:
            numbers += (material.emission,)
        opacity = self._opacity(material, None)
        assert isinstance(opacity, float)
        return _Plain(material.base_color[:3], numbers, opacity, has_colors)

    def _make(self, material: ModelMaterial, has_uv: bool, has_colors: bool) -> Appearance:
        textures = self._placed(material) if has_uv else {}
        color = material.base_color[:3]
        base = self._colored(textures.get("base"), color)
        base = VertexColor(base) if has_colors else base
        if not material.unlit:
            base = self._lit(base, material, textures)
        elif has_uv and material.view is not None:
            base = ViewDependent(base, material.view.texels, material.view.encoded)
        return Appearance(base, self._opacity(material, textures.get("base")))

    def _lit(
        self, base: AbstractShader, material: ModelMaterial, textures: dict[str, "_Placed"]
    ) -> GGX | Principled:
        packed, occluded = textures.get("roughness"), textures.get("occlusion")
        emission = textures.get("emission")
        glows = np.any(material.emission > 0)
        strength = material.occlusion_strength
        kind, more = GGX, {}
        if material.layers is not None:
            kind, more = Principled, self._layers(material.layers, textures)
        return kind(
            base,
            self._number(packed, _BLUE, material.metallic),
            self._number(packed, _GREEN, material.roughness),
            self._normal_map(textures.get("normal"), material.normal_scale),
            self._colored(emission, material.emission) if glows else None,
            # 1 + strength (texel - 1)
            self._number(occluded, _RED, strength, 1 - strength) if occluded else None,
            **more,
        )

    def _layers(self, layers: ModelLayers, textures: dict[str, "_Placed"]) -> dict[str, Any]:
        """Returns the inputs of `Principled` that extensions give."""
        given: dict[str, Any] = {}
        for name, channel in _CHANNELS.items():
            value = getattr(layers, name)
            if value is not None:
                given[name] = self._number(textures.get(name), channel, value)
        for name in ("specular_color", "sheen_color"):
            value = getattr(layers, name)
            if value is not None:
                given[name] = self._colored(textures.get(name), value)
        if layers.ior is not None:
            given["ior"] = layers.ior
        # A roughness of what is not there.
        for name, owner in _OWNERS.items():
            if owner not in given:
                given.pop(name, None)
        if layers.transmission is not None:
            given["thin_walled"] = layers.thickness == 0
            if layers.attenuation_distance is not None:
                given["attenuation_color"] = layers.attenuation_color
                given["attenuation_distance"] = layers.attenuation_distance
        return given

    # --- Textures

    def _placed(self, material: ModelMaterial) -> dict[str, "_Placed"]:
        """Returns the textures that lie on the coordinates which the mesh has, those of the first.

        Others may be shifted and scaled against it.
        """
        textures = textures_of(material)
        first = next(iter(textures.values()), None)
        placed = {}
        for name, texture in textures.items():
            between = _between(first, texture)
            if between is None:
                self.left_out[f"{name} texture with coordinates of its own"] += 1
            else:
                placed[name] = _Placed(texture, *between)
        return placed

    def _colored(self, placed: "_Placed | None", factor: np.ndarray) -> AbstractShader:
        """Returns a colour, times a texture of sRGB numbers."""
        if placed is None:
            return Constant(factor)
        if np.all(factor == 1):
            return self._texture(placed, "color", lambda texels: texels[..., :3])
        table = np.asarray(srgb_to_linear(jnp.arange(256) / 255))[:, None] * factor
        read = lambda texels: by_table(texels[..., :3], table)
        return self._texture(placed, "color", read, factor.tobytes())

    def _number(
        self, placed: "_Placed | None", channel: int, factor: float, shift: float = 0.0
    ) -> float | ImageTexture:
        """Returns a number, times a channel of a texture, which does not always change."""
        if placed is None:
            return factor + shift
        if channel == _ALPHA and placed.texture.texels.shape[-1] < 4:
            return factor + shift
        texels = placed.texture.texels[..., channel]
        if factor == 0 or np.all(texels == texels.flat[0]):
            return float(shift + factor * texels.flat[0] / 255)
        table = shift + factor / 255 * np.arange(256)
        scale = lambda x: by_table(x[..., channel : channel + 1], table)
        return self._texture(placed, f"channel {channel}", scale, (factor, shift))

    def _normal_map(self, placed: "_Placed | None", scale: float) -> NormalMap | None:
        if placed is None:
            return None
        normals = lambda texels: by_table(texels[..., :3], np.arange(256) / 255)
        return NormalMap(self._texture(placed, "normal", normals), scale)

    def _texture(
        self, placed: "_Placed", role: str, read: Callable[[np.ndarray], Any], *key: Any
    ) -> ImageTexture:
        """Makes a texture of what a function returns of the texels, once for every key."""
        texture, size, corner = placed
        name = id(texture.texels), role
        whole = (*name, texture.wrap, size, corner, *key)
        if whole not in self._textures:
            self._spend(name, texture)
            repeat = tuple(wrap != "clamp" for wrap in texture.wrap)
            mirror = tuple(wrap == "mirror" for wrap in texture.wrap)
            self._textures[whole] = ImageTexture(
                read(texture.texels), size, corner, _one(repeat), mirror=_one(mirror)
            )
        return self._textures[whole]

    def _spend(self, name: tuple[int, str], texture: ModelTexture) -> None:
        """Counts copies of one picture with other factors, of which few bytes may want many."""
        self._copied += texture.texels[..., 0].size if name in self._pictures else 0
        self._pictures.add(name)
        if self._copied > _MOST_COPIED:
            raise FileError(
                f"the materials of the file want {self._copied} texels of pictures that they "
                f"share, in other colours; at most {_MOST_COPIED} are made."
            )

    # --- Opacity

    def _opacity(self, material: ModelMaterial, placed: "_Placed | None") -> float | ImageTexture:
        """Returns the opacity of the base colour; masks are there or not, texel by texel."""
        if material.alpha_mode == "OPAQUE":
            return 1.0
        factor, cutoff = float(material.base_color[3]), float(material.alpha_cutoff)
        # In steps of a byte, so that a texel just at the cutoff is not lost to rounding.
        level = (lambda x: x) if material.alpha_mode == "BLEND" else (lambda x: x >= cutoff - 1e-6)
        if placed is None or placed.texture.texels.shape[-1] < 4:
            return float(level(factor))
        alphas = placed.texture.texels[..., 3]
        if np.all(alphas == alphas.flat[0]):
            return float(level(factor * alphas.flat[0] / 255))
        table = level(factor / 255 * np.arange(256))
        read = lambda x: by_table(x[..., 3:], table)
        return self._texture(placed, "opacity", read, material.alpha_mode, factor, cutoff)


class _Plain(NamedTuple):
    """A material without textures."""

    color: np.ndarray
    numbers: tuple[Any, ...]  # metallic, roughness, emission if it glows; none if it is unlit
    opacity: float
    has_colors: bool


def _key(part: ModelPart) -> _Key:
    return part.material, part.uv is not None, part.colors is not None


def _plain_appearances(materials: list[_Plain]) -> list[Appearance]:
    """Makes shaders of numbers that a reader has checked: it is not done again.

    Their arrays go to the device together, those that are alike once: each takes a while.
    """
    kind = jax.dtypes.canonicalize_dtype(float)
    known: dict[tuple, np.ndarray] = {}

    def put(numbers: Any) -> tuple:
        array = np.asarray(numbers, kind)
        key = array.shape, array.tobytes()
        known.setdefault(key, array)
        return key

    keys = [[put(x) for x in (m.color, *m.numbers, m.opacity)] for m in materials]
    leaves = dict(zip(known, jax.device_put(list(known.values())), strict=True))
    found = []
    for material, own in zip(materials, keys, strict=True):
        *rest, opacity = (leaves[key] for key in own)
        shader = _structure(material.has_colors, len(material.numbers)).unflatten(rest)
        found.append(Appearance(shader, 1.0 if material.opacity == 1 else opacity, True))
    return found


@functools.cache
def _structure(has_colors: bool, numbers: int) -> Any:
    """Returns the structure, as a tree, of a shader without textures, by its count of numbers."""
    white = (1.0, 1.0, 1.0)
    base = VertexColor(white) if has_colors else Constant(white)
    glow = white if numbers == 3 else None
    return jax.tree.structure(GGX(base, 0.0, 0.5, emission=glow) if numbers else base)


class _Placed(NamedTuple):
    """A texture, and where it lies in the coordinates of the mesh."""

    texture: ModelTexture
    size: tuple[float, float]
    corner: tuple[float, float]


def _one(pair: tuple[bool, ...]) -> Any:
    """Returns one setting for two equal ones."""
    return pair[0] if pair[0] == pair[1] else pair


def _between(
    first: ModelTexture | None, other: ModelTexture
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Returns size and corner of a texture on the coordinates of the first; `None` if it is turned.

    Coordinates are those of `TriangleMesh`, v upwards; placements have v downwards.
    """
    assert first is not None
    if first.uv_set != other.uv_set:
        return None
    one, two = (_as_matrix(x.placement) for x in (first, other))
    if np.array_equal(one, two):
        return (1.0, 1.0), (0.0, 0.0)
    if abs(np.linalg.det(one)) < 1e-12:
        return None
    # u' = a u + b and v' = c v + d in the file: u' = (u - corner) / size upwards, too.
    matrix = two @ np.linalg.inv(one)
    (a, skew, b), (turn, c, d) = matrix[:2]
    if not (a > 1e-6 and c > 1e-6 and abs(skew) < 1e-6 and abs(turn) < 1e-6):
        return None
    # 1 - v' = c (1 - v) + (1 - c - d)
    return (1 / a, 1 / c), (-b / a, -(1 - c - d) / c)


def _as_matrix(placement: np.ndarray | None) -> np.ndarray:
    return np.eye(3) if placement is None else np.concatenate([placement, [[0, 0, 1]]])
