"""Shaders to materials of a file."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ..images import as_bytes, Image, Linear
from ..models import ModelPart, ViewTexels
from ..scene import Surface
from ..shaders import (
    AbstractShader,
    Constant,
    GGX,
    ImageTexture,
    Lambert,
    Phong,
    Principled,
    VertexColor,
    ViewDependent,
)
from ._texture_maps import bake, map_of, texture_map, TextureMap, vertex_colors


# The order in which textures of a material are searched for the coordinates of the mesh.
ROLES = (
    *("base", "roughness", "normal", "emission", "occlusion"),
    *("specular", "specular_color", "transmission", "clearcoat", "clearcoat_roughness"),
    *("sheen_color", "sheen_roughness"),
)
# The channel of a texture that holds an input of `Principled`, and the one that a file has it in.
_CHANNELS = {
    "specular": (0, 3),
    "transmission": (0, 0),
    "clearcoat": (0, 0),
    "clearcoat_roughness": (1, 1),
    "sheen_roughness": (0, 3),
}


class Look(NamedTuple):
    """A shader as a metallic-roughness material: numbers, times textures or vertices' colours."""

    base: np.ndarray = np.ones(3)
    opacity: float = 1.0  # times the fourth channel of the base texture, if it has one
    metallic: float = 0.0
    roughness: float = 1.0
    normal_scale: float = 1.0
    emission: np.ndarray = np.zeros(3)
    maps: dict[str, TextureMap] = {}  # by role, of bytes
    colors: np.ndarray | None = None
    unlit: bool = False
    view: ViewTexels | None = None
    layers: dict[str, Any] = {}  # numbers and colours of extensions, by the input of `Principled`


