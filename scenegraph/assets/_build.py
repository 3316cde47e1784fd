"""Records of files to nodes of a scene."""

import functools
import math
from collections import Counter
from typing import Any

import jax
import jaxlie
import numpy as np

from ..cameras import AbstractCamera, OrthographicCamera, PerspectiveCamera
from ..lights import AbstractLight, AmbientLight, DirectionalLight, PointLight, SpotLight
from ..models import is_singular, Model, ModelCamera, ModelLight, ModelNode, ModelPart
from ..numerics import Frozen
from ..scene import Group, Instances, Scene, Surface, Transformed
from ..shapes import Sphere, TriangleMesh
from ..transforms import AbstractTransform, Affine, Pose, Similarity
from ._materials import Appearance, Materials
from ._mesh_shape import make_meshes
from ._names import unique_names
from ._placing import UPRIGHT


# The height of a picture in pixels, where the file does not say, and its largest width.
_HEIGHT, _WIDEST = 512, 4096
# Where a file says that a camera sees endlessly far.
_ENDLESS = 1e6


def build_scene(model: Model, *, y_up: bool = False) -> tuple[Scene, tuple[str, ...]]:
    """Makes the scene of a file, and says in words what was left out.

    Top nodes of a file whose y axis points upwards are turned so that z does.
    """
    builder = _Builder(model)
    root = Group(**builder.children(model.roots, UPRIGHT.T if y_up else np.eye(4)))
    notes = [*model.notes]
    for counts in (builder.left_out, builder.materials.left_out):
        notes += [f"{count} x {what}" for what, count in counts.items() if count]
    return _scene_structure().unflatten([root, builder.background]), tuple(notes)


@functools.cache
def _scene_structure() -> Any:
    """Returns the structure, as a tree, of a scene by its root and its background's colour.

    It is made without nodes: a scene's checks walk through the whole tree.
    """
    empty = Scene(Group(), background=(0.0, 0.0, 0.0))
    return jax.tree.structure(empty, is_leaf=lambda x: isinstance(x, Group))


