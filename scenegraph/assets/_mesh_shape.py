"""Triangle meshes from and to arrays."""

from typing import Any

import numpy as np

from ..models import ModelPart
from ..shapes import AbstractShape, TriangleMesh


def make_mesh(part: ModelPart, two_sided: bool = True) -> TriangleMesh:
    """Makes the shape of a part of a mesh."""
    colors = None if part.colors is None else part.colors[:, :3]
    arrays = part.vertices, part.faces, part.normals, part.uv, colors
    return TriangleMesh(*arrays, part.smooth, two_sided)


def part_of(shape: AbstractShape) -> ModelPart | None:
    """Returns the arrays of a mesh; `None` for other shapes."""
    if not isinstance(shape, TriangleMesh):
        return None
    some: Any = lambda x: None if x is None else np.asarray(x, np.float32)
    return ModelPart(
        vertices=np.asarray(shape.vertices, np.float32),
        faces=np.asarray(shape.faces, np.int32),
        normals=some(shape.normals),
        uv=some(shape.uv),
        colors=some(shape.colors),
        smooth=shape.smooth,
    )
