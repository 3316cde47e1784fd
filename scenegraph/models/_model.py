"""The contents of a file of meshes as plain arrays: the record that all its readers return."""

from collections import Counter
from typing import NamedTuple

import numpy as np


class ModelTexture(NamedTuple):
    """A picture and how it lies on a surface."""

    texels: np.ndarray  # height width 3 or 4, bytes, row 0 at the top
    wrap: tuple[str, str] = ("repeat", "repeat")  # along u and v: repeat, clamp or mirror
    name: str = ""
    uv_set: int = 0
    placement: np.ndarray | None = None  # 2 3: texture from uv, both with v downwards, in glTF


class ViewTexels(NamedTuple):
    """Spherical harmonics of the view, which are added to a colour: their coefficients."""

    texels: np.ndarray  # height width harmonics 3
    encoded: bool  # they are added to sRGB numbers


class ModelLayers(NamedTuple):
    """The inputs that extensions of glTF add to a material; `None` for those it does not have."""

    ior: float | None = None
    specular: float | None = None
    specular_color: np.ndarray | None = None
    transmission: float | None = None
    thickness: float = 0.0  # zero for what has no inside
    attenuation_color: np.ndarray | None = None
    attenuation_distance: float | None = None
    clearcoat: float | None = None
    clearcoat_roughness: float | None = None
    sheen_color: np.ndarray | None = None
    sheen_roughness: float | None = None
    textures: dict[str, ModelTexture] = {}  # by field, which they multiply


class ModelMaterial(NamedTuple):
    """A metallic-roughness material; colours are linear, textures multiply the numbers."""

    name: str = ""
    base_color: np.ndarray = np.ones(4)  # red, green, blue, opacity
    metallic: float = 0.0
    roughness: float = 1.0
    emission: np.ndarray = np.zeros(3)
    base_texture: ModelTexture | None = None
    roughness_texture: ModelTexture | None = None  # green: roughness, blue: metallic
    normal_texture: ModelTexture | None = None
    normal_scale: float = 1.0
    occlusion_texture: ModelTexture | None = None
    occlusion_strength: float = 1.0
    emission_texture: ModelTexture | None = None
    alpha_mode: str = "OPAQUE"  # or MASK or BLEND
    alpha_cutoff: float = 0.5
    double_sided: bool = True
    unlit: bool = False
    view: ViewTexels | None = None
    layers: ModelLayers | None = None


def textures_of(material: ModelMaterial) -> dict[str, ModelTexture]:
    """Returns the textures of a material by field; the first one's coordinates are the mesh's."""
    names = ("base", "roughness", "normal", "emission", "occlusion")
    found = {name: getattr(material, f"{name}_texture") for name in names}
    found |= material.layers.textures if material.layers is not None else {}
    return {name: texture for name, texture in found.items() if texture is not None}


class ModelPart(NamedTuple):
    """Triangles of one material."""

    vertices: np.ndarray  # n 3, float32
    faces: np.ndarray  # m 3, int32
    normals: np.ndarray | None = None  # n 3, of length one
    uv: np.ndarray | None = None  # n 2, v upwards
    colors: np.ndarray | None = None  # n 4, linear light and opacity
    material: int | None = None
    smooth: bool = True
    name: str = ""


class ModelMesh(NamedTuple):
    """A mesh: parts of several materials."""

    name: str
    parts: tuple[ModelPart, ...]


class ModelCamera(NamedTuple):
    """A camera that looks along -z, y upwards."""

    name: str
    orthographic: bool
    height: float  # the vertical angle of view in radians, or the height of the picture in units
    aspect: float | None  # width / height
    near: float
    far: float | None
    size: tuple[int, int] | None = None  # of the picture in pixels, in our own files


class ModelLight(NamedTuple):
    """A lamp at the origin that shines along -z."""

    name: str
    kind: str  # directional, point or spot
    color: np.ndarray  # 3, linear, times candela, or lux if it is directional
    inner: float = 0.0
    outer: float = np.pi / 4


class ModelNode(NamedTuple):
    """A node of the hierarchy."""

    name: str
    matrix: np.ndarray  # 4 4, parent from node, float64
    children: tuple[int, ...] = ()
    mesh: int | None = None
    camera: int | None = None
    light: int | None = None
    ambient: np.ndarray | None = None  # 3, in our own files
    copies: np.ndarray | None = None  # n 4 4, node from each copy of its mesh


class Model(NamedTuple):
    """The contents of a file of meshes; `roots` are the nodes of its scene."""

    nodes: tuple[ModelNode, ...]
    roots: tuple[int, ...]
    meshes: tuple[ModelMesh, ...]
    materials: tuple[ModelMaterial, ...] = ()
    cameras: tuple[ModelCamera, ...] = ()
    lights: tuple[ModelLight, ...] = ()
    background: np.ndarray | None = None  # 3, linear, in our own files
    # What was repaired or left out, each with its number.
    notes: tuple[str, ...] = ()


def one_mesh(name: str, parts: tuple[ModelPart, ...], notes: tuple[str, ...]) -> Model:
    """Makes the model of a file without hierarchy."""
    node = ModelNode(name, np.eye(4), mesh=0)
    return Model((node,), (0,), (ModelMesh(name, parts),), notes=notes)


def notes_of(repairs: Counter[str], *, once: bool = False) -> tuple[str, ...]:
    """Returns what was counted, as words; `once` leaves out the number 1."""
    return tuple(
        what if once and count == 1 else f"{count} x {what}"
        for what, count in repairs.items()
        if count
    )


def linear_from_srgb(numbers: np.ndarray) -> np.ndarray:
    """Decodes sRGB numbers to linear light."""
    low = numbers / 12.92
    return np.where(numbers <= 0.04045, low, ((np.maximum(numbers, 0) + 0.055) / 1.055) ** 2.4)
