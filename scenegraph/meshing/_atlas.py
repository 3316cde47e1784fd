"""Texture coordinates of a mesh, and the texels that its faces cover."""

from typing import Any, NamedTuple

import numpy as np

from ..io import import_extra
from ._surface import Triangles


# Texels between charts, so that their neighbours do not show where the texture is interpolated.
_PADDING = 3


class Atlas(NamedTuple):
    """A mesh whose faces lie side by side in a texture."""

    mesh: Triangles
    uv: np.ndarray  # n 2, v upwards
    height: int  # of the texture, in texels
    width: int


class Texels(NamedTuple):
    """The texels whose middle a face covers."""

    row: np.ndarray  # n, from the top
    column: np.ndarray  # n
    face: np.ndarray  # n
    weights: np.ndarray  # n 3, of the face's corners


def unwrap(mesh: Triangles, size: int) -> Atlas:
    """Cuts a mesh into flat charts, side by side in a texture of at most `size` texels a side."""
    xatlas = import_extra("xatlas", "mesh", "a texture")
    atlas, packing = xatlas.Atlas(), xatlas.PackOptions()
    packing.resolution, packing.padding, packing.bilinear = size, _PADDING, True
    atlas.add_mesh(
        mesh.vertices.astype(np.float32),
        mesh.faces.astype(np.uint32),
        mesh.normals.astype(np.float32),
    )
    atlas.generate(pack_options=packing)
    origin, faces, uv = atlas[0]
    longer = max(atlas.width, atlas.height)
    height, width = (max(1, round(size * n / longer)) for n in (atlas.height, atlas.width))
    cut = Triangles(mesh.vertices[origin], faces.astype(np.int32), mesh.normals[origin])
    return Atlas(cut, np.asarray(uv, np.float32), height, width)


def covered_texels(atlas: Atlas) -> Texels:
    """Finds the texels that have their middle in a face."""
    extent = np.array([atlas.width, atlas.height])
    corners = (atlas.uv.astype(float) * extent)[atlas.mesh.faces]
    # Middles of texels are at whole numbers and a half.
    first = np.maximum(np.ceil(corners.min(axis=1) - 0.5), 0).astype(int)
    last = np.minimum(np.floor(corners.max(axis=1) - 0.5), extent - 1).astype(int)
    sides = np.maximum(last - first + 1, 0)
    counts = sides.prod(axis=1)
    face = np.repeat(np.arange(len(counts)), counts)
    # Texel n of a face's rectangle, row by row: (n mod width, n div width).
    number = np.arange(len(face)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = np.stack([number % sides[face, 0], number // sides[face, 0]], axis=1)
    place = first[face] + step
    weights = _barycentric(corners[face], place + 0.5)
    inside = np.all(weights >= 0, axis=1)
    # Rows go down, v goes up.
    column, row = place[inside].T
    return Texels(atlas.height - 1 - row, column, face[inside], weights[inside])


def _barycentric(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Returns the weights of a triangle's corners at a point; negative ones without an area."""
    a, b, c = np.moveaxis(corners, 1, 0)
    cross = lambda u, v: u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    area = cross(b - a, c - a)
    # p - a = w_b (b - a) + w_c (c - a) by Cramer's rule:
    # w_b = (p - a) x (c - a) / area, w_c = (b - a) x (p - a) / area.
    second, third = cross(point - a, c - a), cross(b - a, point - a)
    weights = np.stack([area - second - third, second, third], axis=1)
    return np.where(area[:, None] == 0, -1.0, weights / np.where(area == 0, 1, area)[:, None])


def spread(texels: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """Gives texels that no face covers the colour of the nearest one that is covered."""
    from scipy import ndimage

    nearest: Any = ndimage.distance_transform_edt(
        ~covered, return_distances=False, return_indices=True
    )
    return texels[tuple(nearest)]
