"""The materials, textures and pictures of a glTF file."""

import math

import numpy as np

from ..io import decode_picture, FileError
from ._fields import Fields
from ._gltf_buffers import Buffers
from ._model import ModelMaterial, ModelTexture, ViewTexels


_WRAPS = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
# Few bytes may claim to be a huge picture: all together have at most so many texels, and so many
# for each byte.
_AT_LEAST, _TIMES = 2**25, 64
_MOST_TERMS = 2**24
# Extensions of materials whose numbers stay without effect.
VIEW_DEPENDENCE = "SCENEGRAPH_view_dependence"
_PLAIN = ("KHR_materials_unlit", "KHR_materials_emissive_strength", VIEW_DEPENDENCE)


class Textures:
    """Reads the pictures that materials use, each once."""

    def __init__(self, top: Fields, buffers: Buffers):
        self.buffers, self.notes = buffers, list[str]()
        self.textures, self.samplers = top.objects("textures"), top.objects("samplers")
        self.images = top.objects("images")
        self._pictures: dict[int, np.ndarray | None] = {}
        self._free = _AT_LEAST

    def read(self, owner: Fields, name: str) -> ModelTexture | None:
        """Returns the texture of a field; `None` where there is none that can be read."""
        return self.read_info(owner.object(name)) if name in owner else None

    def read_info(self, info: Fields) -> ModelTexture | None:
        """Returns the texture that an object names."""
        index = info.index("index", len(self.textures), "textures")
        if index is None:
            raise FileError(f"{info.where} has no index.")
        texture = self.textures[index]
        image = self._source(texture)
        texels = None if image is None else self._picture(image)
        if image is None or texels is None:
            self.notes.append(f"{texture.where}: without a picture that can be read")
            return None
        place = info.object("extensions").object("KHR_texture_transform")
        uv_set = place.whole("texCoord", info.whole("texCoord", 0))
        title = self.images[image].text("name") or self.images[image].text("uri")[:60]
        return ModelTexture(texels, self._wrap(texture), title, uv_set, _placement(place))

    def _source(self, texture: Fields) -> int | None:
        webp = texture.object("extensions").object("EXT_texture_webp")
        source = webp.index("source", len(self.images), "images")
        return texture.index("source", len(self.images), "images") if source is None else source

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
        view = image.index("bufferView", len(self.buffers.views), "bufferViews")
        if view is not None:
            data = bytes(self.buffers.view(view))
        elif "uri" in image:
            data = self._file(image)
        else:
            raise FileError(f"{image.where} has neither uri nor bufferView.")
        if data is None:
            return None
        self._free += _TIMES * len(data)
        name = f"{image.where} ({image.text('uri')[:60]})"
        texels = decode_picture(data, name, most=self._free)
        self._free -= texels.shape[0] * texels.shape[1]
        return texels

    def _file(self, image: Fields) -> bytes | None:
        """Returns the bytes of a picture; of a file that is missing, `None`, and a note."""
        try:
            return self.buffers.resource(image)
        except FileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                self.notes.append(f"{image.where}: there is no file {image.text('uri')!r}")
                return None
            raise


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
    for name in sorted(set(extensions.value) - set(_PLAIN)):
        textures.notes.append(f"{material.where}: {name}")
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
