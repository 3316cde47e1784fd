"""glTF 2.0: .gltf and .glb files as plain arrays.

trimesh reads them, too; it drops cameras, lights and the names of nodes without a mesh.
"""

import math
import os
import pathlib
from collections import Counter
from collections.abc import Callable

import numpy as np

from ..io import FileError
from ._fields import count_extensions, Fields, shown
from ._gltf_buffers import Buffers, read_container
from ._gltf_materials import LAYERS, read_material, Textures
from ._gltf_nodes import check_tree, INSTANCING, node_matrix, read_copies
from ._mesh_checks import checked_part, fan_of
from ._model import (
    Model,
    ModelCamera,
    ModelLight,
    ModelMaterial,
    ModelMesh,
    ModelNode,
    ModelPart,
    notes_of,
    textures_of,
)


_KNOWN = {
    "EXT_mesh_gpu_instancing",
    "EXT_texture_avif",
    "EXT_texture_webp",
    "KHR_lights_punctual",
    "KHR_materials_emissive_strength",
    "KHR_materials_unlit",
    *LAYERS,
    "KHR_mesh_quantization",
    "KHR_texture_transform",
}
_WIDEST = 2**14
# What our own files say beside the format.
_SIZE, _AMBIENT, _BACKGROUND = (f"scenegraph_{x}" for x in ("size", "ambient", "background"))
_LINES = "mesh part of points or lines"
_DRACO = "KHR_draco_mesh_compression"
_POINTS, _TRIANGLES, _STRIP, _FAN = (0, 1, 2, 3), 4, 5, 6


def read_gltf(path: str | os.PathLike) -> Model:
    """Reads a .gltf or .glb file; other files that it names lie in its folder or below."""
    path = pathlib.Path(path)
    container = read_container(path)
    reader = _Reader(path, Fields(container.content, path.name), container.binary)
    reader.left_out["byte after the end"] += container.beyond
    return reader.read()


