"""The triangles of a scene's surfaces in the world, with colours at their vertices."""

from collections import Counter

import numpy as np

from ..models import linear_from_srgb, ModelPart, vertex_normals
from ..scene import Scene, Surface
from ._looks import Look, look_of
from ._mesh_shape import part_of
from ._triangulate import triangulate
from ._walk import placed_nodes


# As `save_glb` has them by default.
_SEGMENTS, _PLANE, _TEXTURE = 64, 100.0, 512


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
        colors = _colors(look_of(node.shader, part, _TEXTURE), len(part.vertices))
        parts.append(_moved(part, matrix)._replace(colors=colors))
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


def _colors(look: Look, count: int) -> np.ndarray:
    colors = np.broadcast_to(look.base, (count, 3))
    if look.colors is not None:
        colors = colors * look.colors
    if look.texels is None or look.uv is None:
        return colors
    height, width = look.texels.shape[:2]
    uv = look.uv % 1 if look.repeat else np.clip(look.uv, 0, 1)
    column = np.minimum((uv[:, 0] * width).astype(int), width - 1)
    row = np.minimum(((1 - uv[:, 1]) * height).astype(int), height - 1)
    return colors * linear_from_srgb(look.texels[row, column] / 255)
