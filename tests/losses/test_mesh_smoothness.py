"""Losses of meshes, against loops over vertices, edges and faces."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.losses import (
    edge_length_spread,
    laplacian_roughness,
    mesh_edges,
    normal_roughness,
)
from support.hard_triangles import icosphere, torus


MESHES = {"ball": icosphere(1), "ring": torus(6, 4)}


def shaken(name):
    vertices, faces = MESHES[name]
    noise = np.random.default_rng(0).normal(scale=0.05, size=vertices.shape)
    return jnp.asarray(vertices + noise, jnp.float32), np.asarray(faces)


def edges_by_loop(faces):
    return {frozenset(pair) for face in faces for pair in itertools.combinations(face, 2)}


@pytest.mark.parametrize("name", MESHES)
def test_edges_and_neighbours_are_those_found_by_loops(name):
    faces = np.asarray(MESHES[name][1])
    found = mesh_edges(jnp.asarray(faces))
    assert sorted(map(sorted, edges_by_loop(faces))) == np.asarray(found.edges).tolist()
    pairs = {frozenset(pair) for pair in np.asarray(found.pairs).tolist()}
    shared = lambda i, j: len(set(faces[i]) & set(faces[j])) == 2
    every = itertools.combinations(range(len(faces)), 2)
    assert pairs == {frozenset(pair) for pair in every if shared(*pair)}


@pytest.mark.parametrize("name", MESHES)
def test_losses_are_those_of_loops(name):
    vertices, faces = shaken(name)
    edges, v = mesh_edges(jnp.asarray(faces)), np.asarray(vertices, float)
    pairs = [sorted(pair) for pair in edges_by_loop(faces)]
    neighbours = [[j for pair in pairs if i in pair for j in pair if j != i] for i in range(len(v))]
    expected = np.mean(
        [np.sum((np.mean(v[j], axis=0) - v[i]) ** 2) for i, j in enumerate(neighbours)]
    )
    found = jax.jit(laplacian_roughness)(vertices, edges)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    lengths = np.array([np.linalg.norm(v[a] - v[b]) for a, b in pairs])
    expected = np.mean((lengths - 0.2) ** 2)
    found = jax.jit(lambda vertices: edge_length_spread(vertices, edges, 0.2))(vertices)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    normals = np.cross(v[faces[:, 1]] - v[faces[:, 0]], v[faces[:, 2]] - v[faces[:, 0]])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    bends = [1 - normals[i] @ normals[j] for i, j in np.asarray(edges.pairs)]
    found = jax.jit(normal_roughness)(vertices, jnp.asarray(faces), edges)
    np.testing.assert_allclose(found, np.mean(bends), rtol=1e-4)


def test_flat_meshes_are_smooth():
    faces = jnp.array([[0, 1, 2], [0, 2, 3]])
    square = jnp.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    roughness = lambda faces: jax.jit(normal_roughness)(square, faces, mesh_edges(faces))
    assert float(roughness(faces)) == pytest.approx(0, abs=1e-6)
    assert float(roughness(faces[:1])) == 0
    edges = mesh_edges(faces)
    slopes = jax.jit(jax.grad(lambda v: normal_roughness(v, faces, edges)))(square)
    assert np.all(np.isfinite(slopes))


def test_edges_of_a_mesh_node():
    vertices, faces = MESHES["ball"]
    mesh = sg.TriangleMesh(vertices, faces)
    # Euler: V - E + F = 2.
    edges = mesh_edges(mesh.faces).edges
    assert len(vertices) - len(edges) + len(faces) == 2
