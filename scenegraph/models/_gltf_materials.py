"""The materials, textures and pictures of a glTF file."""

import math
import urllib.parse
from collections import Counter

import numpy as np

from ..io import FileError
from ._fields import count_extensions, Fields, is_index, shown
from ._gltf_buffers import Buffers
from ._model import ModelLayers, ModelMaterial, ModelTexture, ViewTexels
from ._pictures import Pictures


# Extensions that name another picture of a kind that is read.
_SOURCES = ("EXT_texture_webp", "EXT_texture_avif")
_WRAPS = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
_MOST_TERMS = 2**24
VIEW_DEPENDENCE = "SCENEGRAPH_view_dependence"
LAYERS = tuple(
    f"KHR_materials_{x}"
    for x in ("ior", "specular", "transmission", "volume", "clearcoat", "sheen")
)
_READ = ("KHR_materials_unlit", "KHR_materials_emissive_strength", VIEW_DEPENDENCE, *LAYERS)


class Textures:
    """Reads the pictures that materials use, each once."""

    def __init__(self, top: Fields, buffers: Buffers, left_out: Counter[str]):
        self.buffers, self.pictures, self.left_out = buffers, Pictures(), left_out
        self.notes = self.pictures.notes
        self.textures, self.samplers = top.objects("textures"), top.objects("samplers")
        self.images = top.objects("images")
        self._pictures: dict[int, np.ndarray | None] = {}

    def read(self, owner: Fields, name: str) -> ModelTexture | None:
        """Returns the texture of a field; `None` where there is none that can be read."""
        return self.read_info(owner.object(name)) if name in owner else None

    def read_info(self, info: Fields) -> ModelTexture | None:
        """Returns the texture that an object names."""
        count_extensions(info, ("KHR_texture_transform",), "use of a texture", self.left_out)
        index = info.value.get("index")
        if not is_index(index, len(self.textures)):
            self.notes[f"{info.at('index')} is {shown(index)}: there is no such texture"] += 1
            return None
        texture = self.textures[int(index)]
        image = self._source(texture)
        texels = None if image is None else self._picture(image)
        if image is None or texels is None:
            return None
        place = info.object("extensions").object("KHR_texture_transform")
        uv_set = place.whole("texCoord", info.whole("texCoord", 0))
        title = self.images[image].text("name") or self.images[image].text("uri")[:60]
        return ModelTexture(texels, self._wrap(texture), title, uv_set, _placement(place))

    def _source(self, texture: Fields) -> int | None:
        """Returns the number of a picture; of none that can be read, `None` and a note."""
        extensions = texture.object("extensions")
        for name in _SOURCES:
            index = extensions.object(name).value.get("source")
            if is_index(index, len(self.images)):
                return int(index)
        index, other = texture.value.get("source"), ", ".join(sorted(extensions.value))[:200]
        if is_index(index, len(self.images)):
            count_extensions(texture, _SOURCES, "texture", self.left_out)
            return int(index)
        what = (
            f"has its picture in {other} alone"
            if index is None and other
            else (f"has the picture {shown(index)}, which is not there")
        )
        self.notes[f"{texture.where} {what}"] += 1
        return None

    def _wrap(self, texture: Fields) -> tuple[str, str]:
        index = texture.index("sampler", len(self.samplers), "samplers")
        if index is None:
            return "repeat", "repeat"
        sampler = self.samplers[index]
        codes = [sampler.whole(name, 10497) for name in ("wrapS", "wrapT")]
        if not set(codes) <= set(_WRAPS):
            raise FileError(f"{sampler.where} has a wrap mode that glTF does not have: {codes}.")
        return _WRAPS[codes[0]], _WRAPS[codes[1]]

    def _picture(self, index: int) -> np.ndarray | None:
        if index not in self._pictures:
            self._pictures[index] = self._load(self.images[index])
        return self._pictures[index]

    def _load(self, image: Fields) -> np.ndarray | None:
        count_extensions(image, (), "image", self.left_out)
        view, uri = image.index("bufferView", len(self.buffers.views), "bufferViews"), "uri"
        name = f"{image.where} ({image.text(uri)[:60]})"
        if view is not None:
            return self.pictures.decode(bytes(self.buffers.view(view)), name)
        if uri not in image:
            self.notes[f"{image.where} has neither uri nor bufferView"] += 1
            return None
        if image.text(uri).startswith("data:"):
            return self.pictures.decode(self.buffers.resource(image), image.where)
        plain = urllib.parse.unquote(image.text(uri))
        return self.pictures.beside(self.buffers.path.parent, plain, image.where)


def _placement(place: Fields) -> np.ndarray | None:
    """Returns the matrix of KHR_texture_transform: shift, rotation and scale of uv."""
    if not place.value:
        return None
    (x, y), (a, b) = place.numbers("offset", [0.0, 0.0]), place.numbers("scale", [1.0, 1.0])
    turn = place.number("rotation", 0.0)
    cos, sin = math.cos(turn), math.sin(turn)
    # T R S, with the rotation matrix that the extension's text has.
    return np.array([[cos * a, sin * b, x], [-sin * a, cos * b, y]])


