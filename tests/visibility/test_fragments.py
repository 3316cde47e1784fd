"""The sheets of meshes that a search finds, and sums over faces, against all faces one by one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.shapes import cross_triangle
from scenegraph.visibility import map_ranked, sum_shadows
from scenegraph.visibility._faces import find_sheets
from scenegraph.visibility._search import no_items
from support.hard_triangles import icosphere


SIZE = 32


def test_pixels_within_a_mesh_are_covered_whole():
    mesh = sg.TriangleMesh(*icosphere(3))
    scene = sg.Scene(sg.Group(ball=sg.Surface(mesh, sg.Constant([0.5, 0.5, 0.5]))))
    camera = sg.PerspectiveCamera.look_at([0.1, -3, 0.4], [0, 0, 0], [0, 0, 1], 0.8, SIZE, SIZE)
    pixels = np.stack(np.meshgrid(*[np.arange(SIZE)] * 2), axis=-1).reshape(-1, 2) + 0.5
    rays = jax.jit(jax.vmap(camera.ray))(jnp.asarray(pixels, jnp.float32))

    @jax.jit
    def both(rays):
        flat = sg.flat.flatten(scene)
        tree = flat.triangles.tree

        def search(shared, ray):
            nothing = no_items(3, ray.near), jnp.full_like(ray.near, jnp.inf)
            return find_sheets(*shared, ray, jnp.asarray(True), nothing, 8)[:2]

        found, sheets = map_ranked(search, (tree, flat.cuts), rays)
        cross = jax.vmap(cross_triangle, (None, 0))
        fronts = jax.lax.map(lambda ray: cross(ray, tree.corners), rays)
        return found.values[0], sheets, fronts.coverage * (fronts.facing < 0)

    value, sheets, coverage = both(eqx.filter(rays, eqx.is_array))
    total = np.sum(np.asarray(coverage, np.float64), axis=1)
    inside = total > 1 - 5e-6
    # Summed with rounding, a third of them would be covered by a little less.
    assert 200 < np.sum(inside) < 700
    np.testing.assert_array_equal(value[inside], 1)
    np.testing.assert_array_equal(sheets.coverage[0][inside] >= 1, True)
    edge = (total > 1e-3) & ~inside
    np.testing.assert_allclose(value[edge], total[edge], atol=5e-5)
    # The first layer is turned to the eye, and of the only mesh.
    assert set(np.unique(sheets.kind[0])) == {-1, 0}


def soup(count: int) -> sg.Scene:
    """Small triangles before a camera, of which neighbours lie near each other."""
    draw = np.random.default_rng(0)
    points = draw.uniform([-1, -0.1, -1], [1, 0.1, 1], (count, 1, 3))
    vertices = (points + draw.normal(size=(count, 3, 3)) * 0.02).reshape(-1, 3)
    mesh = sg.shapes.TriangleMesh(vertices, np.arange(3 * count).reshape(-1, 3))
    return sg.Scene(sg.Group(soup=sg.Surface(mesh, sg.Constant([0.5, 0.5, 0.5]))))


def test_sums_are_those_over_all_faces():
    camera = sg.OrthographicCamera.look_at([0, -4, 0], [0, 0, 0], [0, 0, 1], 2.2, 16, 16)
    inside = np.stack(np.meshgrid(*[np.arange(8)] * 2), axis=-1).reshape(1, -1, 2) + 0.5
    corner = 8 * np.stack(np.meshgrid(*[np.arange(2)] * 2), axis=-1).reshape(-1, 1, 2)
    pixels = jnp.asarray((corner + inside).reshape(-1, 2), jnp.float32)
    rays = jax.jit(jax.vmap(camera.ray))(pixels)

    @jax.jit
    def both(rays):
        tree = sg.flat.flatten(soup(8000)).triangles.tree
        sums = sum_shadows(tree, rays, jnp.ones(rays.near.shape, bool))
        one = lambda ray: jax.vmap(lambda face: cross_triangle(ray, face).coverage)(tree.corners)
        return jnp.sum(sums.coverage, axis=0), jax.lax.map(lambda ray: jnp.sum(one(ray)), rays)

    found, expected = map(np.asarray, both(eqx.filter(rays, eqx.is_array)))
    assert expected.max() > 1
    np.testing.assert_allclose(found, expected, atol=1e-4)
