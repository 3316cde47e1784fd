import math
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cameras import AbstractCamera, OrthographicCamera, PerspectiveCamera
from ..lights import AbstractLight, AmbientLight, DirectionalLight, PointLight, SpotLight
from ..models import ModelPart, vertex_normals, write_container
from ..numerics import unfreeze
from ..scene import Backdrop, Group, Instances, open_scene, Scene, Surface, Transformed
from ..shaders import Constant
from ..shapes import AbstractShape, TriangleMesh
from ._glb import GlbContent
from ._looks import Look, Looks
from ._material_fields import file_coordinates, material_of
from ._mesh_shape import part_of
from ._placing import as_parts, matrix_of_direction, UPRIGHT
from ._triangulate import triangulate
from ._walk import copies, matrix_of


_ENDLESS = 1e6


def save_glb(
    scene: Scene,
    path: str | os.PathLike,
    *,
    segments: int = 64,
    plane_size: float = 100.0,
    texture_size: int = 512,
    z_up: bool = True,
    origin: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Saves a scene as a GLB file (glTF 2.0), for other programs.

    Groups, names, transforms, meshes, perspective and orthographic cameras, and directional, point
    and spot lights are kept, as are ambient light and a plain background, which other programs do
    not show. Spheres, capsules, cylinders and disks become triangles, boxes, rectangles and planes
    squares of two; copies of `Instances` become nodes that share a mesh. `load_scene` reads it.

    `GGX`, `Lambert` and the diffuse part of `Phong` become metallic-roughness materials,
    `Principled` one with its extensions, other shaders unlit ones. Textures are kept in 8 bits;
    patterns on surfaces become textures, and those in space the colours of vertices. Frozen and
    tied leaves are saved with their values.

    **Arguments:**

    - `scene`: the scene.
    - `path`: the path of the file, which ends in `.glb`; it is written beside and renamed.
    - `segments`: the number of triangles' sides around what is round, a multiple of 4. With 64,
      triangles are nowhere farther from a sphere than 1/400 of its radius. Keyword only, as is all
      that follows.
    - `plane_size`: the side of the square that stands for an endless `Plane`.
    - `texture_size`: the number of texels along each side of a texture made of a pattern.
    - `z_up`: if true, the top nodes are turned so that the scene's z axis points upwards in other
      programs, where y does, and `load_scene` turns them back; if false, axes are left as they are.
    - `origin`: the place in the file of the scene's origin, in double precision.

    **Errors:**

    `ValueError` for a number of segments that is not a multiple of 4. Volumes and what else glTF
    does not have is left out and counted in a warning.
    """
    if segments < 4 or segments % 4:
        raise ValueError(f"`segments` must be a multiple of 4, and at least 4; got {segments}.")
    writer = _Writer(segments, plane_size, texture_size)
    content = writer.write(open_scene(scene), z_up, np.asarray(origin, float))
    write_container(path, content, bytes(writer.content.binary))
    if writer.left_out:
        shown = "; ".join(f"{count} x {what}" for what, count in writer.left_out.items())
        warnings.warn(f"save_glb: {path}: left out: {shown}", stacklevel=2)


class _Writer:
    """Adds nodes to a file."""

    def __init__(self, segments: int, plane_size: float, texture_size: int):
        self.segments, self.plane_size = segments, plane_size
        self.content, self.left_out = GlbContent(), Counter[str]()
        self.looks = Looks(texture_size, self.left_out)
        self.kinds = {
            Group: self._group,
            Instances: self._instances,
            Surface: self._surface,
            AbstractCamera: self._camera,
            AbstractLight: self._light,
        }

    def write(self, scene: Scene, z_up: bool, origin: np.ndarray) -> dict[str, Any]:
        """Returns the JSON of a scene."""
        root, moved = scene.root, np.eye(4)
        moved[:3, 3] = origin
        around = UPRIGHT @ moved if z_up else moved
        is_group = isinstance(root, Group) and not np.any(origin)
        nodes = self.children(root, around) if is_group else self.node("root", root, around)
        entry: dict[str, Any] = {"nodes": nodes} if nodes else {}
        if (background := self._background(scene.background)) is not None:
            entry["extras"] = {"scenegraph_background": background}
        return self.content.json(entry)

    def _background(self, background: Any) -> list[float] | None:
        if isinstance(background, Backdrop) and isinstance(background.shader, Constant):
            color = np.asarray(background.shader.color, float)
            return color.tolist() if np.any(color) else None
        self.left_out[f"background {type(background).__name__}"] += 1
        return None

    def children(self, group: Group, matrix: np.ndarray = np.eye(4)) -> list[int]:
        """Adds the children of a group under a transform, and returns their indices."""
        return [
            number
            for name, child in group.children.items()
            for number in self.node(name, child, matrix)
        ]

    def node(self, name: str, node: Any, matrix: np.ndarray) -> list[int]:
        """Adds a node under a transform; none for what glTF does not have."""
        if isinstance(node, Transformed):
            # Lights know best what a transform does to them.
            if isinstance(node.child, AbstractLight):
                return self.node(name, node.child.moved(node.transform), matrix)
            return self.node(name, node.child, matrix @ matrix_of(node.transform))
        for kind, add in self.kinds.items():
            if isinstance(node, kind):
                return add(name, node, matrix)
        self.left_out[type(node).__name__] += 1
        return []

    def _group(self, name: str, group: Group, matrix: np.ndarray) -> list[int]:
        return self._add(name, {"children": self.children(group)}, matrix)

    def _instances(self, name: str, node: Instances, matrix: np.ndarray) -> list[int]:
        numbered = enumerate(copies(node))
        inside = [n for i, copy in numbered for n in self.node(f"{name}_{i}", copy, np.eye(4))]
        return self._add(name, {"children": inside}, matrix)

    def _surface(self, name: str, surface: Surface, matrix: np.ndarray) -> list[int]:
        mesh = self._mesh(name, surface)
        return [] if mesh is None else self._add(name, {"mesh": mesh}, matrix)

    def _add(self, name: str, content: dict[str, Any], matrix: np.ndarray) -> list[int]:
        """Adds a node; a shear, which glTF does not have, needs a second one around it."""
        content = {key: value for key, value in content.items() if value != []}
        *outer, inner = as_parts(matrix)
        title = f"{name}_inner" if outer else name
        number = self.content.add("nodes", {"name": title, **content, **inner}, shared=False)
        for part in outer:
            around = {"name": name, "children": [number], **part}
            number = self.content.add("nodes", around, shared=False)
        return [number]

    # --- Meshes

    def _mesh(self, name: str, surface: Surface) -> int | None:
        shape = surface.shape
        part = part_of(shape) or triangulate(shape, self.segments, self.plane_size)
        if part is None:
            self.left_out[f"Surface of a {type(shape).__name__}"] += 1
            return None
        if part.smooth and part.normals is None:
            normals = vertex_normals(part.vertices, part.faces).astype(np.float32)
            part = part._replace(normals=normals)
        look = self.looks.look(surface, part)
        primitive = {
            "attributes": self._attributes(part, look),
            "indices": self.content.indices(part.faces, len(part.vertices)),
            "material": self.content.add("materials", self._material(shape, look)),
        }
        return self.content.add("meshes", {"primitives": [primitive], "name": name})

    def _material(self, shape: AbstractShape, look: Look) -> dict[str, Any]:
        two_sided = shape.two_sided if isinstance(shape, TriangleMesh) else True
        return material_of(look, self.content) | {"doubleSided": two_sided}

    def _attributes(self, part: ModelPart, look: Look) -> dict[str, int]:
        attributes = {"POSITION": self.content.array(part.vertices, bounds=True)}
        if part.normals is not None:
            attributes["NORMAL"] = self.content.array(part.normals)
        if part.uv is not None:
            attributes["TEXCOORD_0"] = self.content.array(file_coordinates(look, part.uv))
        if look.colors is not None:
            attributes["COLOR_0"] = self.content.array(np.clip(look.colors, 0, 1))
        return attributes

    # --- Cameras and lights

    def _camera(self, name: str, camera: AbstractCamera, matrix: np.ndarray) -> list[int]:
        if not isinstance(camera, PerspectiveCamera | OrthographicCamera):
            self.left_out[type(camera).__name__] += 1
            return []
        size = np.array([camera.width, camera.height])
        if not np.allclose(np.asarray(camera.principal_point), size / 2, atol=1e-3 * size.max()):
            self.left_out["principal point beside the middle"] += 1
        entry = _lens(camera) | {"name": name}
        entry["extras"] = {"scenegraph_size": [camera.width, camera.height]}
        index = self.content.add("cameras", entry)
        return self._add(name, {"camera": index}, matrix @ matrix_of(unfreeze(camera.pose)))

    def _light(self, name: str, light: AbstractLight, matrix: np.ndarray) -> list[int]:
        if isinstance(light, AmbientLight):
            own = {"scenegraph_ambient": np.asarray(light.radiance, float).tolist()}
            return self._add(name, {"extras": own}, matrix)
        place = np.eye(4)
        if isinstance(light, PointLight | SpotLight):
            place[:3, 3] = np.asarray(light.position)
        if isinstance(light, DirectionalLight | SpotLight):
            place[:3, :3] = matrix_of_direction(np.asarray(light.direction, float))
        elif not isinstance(light, PointLight):
            self.left_out[type(light).__name__] += 1
            return []
        extensions = self.content.light({"name": name, **_lamp(light)})
        return self._add(name, {"extensions": extensions}, matrix @ place)


def _lens(camera: PerspectiveCamera | OrthographicCamera) -> dict[str, Any]:
    focal, near, far = map(float, (camera.focal, camera.near, camera.far))
    if isinstance(camera, OrthographicCamera):
        half = {"xmag": camera.width / focal / 2, "ymag": camera.height / focal / 2}
        return {"type": "orthographic", "orthographic": {**half, "znear": near, "zfar": far}}
    lens = {
        "yfov": 2 * math.atan(camera.height / 2 / focal),
        "aspectRatio": camera.width / camera.height,
        "znear": max(near, 1e-6),
    }
    lens |= {} if far >= _ENDLESS else {"zfar": far}
    return {"type": "perspective", "perspective": lens}


def _lamp(light: DirectionalLight | PointLight | SpotLight) -> dict[str, Any]:
    power = light.irradiance if isinstance(light, DirectionalLight) else light.intensity
    power = np.asarray(power, float)
    intensity = float(power.max())
    color = power / intensity if intensity > 0 else np.ones(3)
    lamp: dict[str, Any] = {"color": color.tolist(), "intensity": intensity}
    if isinstance(light, SpotLight):
        outer = min(float(light.angle), math.pi / 2)
        inner = outer * min(max(1 - float(light.softness), 0.0), 0.9999)
        spot = {"innerConeAngle": inner, "outerConeAngle": outer}
        return {"type": "spot", "spot": spot, **lamp}
    return {"type": "directional" if isinstance(light, DirectionalLight) else "point", **lamp}