class _Reader:
    """The parts of a file that the others refer to."""

    def __init__(self, path: pathlib.Path, top: Fields, binary: memoryview | None):
        _check_version(top)
        self.top, self.buffers = top, Buffers(path, top, binary)
        self.left_out = Counter[str]()
        self.textures = Textures(top, self.buffers, self.left_out)

    def read(self) -> Model:
        materials = self.top.objects("materials")
        # The last is that of parts without one: white metal, says the format.
        self.materials = tuple(read_material(x, self.textures) for x in materials)
        self.materials += (ModelMaterial(metallic=1.0, double_sided=False),)
        self.meshes, self.cameras = self.top.objects("meshes"), self.top.objects("cameras")
        lights = self.top.object("extensions").object("KHR_lights_punctual").objects("lights")
        self.lights = lights
        nodes, roots = self._nodes()
        meshes = tuple(map(self._mesh, self.meshes))
        for name, word in (("animations", "animation"), ("skins", "skin")):
            self.left_out[word] += len(self.top.array(name))
        self._count_others(lights)
        self._refuse_lines(meshes)
        return Model(
            nodes=nodes,
            roots=roots,
            meshes=meshes,
            materials=self.materials,
            cameras=tuple(map(_camera, self.cameras)),
            lights=tuple(map(self._light, lights)),
            background=self._scene().extras().color(_BACKGROUND),
            notes=(*notes_of(self.textures.notes, once=True), *notes_of(self.left_out)),
        )

    def _count_others(self, lights: list[Fields]) -> None:
        """Counts what is in the file and not in the scene."""
        scenes = self.top.objects("scenes")
        self.left_out["scene that is not shown"] += max(len(scenes) - 1, 0)
        count_extensions(self.top, ("KHR_lights_punctual",), "file", self.left_out)
        owners = {"scene": [self._scene()], "camera": self.cameras, "light": lights}
        owners |= {"mesh": self.meshes, "accessor": self.buffers.accessors}
        for what, objects in owners.items():
            for entry in objects:
                count_extensions(entry, (), what, self.left_out)

    def _refuse_lines(self, meshes: tuple[ModelMesh, ...]) -> None:
        """Refuses a file of points or lines alone."""
        if self.left_out[_LINES] and not any(mesh.parts for mesh in meshes):
            raise FileError(
                f"{self.top.where} has points or lines alone ({self.left_out[_LINES]} mesh parts), "
                "which are not a surface."
            )

    # --- The hierarchy

    def _scene(self) -> Fields:
        scenes = self.top.objects("scenes")
        chosen = self.top.index("scene", len(scenes), "scenes")
        return scenes[chosen or 0] if scenes else Fields({}, self.top.at("scenes"))

    def _nodes(self) -> tuple[tuple[ModelNode, ...], tuple[int, ...]]:
        objects = self.top.objects("nodes")
        nodes = tuple(self._node(node, len(objects)) for node in objects)
        if self.top.array("scenes"):
            roots = self._scene().indices("nodes", len(nodes), "nodes")
        else:
            inside = {child for node in nodes for child in node.children}
            roots = tuple(i for i in range(len(nodes)) if i not in inside)
        check_tree(nodes, roots, self.top.where)
        return nodes, roots

    def _node(self, node: Fields, count: int) -> ModelNode:
        self.left_out["node with a skin"] += "skin" in node
        count_extensions(node, ("KHR_lights_punctual", INSTANCING), "node", self.left_out)
        punctual = node.object("extensions").object("KHR_lights_punctual")
        return ModelNode(
            name=node.text("name"),
            matrix=node_matrix(node),
            children=node.indices("children", count, "nodes"),
            mesh=node.index("mesh", len(self.meshes), "meshes"),
            camera=node.index("camera", len(self.cameras), "cameras"),
            light=punctual.index("light", len(self.lights), "lights"),
            ambient=node.extras().color(_AMBIENT),
            copies=read_copies(node, self.buffers, self.left_out),
        )

    # --- Meshes

    def _mesh(self, mesh: Fields) -> ModelMesh:
        self.left_out["mesh with morph targets"] += "weights" in mesh
        parts = (self._part(primitive) for primitive in mesh.objects("primitives"))
        return ModelMesh(mesh.text("name"), tuple(part for part in parts if part is not None))

    def _part(self, primitive: Fields) -> ModelPart | None:
        mode = primitive.whole("mode", _TRIANGLES)
        attributes = primitive.object("attributes")
        if mode in _POINTS or "POSITION" not in attributes:
            self.left_out[_LINES] += 1
            return None
        if mode > _FAN:
            raise FileError(f"{primitive.at('mode')} is {mode}, which glTF does not have.")
        self._check_compression(primitive, attributes)
        material = primitive.index("material", len(self.materials) - 1, "materials")
        material = len(self.materials) - 1 if material is None else material
        position = attributes.index("POSITION", len(self.buffers.accessors), "accessors") or 0
        vertices = self.buffers.array(position, ("VEC3",))
        read = lambda name, *kinds: self._attribute(attributes, name, kinds, vertices)
        normals = read("NORMAL", "VEC3")
        part = ModelPart(
            vertices=np.asarray(vertices, np.float32),
            faces=self._faces(primitive, mode, len(vertices)),
            normals=normals,
            uv=self._uv(attributes, material, read),
            colors=_colors(read("COLOR_0", "VEC3", "VEC4")),
            material=material,
            # Without normals, faces are flat.
            smooth=normals is not None,
        )
        part = checked_part(part, primitive.where, self.left_out)
        if part is not None:
            self.buffers.spend(sum(x.nbytes for x in part if isinstance(x, np.ndarray)), primitive)
        return part

    def _check_compression(self, primitive: Fields, attributes: Fields) -> None:
        """Refuses a part whose plain arrays are not in the file, and counts its extensions."""
        count_extensions(primitive, (_DRACO,), "mesh part", self.left_out)
        if _DRACO in primitive.object("extensions"):
            index = attributes.index("POSITION", len(self.buffers.accessors), "accessors") or 0
            accessor = self.buffers.accessors[index]
            if not {"bufferView", "sparse"} & accessor.value.keys():
                raise FileError(
                    f"{primitive.where} is compressed with Draco ({_DRACO}), which this library "
                    "does not read; write the file again without compression."
                )

    def _attribute(
        self, attributes: Fields, name: str, kinds: tuple[str, ...], like: np.ndarray
    ) -> np.ndarray | None:
        index = attributes.index(name, len(self.buffers.accessors), "accessors")
        if index is None:
            return None
        array = self.buffers.array(index, kinds)
        if len(array) != len(like):
            raise FileError(
                f"{attributes.at(name)} has {len(array)} rows for {len(like)} vertices."
            )
        return array

    def _uv(self, attributes: Fields, material: int, read: Callable) -> np.ndarray | None:
        """Returns the coordinates of the first of the material's textures, v upwards."""
        texture = next(iter(textures_of(self.materials[material]).values()), None)
        number = 0 if texture is None else texture.uv_set
        uv = read(f"TEXCOORD_{number}", "VEC2")
        if uv is None and texture is not None:
            self.left_out["texture on a part without coordinates"] += 1
        if uv is None:
            return None
        if texture is not None and texture.placement is not None:
            # Of the file's coordinates, with v downwards; they are turned upwards after it.
            uv = uv @ texture.placement[:, :2].T + texture.placement[:, 2]
        return np.stack([uv[:, 0], 1 - uv[:, 1].astype(np.float64)], axis=1)

    def _faces(self, primitive: Fields, mode: int, vertices: int) -> np.ndarray:
        index = primitive.index("indices", len(self.buffers.accessors), "accessors")
        if index is None:
            order = np.arange(vertices)
        else:
            # They are copied later, to another type.
            order = self.buffers.array(index, ("SCALAR",), copy=False)[:, 0]
            if order.dtype.kind != "u":
                raise FileError(f"{primitive.at('indices')} must be of unsigned integers.")
            order = order.astype(np.int64) if mode != _TRIANGLES else order
        if mode == _TRIANGLES:
            self.left_out["index after the last triangle"] += len(order) % 3
            return order[: len(order) // 3 * 3].reshape(-1, 3)
        return fan_of(order) if mode == _FAN else _strip(order)

    # --- Lights

    def _light(self, light: Fields) -> ModelLight:
        kind = light.text("type")
        if kind not in ("directional", "point", "spot"):
            raise FileError(
                f"{light.at('type')} must be directional, point or spot; it is {kind!r}."
            )
        self.left_out["range of a light"] += "range" in light
        power = max(light.number("intensity", 1.0), 0.0)
        color = np.maximum(light.numbers("color", [1.0] * 3), 0) * power
        spot = light.object("spot")
        outer = spot.number("outerConeAngle", math.pi / 4)
        inner = spot.number("innerConeAngle", 0.0)
        if not 0 <= inner < outer <= math.pi / 2 + 1e-5:
            raise FileError(
                f"{spot.where} must have 0 <= innerConeAngle < outerConeAngle <= pi/2; they are "
                f"{inner:g} and {outer:g}."
            )
        return ModelLight(light.text("name"), kind, color, inner, outer)


def _check_version(top: Fields) -> None:
    version = str(top.object("asset").value.get("version", ""))
    if not version.startswith("2."):
        # The first version has objects where the second has arrays, and need not say itself.
        is_first = version.startswith("1") or isinstance(top.value.get("meshes"), dict)
        name = "glTF 1" if is_first else f"glTF of the version {shown(version)}"
        raise FileError(f"{top.where} is {name}; version 2 is read. Write it again as glTF 2.")
    required = {x for x in top.array("extensionsRequired") if isinstance(x, str)}
    if unknown := sorted(required - _KNOWN):
        raise FileError(
            f"{top.where} cannot be read without {', '.join(unknown)[:200]}, which this library "
            "does not have; write it again without compression or that extension."
        )


def _camera(camera: Fields) -> ModelCamera:
    kind = camera.text("type")
    if kind not in ("perspective", "orthographic"):
        raise FileError(f"{camera.at('type')} must be perspective or orthographic; it is {kind!r}.")
    lens, name = camera.object(kind), camera.text("name")
    near, far = lens.number("znear", 0.01), lens.number("zfar", 0.0) or None
    if near < 0 or (far is not None and not far > near):
        raise FileError(f"{lens.where} must have 0 <= znear < zfar; they are {near} and {far}.")
    size = _size(camera)
    if kind == "orthographic":
        half_width, half_height = abs(lens.number("xmag", 1.0)), abs(lens.number("ymag", 1.0))
        if not min(half_width, half_height) > 1e-12:
            raise FileError(f"{lens.where} must have positive xmag and ymag.")
        aspect = half_width / half_height
        return ModelCamera(name, True, 2 * half_height, aspect, near, far, size)
    angle, aspect = lens.number("yfov", 0.8), lens.number("aspectRatio", 0.0) or None
    if not 1e-4 < angle < math.pi - 1e-4 or (aspect is not None and not 1e-3 < aspect < 1e3):
        raise FileError(
            f"{lens.where} must have yfov between 0 and pi and a positive aspectRatio; they are "
            f"{angle:g} and {aspect}."
        )
    return ModelCamera(name, False, angle, aspect, near, far, size)


def _size(camera: Fields) -> tuple[int, int] | None:
    """Returns the size of the picture, which our own files say."""
    if _SIZE not in camera.extras():
        return None
    width, height = camera.extras().numbers(_SIZE, [1.0, 1.0])
    if not (1 <= width <= _WIDEST and 1 <= height <= _WIDEST):
        raise FileError(f"{camera.extras().at(_SIZE)} must be from 1 to {_WIDEST} pixels.")
    return int(width), int(height)


def _colors(colors: np.ndarray | None) -> np.ndarray | None:
    """Returns linear colours with opacity."""
    if colors is None or colors.shape[1] == 4:
        return colors
    return np.concatenate([colors, np.ones((len(colors), 1), colors.dtype)], axis=1)


def _strip(order: np.ndarray) -> np.ndarray:
    """Returns the triangles of a strip, of which every second one is turned round."""
    faces = np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
    faces[1::2] = faces[1::2][:, [0, 2, 1]]
    return faces
