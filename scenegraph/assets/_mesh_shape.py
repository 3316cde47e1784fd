"""Triangle meshes from and to arrays."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..models import ModelPart
from ..shapes import AbstractShape, as_mesh, FACETED, sorted_faces, TriangleMesh


# Bytes of an array that is compared with others: a few hundred faces.
_SMALL = 4096


def make_meshes(parts: Sequence[tuple[ModelPart, bool]]) -> list[TriangleMesh]:
    """Makes shapes of parts, two-sided or not, which a reader has checked: it is not done again.

    Arrays go to the device together, and small ones that are alike once: each takes a while.
    """
    rows, structures = list[np.ndarray](), list[tuple[Any, list[int]]]()
    known: dict[tuple, int] = {}
    for part, two_sided in parts:
        colors = None if part.colors is None else part.colors[:, :3]
        faces = sorted_faces(part.faces, part.vertices)
        places = []
        for array in (part.vertices, faces, part.normals, part.uv, colors):
            if array is None:
                continue
            place = len(rows)
            if array.nbytes <= _SMALL:
                place = known.setdefault((array.tobytes(), array.shape, array.dtype.char), place)
            if place == len(rows):
                rows.append(array)
            places.append(place)
        has = part.normals is not None, part.uv is not None, colors is not None
        structures.append((_structure(has, part.smooth, two_sided), places))
    leaves = jax.device_put(rows)
    return [structure.unflatten(leaves[i] for i in places) for structure, places in structures]


@functools.cache
def _structure(has: tuple[bool, ...], smooth: bool, two_sided: bool) -> Any:
    """Returns the structure, as a tree, of a mesh with some of normals, coordinates and colours."""
    columns = {"normals": 3, "uv": 2, "colors": 3}
    there = zip(has, columns.items(), strict=True)
    arrays = {name: np.ones((3, count)) for given, (name, count) in there if given}
    mesh = TriangleMesh(np.eye(3), [[0, 1, 2]], **arrays, smooth=smooth, two_sided=two_sided)
    return jax.tree.structure(mesh)


def part_of(shape: AbstractShape) -> ModelPart | None:
    """Returns the arrays of a mesh or a height field; `None` for other shapes."""
    if not isinstance(shape, FACETED):
        return None
    shape = as_mesh(shape)
    some: Any = lambda x: None if x is None else np.asarray(x, np.float32)
    return ModelPart(
        vertices=np.asarray(shape.vertices, np.float32),
        faces=np.asarray(shape.faces, np.int32),
        normals=some(shape.normals),
        uv=some(shape.uv),
        colors=some(shape.colors),
        smooth=shape.smooth,
    )
