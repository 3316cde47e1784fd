"""The one place that knows the classes of triangle meshes and their colours."""

from typing import Any

import numpy as np

from .. import shaders, shapes
from ..io import ModelPart
from ..shaders import AbstractShader
from ..shapes import AbstractShape


def make_mesh(part: ModelPart) -> AbstractShape:
    """Makes the shape of a part of a mesh."""
    mesh: Any = _mesh_class()
    return mesh(part.vertices, part.faces, part.normals, part.uv, part.colors, smooth=part.smooth)


def vertices_of(shape: AbstractShape) -> np.ndarray | None:
    """Returns the vertices of a mesh; `None` for other shapes."""
    mesh: Any = shape
    return np.asarray(mesh.vertices) if isinstance(shape, _mesh_class()) else None


def part_of(shape: AbstractShape) -> ModelPart | None:
    """Returns the arrays of a mesh; `None` for other shapes."""
    if not isinstance(shape, _mesh_class()):
        return None
    mesh: Any = shape
    some = lambda x: None if x is None else np.asarray(x, np.float32)
    return ModelPart(
        vertices=np.asarray(mesh.vertices, np.float32),
        faces=np.asarray(mesh.faces, np.int32),
        normals=some(mesh.normals),
        uv=some(mesh.uv),
        colors=some(mesh.colors),
        smooth=bool(mesh.smooth),
    )


def vertex_color() -> AbstractShader:
    """Makes the shader that shows the colours of vertices."""
    return _color_class()()


def is_vertex_color(shader: AbstractShader) -> bool:
    """Tells whether a shader shows the colours of vertices."""
    return isinstance(shader, _color_class())


def _color_class() -> Any:
    return getattr(shaders, "VertexColor", ())


def _mesh_class() -> Any:
    return getattr(shapes, "TriangleMesh", ())