def read_material(material: Fields, textures: Textures) -> ModelMaterial:
    """Reads one metallic-roughness material."""
    pbr, extensions = material.object("pbrMetallicRoughness"), material.object("extensions")
    normal, occlusion = material.object("normalTexture"), material.object("occlusionTexture")
    for name in sorted(set(extensions.value) - set(_READ)):
        textures.notes[f"{material.where}: {name}"] += 1
    strength = extensions.object("KHR_materials_emissive_strength").number("emissiveStrength", 1.0)
    return ModelMaterial(
        name=material.text("name"),
        base_color=np.clip(pbr.numbers("baseColorFactor", [1.0] * 4), 0, 1),
        metallic=min(max(pbr.number("metallicFactor", 1.0), 0.0), 1.0),
        roughness=min(max(pbr.number("roughnessFactor", 1.0), 0.0), 1.0),
        emission=np.maximum(material.numbers("emissiveFactor", [0.0] * 3) * strength, 0),
        base_texture=textures.read(pbr, "baseColorTexture"),
        roughness_texture=textures.read(pbr, "metallicRoughnessTexture"),
        normal_texture=textures.read(material, "normalTexture"),
        normal_scale=normal.number("scale", 1.0),
        occlusion_texture=textures.read(material, "occlusionTexture"),
        occlusion_strength=occlusion.number("strength", 1.0),
        emission_texture=textures.read(material, "emissiveTexture"),
        alpha_mode=_alpha_mode(material),
        alpha_cutoff=material.number("alphaCutoff", 0.5),
        double_sided=material.flag("doubleSided"),
        unlit="KHR_materials_unlit" in extensions,
        view=_view_texels(extensions, textures),
        layers=_layers(extensions, textures),
    )


def _layers(extensions: Fields, textures: Textures) -> ModelLayers | None:
    """Reads what extensions add; `None` if there are none of those."""
    given = [name for name in LAYERS if name in extensions]
    if not given:
        return None
    ior, specular, transmission, volume, coat, sheen = (extensions.object(x) for x in LAYERS)
    found = {
        "specular": textures.read(specular, "specularTexture"),
        "specular_color": textures.read(specular, "specularColorTexture"),
        "transmission": textures.read(transmission, "transmissionTexture"),
        "clearcoat": textures.read(coat, "clearcoatTexture"),
        "clearcoat_roughness": textures.read(coat, "clearcoatRoughnessTexture"),
        "sheen_color": textures.read(sheen, "sheenColorTexture"),
        "sheen_roughness": textures.read(sheen, "sheenRoughnessTexture"),
    }
    found = {name: texture for name, texture in found.items() if texture is not None}
    for owner, name in ((coat, "clearcoatNormalTexture"), (volume, "thicknessTexture")):
        textures.left_out[name] += name in owner

    def part(owner: Fields, name: str, field: str, default: float) -> float | None:
        """Returns a number from 0 to 1; `None` if neither it nor a texture is given."""
        if field not in owner and name not in found:
            return None
        return min(max(owner.number(field, default), 0.0), 1.0)

    tint = specular.numbers("specularColorFactor", [1.0] * 3)
    has_tint = "specularColorFactor" in specular or "specular_color" in found
    distance = volume.number("attenuationDistance", 0.0)
    fibres = np.clip(sheen.numbers("sheenColorFactor", [0.0] * 3), 0, 1)
    return ModelLayers(
        # An index of 0 stands for one without end.
        ior=max(ior.number("ior", 1.5), 1.0) if LAYERS[0] in given else None,
        specular=part(specular, "specular", "specularFactor", 1.0),
        specular_color=np.maximum(tint, 0) if has_tint else None,
        transmission=part(transmission, "transmission", "transmissionFactor", 0.0),
        thickness=max(volume.number("thicknessFactor", 0.0), 0.0),
        attenuation_color=np.clip(volume.numbers("attenuationColor", [1.0] * 3), 0, 1),
        attenuation_distance=distance if distance > 0 else None,
        clearcoat=part(coat, "clearcoat", "clearcoatFactor", 0.0),
        clearcoat_roughness=part(coat, "clearcoat_roughness", "clearcoatRoughnessFactor", 0.0),
        sheen_color=fibres if LAYERS[5] in given else None,
        sheen_roughness=part(sheen, "sheen_roughness", "sheenRoughnessFactor", 0.0),
        textures=found,
    )


def _view_texels(extensions: Fields, textures: Textures) -> ViewTexels | None:
    """Reads how a colour changes with the view: a picture a harmonic, with zero at 128."""
    if VIEW_DEPENDENCE not in extensions:
        return None
    own = extensions.object(VIEW_DEPENDENCE)
    infos, scale = own.objects("textures"), own.number("scale", 1.0)
    if len(infos) not in (1, 4, 9, 16):
        raise FileError(f"{own.where} must have 1, 4, 9 or 16 textures; it has {len(infos)}.")
    found = [textures.read_info(info) for info in infos]
    pictures = [x.texels[..., :3] for x in found if x is not None]
    if len(pictures) < len(infos):
        return None  # with a note on the picture
    if len({x.shape for x in pictures}) > 1:
        raise FileError(f"{own.where} has pictures of several sizes.")
    if sum(x.size for x in pictures) > 3 * _MOST_TERMS:  # One picture may be named many times.
        raise FileError(f"{own.where} has more than {_MOST_TERMS} texels.")
    terms = (np.stack(pictures, axis=2).astype(np.float32) - 128) * np.float32(scale / 127)
    return ViewTexels(terms, own.flag("encoded"))


def _alpha_mode(material: Fields) -> str:
    mode = material.text("alphaMode", "OPAQUE")
    if mode not in ("OPAQUE", "MASK", "BLEND"):
        raise FileError(
            f"{material.at('alphaMode')} must be OPAQUE, MASK or BLEND; it is {mode!r}."
        )
    return mode