class _Builder:
    """Makes nodes; those with the same mesh, material or matrix share its arrays.

    Of nodes that are alike, the first one's fields are checked.
    """

    def __init__(self, model: Model):
        self.model, self.left_out = model, Counter[str]()
        shown = self._shown_meshes()
        parts = [part for number in shown for part in model.meshes[number].parts]
        self.materials = Materials(model.materials, parts)
        shapes = iter(make_meshes([(part, self._is_two_sided(part)) for part in parts]))
        self._shapes = {i: [next(shapes) for _ in model.meshes[i].parts] for i in shown}
        kind = jax.dtypes.canonicalize_dtype(float)
        color = (0.0, 0.0, 0.0) if model.background is None else model.background
        opaque, self.background = jax.device_put([np.ones((), kind), np.asarray(color, kind)])
        self._opaque = Frozen(opaque)
        self._meshes: dict[int, Any] = {}
        self._surfaces: dict[int, tuple[Appearance, Surface]] = {}
        self._places: dict[bytes, _Place] = {}

    def _shown_meshes(self) -> list[int]:
        """Returns the numbers of all meshes that the scene shows."""
        below, shown = [*self.model.roots], dict[int, None]()
        while below:
            node = self.model.nodes[below.pop()]
            below += node.children
            if node.mesh is not None:
                shown[node.mesh] = None
        return list(shown)

    def _is_two_sided(self, part: ModelPart) -> bool:
        return part.material is None or self.model.materials[part.material].double_sided

    def children(self, numbers: tuple[int, ...], around: np.ndarray = np.eye(4)) -> dict[str, Any]:
        """Returns nodes by name, in the frame that a matrix leads to."""
        titles, nodes = list[str](), list[Any]()
        for number in numbers:
            node = self.node(self.model.nodes[number], around)
            if node is not None:
                titles.append(self._title(number))
                nodes.append(node)
        return dict(zip(unique_names(titles), nodes, strict=True))

    def _title(self, number: int) -> str:
        """Returns a node's name, or that of what it holds."""
        node = self.model.nodes[number]
        if node.name:
            return node.name
        parts = [
            parts[index].name
            for parts, index in (
                (self.model.meshes, node.mesh),
                (self.model.cameras, node.camera),
                (self.model.lights, node.light),
            )
            if index is not None
        ]
        return next(filter(None, parts), f"node_{number}")

    def node(self, node: ModelNode, around: np.ndarray) -> Any:
        """Makes a node; `None` for one that is squashed flat, as animations hide things."""
        place = self._place(around, node.matrix)
        if place.is_singular:
            self.left_out["node scaled to nothing"] += 1
            return None
        parts = self._parts(node)
        if len(parts) == 1 and not node.children:
            (only,) = parts.values()
            folded = None if node.mesh is not None else _folded(only, place.matrix)
            return _transformed(only, place) if folded is None else folded
        inside = self.children(node.children)
        names = unique_names([*inside, *parts])
        nodes = [*inside.values(), *parts.values()]
        return _transformed(Group(**dict(zip(names, nodes, strict=True))), place)

    def _place(self, around: np.ndarray, matrix: np.ndarray) -> "_Place":
        """Returns where a matrix puts a node in the frame that another leads to."""
        key = around.tobytes() + matrix.tobytes()
        if key not in self._places:
            self._places[key] = _Place(around @ matrix, is_singular(matrix))
        return self._places[key]

    def _parts(self, node: ModelNode) -> dict[str, Any]:
        """Returns what a node itself holds, by kind."""
        parts = {}
        if node.mesh is not None and self.model.meshes[node.mesh].parts:
            mesh = self._mesh(node.mesh)
            if node.copies is None:
                parts["mesh"] = mesh
            elif len(node.copies):
                parts["mesh"] = Instances(mesh, _as_transforms(node.copies))
        if node.camera is not None:
            parts["camera"] = _camera(self.model.cameras[node.camera])
        if node.light is not None:
            parts["light"] = _light(self.model.lights[node.light])
        if node.ambient is not None:
            parts["ambient"] = AmbientLight(node.ambient)
        return parts

    def _mesh(self, number: int) -> Any:
        if number not in self._meshes:
            self._meshes[number] = self._mesh_node(number)
        return self._meshes[number]

    def _mesh_node(self, number: int) -> Any:
        """Makes a surface, or a group of one for each material."""
        mesh = self.model.meshes[number]
        surfaces = list(map(self._surface, mesh.parts, self._shapes[number]))
        if len(surfaces) == 1:
            return surfaces[0]
        titles = [part.name or self._material(part) or "part" for part in mesh.parts]
        return Group(**dict(zip(unique_names(titles), surfaces, strict=True)))

    def _material(self, part: ModelPart) -> str:
        return "" if part.material is None else self.model.materials[part.material].name

    def _surface(self, part: ModelPart, shape: TriangleMesh) -> Surface:
        look = self.materials.appearance(part)
        if part.colors is not None:
            self.left_out["opacity of vertices"] += bool(np.any(part.colors[:, 3] < 1))
        is_opaque = isinstance(look.opacity, float) and look.opacity == 1
        if look.plain:
            opacity = self._opaque if is_opaque else look.opacity
            return _unchecked(Surface, shape, look.shader, opacity)
        if id(look) in self._surfaces:
            _, first = self._surfaces[id(look)]
            return _unchecked(Surface, shape, first.shader, first.opacity)
        surface = Surface(shape, look.shader, *([] if is_opaque else [look.opacity]))
        # With the appearance, whose number is free once it is gone.
        self._surfaces[id(look)] = look, surface
        return surface


# --- Transforms


class _Place:
    """A matrix by which nodes are placed in the frame about them, and their common transform."""

    def __init__(self, matrix: np.ndarray, is_singular: bool):
        self.matrix, self.is_singular = matrix, is_singular

    @functools.cached_property
    def transform(self) -> AbstractTransform | None:
        """Returns the transform that nodes share; `None` where the frame is their own."""
        return None if _is_identity(self.matrix) else _as_transform(self.matrix)


def _transformed(node: Any, place: _Place) -> Any:
    """Puts a node into another frame, unless that is its own."""
    transform = place.transform
    return node if transform is None else _unchecked(Transformed, node, transform)


def _unchecked(kind: type, *fields: Any) -> Any:
    """Makes a Module of fields that are known to be as they have to be."""
    return _structures()[kind].unflatten(fields)


