"""Losses that keep the vertices of a mesh in order while it is fitted."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int, Scalar
from ..numerics import safe_norm, safe_normalise


class MeshEdges(NamedTuple):
    """The edges of a mesh, from `mesh_edges`."""

    edges: Int[Array, "edges 2"]  # the vertices at both ends of every edge, each once
    pairs: Int[Array, "pairs 2"]  # the faces on both sides of every edge that two faces share


def mesh_edges(faces: Int[Array, "faces 3"]) -> MeshEdges:
    """Lists the edges of a mesh, once, before it is fitted.

    **Arguments:**

    - `faces`: three vertices for each triangle, by number; known numbers, not traced ones.

    **Returns:**

    The edges and pairs of neighbouring faces. Of an edge that more than two faces share, each two
    that follow one another in the order of faces are a pair.

    Example: two triangles with an edge in common.

    ```python
    edges = sg.losses.mesh_edges(jnp.array([[0, 1, 2], [0, 2, 3]]))
    ```
    """
    corners = np.asarray(faces)
    # Sorted by number, an edge is alike in all of its faces.
    sides = np.sort(corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    edges, edge = np.unique(sides, axis=0, return_inverse=True)
    face = np.repeat(np.arange(len(corners)), 3)
    order = np.argsort(edge.reshape(-1), kind="stable")
    # Faces in the order of their edges: neighbours with one edge are a pair.
    shared = np.flatnonzero(np.diff(edge.reshape(-1)[order]) == 0)
    pairs = np.stack([face[order[shared]], face[order[shared + 1]]], axis=1)
    as_table = lambda x: jnp.asarray(x.reshape(-1, 2), jnp.int32)
    return MeshEdges(as_table(edges), as_table(pairs))


def laplacian_roughness(vertices: Float[Array, "vertices 3"], edges: MeshEdges) -> Scalar:
    """Computes how far vertices are from the mean of their neighbours.

    **Arguments:**

    - `vertices`: the mesh's vertices, in units of length.
    - `edges`: its edges, from `mesh_edges`.

    **Returns:**

    The mean over vertices of the squared distance; vertices without an edge count as zero.

    **Source:** Desbrun et al. 1999, "Implicit Fairing of Irregular Meshes using Diffusion and
    Curvature Flow", with uniform weights.
    """
    a, b = edges.edges.T
    # d_i = mean_j (v_j - v_i), over the neighbours j of i.
    apart = vertices[b] - vertices[a]
    sums = jnp.zeros_like(vertices).at[a].add(apart).at[b].add(-apart)
    count = jnp.zeros(len(vertices)).at[edges.edges].add(1)
    return jnp.mean(jnp.sum((sums / jnp.maximum(count, 1)[:, None]) ** 2, axis=1))


def edge_length_spread(
    vertices: Float[Array, "vertices 3"], edges: MeshEdges, length: float = 0.0
) -> Scalar:
    """Computes how much the edges of a mesh differ from a length.

    **Arguments:**

    - `vertices`: the mesh's vertices, in units of length.
    - `edges`: its edges, from `mesh_edges`.
    - `length`: the length that edges should have.

    **Returns:**

    The mean over edges of the squared difference.
    """
    a, b = edges.edges.T
    # mean over edges of (|v_b - v_a| - length)^2
    return jnp.mean((safe_norm(vertices[b] - vertices[a]) - length) ** 2)


def normal_roughness(
    vertices: Float[Array, "vertices 3"], faces: Int[Array, "faces 3"], edges: MeshEdges
) -> Scalar:
    """Computes how much a mesh is bent along its edges.

    **Arguments:**

    - `vertices`: the mesh's vertices.
    - `faces`: three vertices for each triangle, all turned alike.
    - `edges`: the mesh's edges, from `mesh_edges`.

    **Returns:**

    The mean over neighbouring faces of one minus the cosine of the angle between their normals: 0
    for a flat mesh, 2 for one that is folded back. Zero without neighbours.
    """
    a, b, c = jnp.moveaxis(vertices[faces], 1, 0)
    normals = safe_normalise(jnp.cross(b - a, c - a))
    one, other = edges.pairs.T
    # 1 - n_f . n_g for the faces f and g on both sides of an edge
    bends = 1 - jnp.sum(normals[one] * normals[other], axis=1)
    return jnp.sum(bends) / max(len(edges.pairs), 1)