class Looks:
    """Makes looks, and counts what a file does not have."""

    def __init__(self, texture_size: int, left_out: Counter[str]):
        self.size, self.left_out = texture_size, left_out

    def look(self, surface: Surface, part: ModelPart) -> Look:
        """Returns the look of a surface's triangles."""
        return self._opacity(self._shaded(surface.shader, part), surface.opacity, part)

    def _shaded(self, shader: AbstractShader, part: ModelPart) -> Look:
        if isinstance(shader, GGX):
            return self._base(self._ggx(shader, part), shader.base_color, part)
        if isinstance(shader, Principled):
            look = self._layers(self._ggx(shader, part), shader, part)
            return self._base(look, shader.base_color, part)
        if isinstance(shader, Lambert):
            return self._base(Look(), shader.albedo, part)
        if isinstance(shader, Phong):
            # The lobe of this roughness is about as wide; see `Phong`.
            roughness = (2 * float(shader.shininess) + 1) ** -0.25
            return self._base(Look(roughness=roughness), shader.diffuse, part)
        if isinstance(shader, ViewDependent):
            return self._view(self._base(Look(unlit=True), shader.base, part), shader, part)
        return self._base(Look(unlit=True), shader, part)

    def _view(self, look: Look, shader: ViewDependent, part: ModelPart) -> Look:
        """Adds how the colour changes with the view; a base that lies otherwise stays alone."""
        assert isinstance(shader.terms, ImageTexture)
        maps, own = list(look.maps.values()), texture_map(shader.terms)
        unit = TextureMap(own.texels, np.ones(2), np.zeros(2))
        placed = [x._replace(texels=own.texels) for x in [own, *maps]]
        if part.uv is None or not all(unit.lies_like(x) for x in placed):
            self.left_out["change of a colour with the view, placed unlike its base"] += 1
            return look
        texels = own.texels.reshape(*own.texels.shape[:2], -1, 3)
        return look._replace(view=ViewTexels(texels, shader.encoded))

    def _base(self, look: Look, shader: AbstractShader, part: ModelPart) -> Look:
        """Adds a base colour: a number, a texture, or colours of the vertices."""
        if isinstance(shader, VertexColor):
            inner = self._base(look, shader.shader, part)
            own = np.ones((len(part.vertices), 3)) if part.colors is None else part.colors
            return inner._replace(colors=own if inner.colors is None else inner.colors * own)
        if isinstance(shader, Constant):
            return look._replace(base=np.clip(np.asarray(shader.color, float), 0, 1))
        found = map_of(shader, part, self.size)
        if found is None:
            return look._replace(colors=np.clip(vertex_colors(shader, part), 0, 1))
        return _with_map(look, "base", found._replace(texels=_encoded(found.texels)))

    def _opacity(self, look: Look, value: Any, part: ModelPart) -> Look:
        """Adds a number, or a fourth channel of the base texture."""
        found = self._input("opacity", value, 0, part)
        if not isinstance(found, TextureMap):
            return look._replace(opacity=found)
        white = found._replace(texels=np.full((*found.texels.shape[:2], 3), 255, np.uint8))
        base = look.maps.get("base", white)
        if not base.lies_like(found):
            # Two textures that lie in two ways become one, as patterns do.
            size = max(self.size, *base.texels.shape[:2], *found.texels.shape[:2])
            base, found = (bake(shader, part, size) for shader in (base.as_shader(), value))
            base = base._replace(texels=_encoded(base.texels))
        texels = np.concatenate([base.texels, _rounded(found.texels[..., :1])], axis=2)
        return _with_map(look, "base", base._replace(texels=texels))

    # --- The other inputs of GGX

    def _ggx(self, shader: GGX | Principled, part: ModelPart) -> Look:
        look = self._metallic_roughness(shader, part)
        if shader.normal_map is not None:
            look = self._normal(look, shader.normal_map.texture, part)
            look = look._replace(normal_scale=float(shader.normal_map.scale))
        if shader.emission is not None:
            look = self._emission(look, shader.emission, part)
        if shader.occlusion is not None:
            look = self._occlusion(look, shader.occlusion, part)
        return look

    def _metallic_roughness(self, shader: GGX | Principled, part: ModelPart) -> Look:
        """Puts both into one texture, if one of them is none of a number."""
        inputs: dict[str, tuple[Any, int]] = {
            "metallic": (shader.metallic, 2),
            "roughness": (shader.roughness, 1),
        }
        found: dict[str, Any] = {name: self._input(name, *x, part) for name, x in inputs.items()}
        maps = {name: x for name, x in found.items() if isinstance(x, TextureMap)}
        look = Look(**{name: x for name, x in found.items() if name not in maps})
        if not maps:
            return look
        first, *others = maps.values()
        if not all(first.lies_like(x) for x in others):
            # Two textures that lie in two ways become one, as patterns do.
            maps = {name: bake(inputs[name][0], part, self.size) for name in maps}
            first = maps["metallic"]
        # glTF: roughness in green, metallic in blue.
        texels = np.ones(first.texels.shape)
        for name, own in maps.items():
            texels[..., inputs[name][1]] = own.texels[..., inputs[name][1]]
        look = look._replace(**dict.fromkeys(maps, 1.0))
        return _with_map(look, "roughness", first._replace(texels=_rounded(texels)))

    def _layers(self, look: Look, shader: Principled, part: ModelPart) -> Look:
        """Adds what extensions have."""
        layers: dict[str, Any] = {"thin_walled": shader.thin_walled}
        for name, (channel, written) in _CHANNELS.items():
            value = getattr(shader, name)
            if value is None:
                continue
            layers[name] = self._input(name, value, channel, part)
            if isinstance(layers[name], TextureMap):
                read, layers[name] = layers[name], 1.0
                texels = np.ones((*read.texels.shape[:2], written + 1 if written == 3 else 3))
                texels[..., written] = read.texels[..., channel]
                look = _with_map(look, name, read._replace(texels=_rounded(texels)))
        for name in ("specular_color", "sheen_color", "attenuation_color"):
            value = getattr(shader, name)
            if value is not None:
                look, layers[name] = self._color(look, name, value, part)
        for name in ("ior", "attenuation_distance"):
            value = getattr(shader, name)
            if value is not None:
                layers[name] = self._number(name, value, part)
        if shader.emission_strength is not None:
            strength = self._number("emission_strength", shader.emission_strength, part)
            look = look._replace(emission=strength * look.emission)
        return look._replace(layers=layers)

    def _color(
        self, look: Look, name: str, shader: AbstractShader, part: ModelPart
    ) -> tuple[Look, np.ndarray]:
        """Returns the factor of a colour, and the look with its texture."""
        if isinstance(shader, Constant):
            return look, np.maximum(np.asarray(shader.color, float), 0)
        found = map_of(shader, part, self.size)
        if found is None or name not in ROLES:
            return look, np.maximum(self._mean(name, shader, part), 0)
        most = max(float(found.texels.max()), 1.0)
        texels = _encoded(found.texels / most)
        return _with_map(look, name, found._replace(texels=texels)), np.full(3, most)

    def _input(self, name: str, value: Any, channel: int, part: ModelPart) -> TextureMap | float:
        """Returns a number, or a texture; of what is neither, the mean."""
        if not isinstance(value, AbstractShader):
            return float(value)
        if isinstance(value, Constant):
            return float(value.color[channel])
        found = map_of(value, part, self.size)
        return float(self._mean(name, value, part)[channel]) if found is None else found

    def _number(self, name: str, value: Any, part: ModelPart) -> float:
        """Returns a number that no texture of a file multiplies; of a pattern, the mean."""
        if isinstance(value, AbstractShader) and not isinstance(value, Constant):
            return float(self._mean(name, value, part)[0])
        return float(value.color[0] if isinstance(value, Constant) else value)

    def _mean(self, name: str, shader: AbstractShader, part: ModelPart) -> np.ndarray:
        self.left_out[f"{name} of a {type(shader).__name__}, of which the mean is used"] += 1
        return np.mean(vertex_colors(shader, part), axis=0)

    def _normal(self, look: Look, shader: AbstractShader, part: ModelPart) -> Look:
        found = map_of(shader, part, self.size)
        if found is None:
            self.left_out[f"normal map of a {type(shader).__name__}"] += 1
            return look
        return _with_map(look, "normal", found._replace(texels=_rounded(found.texels)))

    def _emission(self, look: Look, shader: AbstractShader, part: ModelPart) -> Look:
        if isinstance(shader, Constant):
            return look._replace(emission=np.maximum(np.asarray(shader.color, float), 0))
        found = map_of(shader, part, self.size)
        if found is None:
            return look._replace(emission=np.maximum(self._mean("emission", shader, part), 0))
        # Texels are at most 1; what is brighter goes into the factor.
        most = max(float(found.texels.max()), 1.0)
        look = look._replace(emission=np.full(3, most))
        return _with_map(look, "emission", found._replace(texels=_encoded(found.texels / most)))

    def _occlusion(self, look: Look, value: Any, part: ModelPart) -> Look:
        """Adds a texture, also for a number: the format has no factor without one."""
        found = self._input("occlusion", value, 0, part)
        if not isinstance(found, TextureMap):
            found = map_of(Constant([found] * 3), part, self.size)
            assert found is not None
        red = np.repeat(found.texels[..., :1], 3, axis=2)
        return _with_map(look, "occlusion", found._replace(texels=_rounded(red)))


def _with_map(look: Look, role: str, texture: TextureMap) -> Look:
    return look._replace(maps={**look.maps, role: texture})


def _encoded(texels: np.ndarray) -> np.ndarray:
    """Returns linear light as sRGB bytes."""
    return as_bytes(Image(texels, space=Linear()))


def _rounded(texels: np.ndarray) -> np.ndarray:
    """Returns numbers as bytes."""
    return np.round(255 * np.clip(texels, 0, 1)).astype(np.uint8)
