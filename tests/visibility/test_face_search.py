"""The search over faces, in blocks of few rays, against all faces one by one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.shapes import cross_triangle
from scenegraph.visibility import _face_search, _face_shadows


def soup(count: int) -> sg.Scene:
    """Small triangles before a camera, of which neighbours lie near each other."""
    draw = np.random.default_rng(0)
    points = draw.uniform([-1, -0.1, -1], [1, 0.1, 1], (count, 1, 3))
    vertices = (points + draw.normal(size=(count, 3, 3)) * 0.02).reshape(-1, 3)
    mesh = sg.shapes.TriangleMesh(vertices, np.arange(3 * count).reshape(-1, 3))
    return sg.Scene(sg.Group(soup=sg.Surface(mesh, sg.Constant([0.5, 0.5, 0.5]))))


@pytest.mark.parametrize("rows", [64, 128, 256])
def test_rays_of_later_blocks_and_clusters_meet_their_own_faces_alone(rows, monkeypatch):
    # In small blocks, some rays meet no face of a bundle's first 32 clusters, but some of later
    # ones, after rays of other blocks were searched.
    monkeypatch.setattr(_face_search, "_ROWS", rows)
    monkeypatch.setattr(_face_search, "_FEW_ROWS", 64)
    camera = sg.OrthographicCamera.look_at([0, -4, 0], [0, 0, 0], [0, 0, 1], 2.2, 16, 16)
    inside = np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(1, -1, 2) + 0.5
    corner = 8 * np.stack(np.meshgrid(*[np.arange(2)] * 2), axis=-1).reshape(-1, 1, 2)
    pixels = jnp.asarray((corner + inside).reshape(-1, 2), jnp.float32)
    rays = jax.jit(jax.vmap(camera.ray))(pixels)

    @jax.jit
    def both(rays):
        tree = sg.flat.flatten(soup(8000)).triangles.tree
        used = jnp.ones(rays.near.shape, bool)
        sums, _ = _face_shadows.sum_shadows(tree, rays, used, 0, everything=False)
        one = lambda ray: jax.vmap(lambda face: cross_triangle(ray, face).coverage)(tree.corners)
        return jnp.sum(sums.coverage, axis=0), jax.lax.map(lambda ray: jnp.sum(one(ray)), rays)

    found, expected = map(np.asarray, both(eqx.filter(rays, eqx.is_array)))
    assert expected.max() > 1
    np.testing.assert_allclose(found, expected, atol=1e-4)