@functools.cache
def _structures() -> dict[type, Any]:
    """Returns the structure, as a tree, of each kind of which there may be many nodes."""
    surface = Surface(Sphere(), (0.0, 0.0, 0.0))
    every = Similarity(), Affine(np.eye(3)), surface, Transformed(surface, Similarity())
    below = lambda like: lambda x: x is not like
    return {type(like): jax.tree.structure(like, is_leaf=below(like)) for like in every}


def _is_identity(matrix: np.ndarray) -> bool:
    # One turned by a file's quaternion, in single precision, and turned back is off by rounding.
    return bool(np.all(np.abs(matrix - np.eye(4)) <= 1e-6) and not np.any(matrix[:3, 3]))


def _as_transform(matrix: np.ndarray) -> AbstractTransform:
    """Makes a `Similarity` of a matrix that keeps angles, else an `Affine`."""
    kind, fields = _transform_fields(np.asarray(matrix, float).tobytes())
    fields = [x.astype(jax.dtypes.canonicalize_dtype(x.dtype)) for x in fields]
    return _unchecked(kind, *jax.device_put(fields))


# Files are turned upright by the same matrix.
@functools.lru_cache(256)
def _transform_fields(matrix: bytes) -> tuple[type, list[np.ndarray]]:
    """Returns the kind of transform that a matrix is, and its numbers."""
    whole = np.frombuffer(matrix).reshape(4, 4)
    linear, shift = whole[:3, :3], whole[:3, 3]
    determinant = float(np.linalg.det(linear))
    scale = math.copysign(abs(determinant) ** (1 / 3), determinant)
    if not _is_rotation(linear / scale):
        return Affine, [linear, shift]
    rotation = jaxlie.SO3.from_matrix(np.asarray(linear / scale, np.float32))
    return Similarity, [shift, np.asarray(rotation.wxyz), np.array(scale)]


def _as_transforms(matrices: np.ndarray) -> list[AbstractTransform]:
    """Makes transforms of one kind: similarities, if all matrices keep angles."""
    found = [_as_transform(matrix) for matrix in matrices]
    if all(isinstance(transform, Similarity) for transform in found):
        return found
    return [Affine(matrix[:3, :3], matrix[:3, 3]) for matrix in matrices]


def _is_rotation(linear: np.ndarray) -> bool:
    return bool(np.allclose(linear @ linear.T, np.eye(3), atol=1e-5) and np.linalg.det(linear) > 0)


def _folded(node: Any, matrix: np.ndarray) -> Any:
    """Returns a camera or light that stands where a matrix puts it; `None` for what cannot."""
    shift, backward = matrix[:3, 3], matrix[:3, 2]
    if isinstance(node, PerspectiveCamera | OrthographicCamera) and _is_rotation(matrix[:3, :3]):
        size, limits = (node.width, node.height), {"near": node.near, "far": node.far}
        return type(node)(Pose(matrix), node.focal, *size, **limits)
    if isinstance(node, PointLight):
        return PointLight(shift, node.intensity)
    if isinstance(node, DirectionalLight):
        return DirectionalLight(-backward, node.irradiance)
    if isinstance(node, SpotLight):
        return SpotLight(shift, -backward, node.intensity, node.angle, node.softness)
    return None


# --- Cameras and lights


def _camera(camera: ModelCamera) -> AbstractCamera:
    aspect = camera.aspect or (camera.size[0] / camera.size[1] if camera.size else 1.0)
    width, height = camera.size or (max(1, min(round(_HEIGHT * aspect), _WIDEST)), _HEIGHT)
    far = _ENDLESS if camera.far is None else camera.far
    near = min(max(camera.near, 1e-6), 0.999 * far)
    pose = Pose(np.eye(4))
    if camera.orthographic:
        return OrthographicCamera(pose, height / camera.height, width, height, near=near, far=far)
    # f = (height / 2) / tan(angle / 2)
    focal = height / 2 / math.tan(camera.height / 2)
    return PerspectiveCamera(pose, focal, width, height, near=near, far=far)


def _light(light: ModelLight) -> AbstractLight:
    ahead, here = np.array([0.0, 0.0, -1.0]), np.zeros(3)
    if light.kind == "directional":
        return DirectionalLight(ahead, light.color)
    if light.kind == "point":
        return PointLight(here, light.color)
    return SpotLight(here, ahead, light.color, light.outer, 1 - light.inner / light.outer)
