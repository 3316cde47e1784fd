"""Materials of files to shaders."""

from collections import Counter
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..images import srgb_to_linear
from ..io import FileError
from ..models import ModelMaterial, ModelPart, ModelTexture
from ..shaders import AbstractShader, Constant, GGX, ImageTexture, VertexColor


# A part without a material.
_PLAIN = ModelMaterial(roughness=0.6)
_MOST_COPIED = 2**25
# What a metallic-roughness material has that `GGX` has not.
_LEFT_OUT = {
    "normal_texture": "normal map",
    "occlusion_texture": "occlusion texture",
    "emission_texture": "emission texture",
}


class Appearance(NamedTuple):
    """A surface's shader and opacity."""

    shader: AbstractShader
    opacity: float


class Materials:
    """Makes each material's shader once, and counts what shaders cannot show."""

    def __init__(self, materials: tuple[ModelMaterial, ...]):
        self.materials, self.left_out = materials, Counter[str]()
        self._made: dict[tuple[int | None, bool, bool], Appearance] = {}
        self._textures: dict[tuple, AbstractShader] = {}
        self._pictures, self._copied = set[int](), 0

    def appearance(self, part: ModelPart) -> Appearance:
        """Returns the shader and the opacity of a part."""
        key = part.material, part.uv is not None, part.colors is not None
        if key not in self._made:
            material = _PLAIN if part.material is None else self.materials[part.material]
            self._made[key] = self._make(material, *key[1:])
        return self._made[key]

    def _make(self, material: ModelMaterial, has_uv: bool, has_colors: bool) -> Appearance:
        self._count(material)
        base = self._base(material, has_uv)
        base = VertexColor(base) if has_colors else base
        if not material.unlit:
            base = GGX(base, *self._metallic_roughness(material))
        return Appearance(base, self._opacity(material))

    def _base(self, material: ModelMaterial, has_uv: bool) -> AbstractShader:
        factor, texture = material.base_color[:3], material.base_texture
        if texture is None or not has_uv:
            return Constant(factor)
        key = id(texture.texels), texture.wrap, factor.tobytes()
        if key not in self._textures:
            self._spend(texture)
            self._textures[key] = self._texture(texture, factor)
        return self._textures[key]

    def _spend(self, texture: ModelTexture) -> None:
        """Counts copies of one picture with other factors, of which few bytes may want many."""
        name, texels = id(texture.texels), texture.texels[..., 0].size
        self._copied += texels if name in self._pictures else 0
        self._pictures.add(name)
        if self._copied > _MOST_COPIED:
            raise FileError(
                f"the materials of the file want {self._copied} texels of pictures that they "
                f"share, in other colours; at most {_MOST_COPIED} are made."
            )

    def _texture(self, texture: ModelTexture, factor: np.ndarray) -> ImageTexture:
        texels: Any = texture.texels[..., :3]
        extent = [1.0, 1.0]
        for axis in (0, 1):
            if texture.wrap[axis] == "mirror":
                # The picture and its mirror image, in turn, are a picture that repeats. The first
                # row is at the top, where v is largest.
                parts = [texels, np.flip(texels, 1 - axis)]
                texels = np.concatenate(parts if axis == 0 else parts[::-1], axis=1 - axis)
                extent[axis] = 2.0
        clamped = [wrap == "clamp" for wrap in texture.wrap]
        if any(clamped) and not all(clamped):
            self.left_out["texture that repeats along one axis only"] += 1
        if not np.all(factor == 1):
            texels = srgb_to_linear(jnp.asarray(texels, jnp.float32) / 255) * factor
        return ImageTexture(texels, extent, (0.0, 0.0), repeat=not all(clamped))

    def _metallic_roughness(self, material: ModelMaterial) -> tuple[float, float]:
        """Returns numbers; of a texture, the factors times its means."""
        texture = material.roughness_texture
        if texture is None:
            return material.metallic, material.roughness
        flat = texture.texels.reshape(-1, texture.texels.shape[-1])
        if np.any(flat[:, 1:3] != flat[:1, 1:3]):
            self.left_out["metallic-roughness texture, of which the mean is used"] += 1
        _, roughness, metallic = flat[:, :3].mean(axis=0) / 255
        return float(material.metallic * metallic), float(material.roughness * roughness)

    def _opacity(self, material: ModelMaterial) -> float:
        if material.alpha_mode == "OPAQUE":
            return 1.0
        texture, alpha = material.base_texture, float(material.base_color[3])
        if texture is not None and texture.texels.shape[-1] == 4:
            alphas = texture.texels[..., 3]
            if np.any(alphas != alphas.flat[0]):
                self.left_out["texture's opacity, of which the mean is used"] += 1
            alpha *= float(alphas.mean()) / 255
        if material.alpha_mode == "MASK":
            return float(alpha >= material.alpha_cutoff)
        return alpha

    def _count(self, material: ModelMaterial) -> None:
        for name, what in _LEFT_OUT.items():
            self.left_out[what] += getattr(material, name) is not None
        self.left_out["emission"] += bool(np.any(material.emission > 0))
