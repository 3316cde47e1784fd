"""The triangles of a scene's surfaces in the world, with colours at their vertices."""

from collections import Counter

import numpy as np

from ..models import ModelPart, vertex_normals
from ..scene import Scene, Surface
from ..shaders import AbstractShader, GGX, Lambert, Phong, Principled, VertexColor
from ._mesh_shape import part_of
from ._texture_maps import vertex_colors
from ._triangulate import triangulate
from ._walk import placed_nodes


# As `save_glb` has them by default.
_SEGMENTS, _PLANE = 64, 100.0
# The field of a material that holds its base colour.
_BASE_COLORS = {
    GGX: "base_color",
    Lambert: "albedo",
    Phong: "diffuse",
    Principled: "base_color",
}


def world_parts(scene: Scene) -> tuple[list[ModelPart], Counter[str]]:
    """Returns surfaces with normals and linear colours `n 3`, and counts what is left out."""
    parts, left_out = [], Counter[str]()
    for node, matrix in placed_nodes(scene):
        shape = node.shape if isinstance(node, Surface) else None
        part = None
        if shape is not None:
            part = part_of(shape) or triangulate(shape, _SEGMENTS, _PLANE)
        if part is None:
            left_out[type(node).__name__ if shape is None else type(shape).__name__] += 1
            continue
        parts.append(_moved(part, matrix)._replace(colors=_colors(node.shader, part)))
    return parts, left_out


def _moved(part: ModelPart, matrix: np.ndarray) -> ModelPart:
    """Moves triangles to the world; those of a mirror image are turned round."""
    linear = matrix[:3, :3]
    vertices = part.vertices @ linear.T + matrix[:3, 3]
    faces = part.faces if np.linalg.det(linear) > 0 else part.faces[:, ::-1]
    if part.normals is None:
        return part._replace(
            vertices=vertices, faces=faces, normals=vertex_normals(vertices, faces)
        )
    # Normals are moved by the inverse of the transpose.
    normals = part.normals @ np.linalg.inv(linear)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return part._replace(vertices=vertices, faces=faces, normals=normals / length)


def _colors(shader: AbstractShader, part: ModelPart) -> np.ndarray:
    """Evaluates the base colour of a material at the vertices, times their own colours."""
    if isinstance(shader, VertexColor):
        own = np.ones(3) if part.colors is None else part.colors
        return own * _colors(shader.shader, part)
    if isinstance(shader, tuple(_BASE_COLORS)):
        return _colors(getattr(shader, _BASE_COLORS[type(shader)]), part)
    return vertex_colors(shader, part)
