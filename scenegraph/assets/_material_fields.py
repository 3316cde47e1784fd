"""Materials as JSON, and the coordinates of their textures."""

from typing import Any

import numpy as np

from ..models import VIEW_DEPENDENCE, ViewTexels
from ._glb import GlbContent
from ._looks import Look, ROLES
from ._texture_maps import TextureMap, transform_between


_IN_PBR = "baseColorTexture", "metallicRoughnessTexture"
_OTHERS = "normalTexture", "emissiveTexture", "occlusionTexture"
_FIELDS = dict(zip(ROLES[:5], (*_IN_PBR, *_OTHERS), strict=True))
# The extension and the field of an input of `Principled`.
_LAYERS = {
    "ior": ("ior", "ior"),
    "specular": ("specular", "specularFactor"),
    "specular_color": ("specular", "specularColorFactor"),
    "transmission": ("transmission", "transmissionFactor"),
    "attenuation_color": ("volume", "attenuationColor"),
    "attenuation_distance": ("volume", "attenuationDistance"),
    "clearcoat": ("clearcoat", "clearcoatFactor"),
    "clearcoat_roughness": ("clearcoat", "clearcoatRoughnessFactor"),
    "sheen_color": ("sheen", "sheenColorFactor"),
    "sheen_roughness": ("sheen", "sheenRoughnessFactor"),
}
_STRENGTH, _PLACE = "KHR_materials_emissive_strength", "KHR_texture_transform"


def material_of(look: Look, content: GlbContent) -> dict[str, Any]:
    """Returns the JSON of a material, whose textures it adds to the file."""
    textures = {
        _FIELDS[role]: _texture(look, role, content) for role in _FIELDS if role in look.maps
    }
    pbr: dict[str, Any] = {
        "baseColorFactor": [*map(float, look.base), look.opacity],
        "metallicFactor": look.metallic,
        "roughnessFactor": look.roughness,
    }
    pbr |= {name: textures.pop(name) for name in _IN_PBR if name in textures}
    material: dict[str, Any] = {"pbrMetallicRoughness": pbr, **textures}
    if mode := _alpha_mode(look):
        material["alphaMode"] = mode
    extensions = _emission(look, material)
    extensions |= _layers(look, content)
    if look.unlit:
        extensions["KHR_materials_unlit"] = {}
    if look.view is not None:
        extensions[VIEW_DEPENDENCE] = _view_dependence(look.view, content)
    content.extensions.update(extensions)
    return material | ({"extensions": extensions} if extensions else {})


def _layers(look: Look, content: GlbContent) -> dict[str, Any]:
    """Returns the extensions of a `Principled`."""
    extensions: dict[str, Any] = {}
    for name, (extension, field) in _LAYERS.items():
        if name not in look.layers:
            continue
        fields = extensions.setdefault(f"KHR_materials_{extension}", {})
        value = look.layers[name]
        fields[field] = value.tolist() if isinstance(value, np.ndarray) else value
        if name in look.maps:
            fields[field.replace("Factor", "Texture")] = _texture(look, name, content)
    if not look.layers.get("thin_walled", True):
        # Other programs use the thickness of a body that they do not trace light through.
        if "transmission" in look.layers:
            extensions.setdefault("KHR_materials_volume", {})["thicknessFactor"] = 1.0
    elif "KHR_materials_volume" in extensions:
        extensions["KHR_materials_volume"]["thicknessFactor"] = 0.0
    if look.layers and not extensions:
        # Any extension says that the material is one of these.
        extensions["KHR_materials_ior"] = {"ior": 1.5}
    return extensions


def _view_dependence(view: ViewTexels, content: GlbContent) -> dict[str, Any]:
    """Returns the extension that other programs ignore: a picture a harmonic, with zero at 128."""
    scale = max(float(np.abs(view.texels).max()), 1e-6)
    numbers = np.round(128 + 127 * view.texels / scale).astype(np.uint8)
    pictures = np.moveaxis(numbers, 2, 0)
    no = (False, False)
    textures = [{"index": content.texture(np.ascontiguousarray(x), no, no)} for x in pictures]
    return {"textures": textures, "scale": scale, "encoded": view.encoded}


def _alpha_mode(look: Look) -> str:
    """Returns how the opacity counts: MASK where texels are there or not; empty for opaque ones."""
    texels = look.maps["base"].texels if "base" in look.maps else np.zeros((1, 1, 3))
    if texels.shape[2] == 4 and look.opacity == 1 and np.all(texels[..., 3] % 255 == 0):
        return "MASK"
    return "BLEND" if texels.shape[2] == 4 or look.opacity < 1 else ""


def _emission(look: Look, material: dict[str, Any]) -> dict[str, Any]:
    """Adds the factor of emission, at most 1, and returns the extension that says the rest."""
    if not np.any(look.emission > 0):
        return {}
    strength = max(float(np.max(look.emission)), 1.0)
    material["emissiveFactor"] = (look.emission / strength).tolist()
    return {_STRENGTH: {"emissiveStrength": strength}} if strength > 1 else {}


def _texture(look: Look, role: str, content: GlbContent) -> dict[str, Any]:
    own = look.maps[role]
    info: dict[str, Any] = {"index": content.texture(own.texels, own.repeat, own.mirror)}
    if place := transform_between(_first(look), own):
        content.extensions.add(_PLACE)
        info["extensions"] = {_PLACE: place}
    return info | ({"scale": look.normal_scale} if role == "normal" else {})


def _first(look: Look) -> TextureMap:
    """Returns the texture whose coordinates are those of the mesh."""
    return next(look.maps[role] for role in ROLES if role in look.maps)


def file_coordinates(look: Look, uv: np.ndarray) -> np.ndarray:
    """Returns the coordinates of the first texture, v downwards."""
    if look.maps:
        first = _first(look)
        uv = (uv - first.corner) / first.size
    return np.stack([uv[:, 0], 1 - uv[:, 1]], axis=1)
