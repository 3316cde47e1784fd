"""Checks of meshes at construction, and repairs."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._typing import Array, Int
from ..models import flat_and_repeated
from ..numerics import require_finite_rows
from ._face_order import are_near, FEW, order_faces


def as_faces(faces: Any, vertices: Array) -> Int[Array, "faces 3"]:
    """Converts faces, and puts many in order.

    It leaves out those without area and those that are there twice, and warns.
    """
    if isinstance(faces, Tracer):
        return faces
    array = np.asarray(faces)
    _check_rows(array)
    if not isinstance(vertices, jax.Array):
        return jnp.asarray(array, jnp.int32)
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise ValueError(
            f"`vertices` of a TriangleMesh needs the shape (vertices, 3); got {vertices.shape}."
        )
    _check_range(array, vertices.shape[0])
    if isinstance(vertices, Tracer):
        return jnp.asarray(array, jnp.int32)
    points = np.asarray(vertices)
    array = sorted_faces(_useful(array, points), points)
    # A copy: JAX may take the memory that it is given for its own, which others may write to.
    return jax.device_put(np.array(array, np.int32, order="C"))


def sorted_faces(faces: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Returns faces in the order in which a mesh keeps them: as given, where runs are near."""
    if len(faces) <= FEW or are_near(faces, vertices):
        return faces
    with np.errstate(invalid="ignore", over="ignore"):  # What is not finite is refused by name.
        a, b, c = (vertices.take(corner, axis=0) / 3 for corner in faces.T)
        middles = a + b + c
    return faces.take(order_faces(middles), axis=0)


def _check_rows(faces: np.ndarray) -> None:
    if faces.size == 0:
        raise ValueError(
            "`faces` of a TriangleMesh is empty; give at least one row of three vertices' numbers."
        )
    if faces.ndim != 2 or faces.shape[1] != 3:
        raise ValueError(
            f"`faces` of a TriangleMesh needs the shape (faces, 3); got {faces.shape}. Split "
            "polygons of more corners into triangles first."
        )
    if not np.issubdtype(faces.dtype, np.integer):
        raise TypeError(f"`faces` of a TriangleMesh must be integers; got {faces.dtype}.")


def _check_range(faces: np.ndarray, count: int) -> None:
    if faces.min() < 0 or faces.max() >= count:
        wrong = np.argwhere((faces < 0) | (faces >= count))
        row, column = wrong[0]
        raise ValueError(
            f"`faces[{row}, {column}]` of a TriangleMesh is {faces[row, column]}, but there are "
            f"{count} vertices, numbered from 0 to {count - 1} ({len(wrong)} such numbers in all). "
            "Count from 0, or give all vertices."
        )


def _useful(faces: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Leaves out faces without area and those that are there before, and warns about them."""
    # A corner that is not finite is refused later, by name.
    flat, again = flat_and_repeated(faces, vertices)
    if np.all(flat):
        raise ValueError(
            f"no face of a TriangleMesh has an area ({len(faces)} faces); check `vertices`."
        )
    twice = again & ~flat
    if not np.any(flat | twice):
        return faces
    warnings.warn(
        f"a TriangleMesh leaves out {np.count_nonzero(flat)} faces without area and "
        f"{np.count_nonzero(twice)} that are there twice, of {len(faces)}.",
        stacklevel=2,
    )
    return faces[~flat & ~twice]


def check_mesh(mesh: Any) -> None:
    """Refuses arrays of wrong lengths, numbers that are not finite and vertices out of range."""
    if not isinstance(mesh.vertices, jax.Array) or mesh.vertices.ndim != 2:
        return  # a stack of meshes, or the place of a tied leaf
    require_finite_rows(mesh, "vertices")
    for name, size in (("normals", 3), ("uv", 2), ("colors", 3)):
        values, wanted = getattr(mesh, name), (mesh.vertices.shape[0], size)
        if values is None:
            continue
        if jnp.shape(values) != wanted:
            raise ValueError(
                f"`TriangleMesh.{name}` needs the shape {wanted}, a row for each vertex; got "
                f"{jnp.shape(values)}. Repeat vertices at seams, where they differ."
            )
        require_finite_rows(mesh, name)
    if isinstance(mesh.faces, jax.Array) and not isinstance(mesh.faces, Tracer):
        _check_range(np.asarray(mesh.faces), mesh.vertices.shape[0])
