"""The sheets of meshes that a search finds, against all faces one by one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph.shapes import cross_triangle
from scenegraph.visibility import find_mesh_sheets
from scenegraph.visibility._search import no_items
from support.hard_triangles import icosphere


SIZE = 32


def test_pixels_within_a_mesh_are_covered_whole_and_know_the_number_of_their_fragments():
    mesh = sg.TriangleMesh(*icosphere(3))
    scene = sg.Scene(sg.Group(ball=sg.Surface(mesh, sg.Constant([0.5, 0.5, 0.5]))))
    camera = sg.PerspectiveCamera.look_at([0.1, -3, 0.4], [0, 0, 0], [0, 0, 1], 0.8, SIZE, SIZE)
    pixels = np.stack(np.meshgrid(*[np.arange(SIZE)] * 2), axis=-1).reshape(-1, 2) + 0.5
    rays = jax.jit(jax.vmap(camera.ray))(jnp.asarray(pixels, jnp.float32))

    @jax.jit
    def both(rays):
        tree = sg.flat.flatten(scene).triangles.tree
        nothing, used = no_items(3, rays.near), jnp.ones(rays.near.shape, bool)
        found = find_mesh_sheets(tree, rays, used, nothing, 8, everything=False)
        cross = jax.vmap(cross_triangle, (None, 0))
        fronts = jax.lax.map(lambda ray: cross(ray, tree.corners), rays)
        return found.ranking.values[0], found.sheets, fronts.coverage * (fronts.facing < 0)

    value, sheets, coverage = both(eqx.filter(rays, eqx.is_array))
    inside = np.sum(np.asarray(coverage, np.float64), axis=1) > 1 - 5e-6
    # Summed with rounding, a third of them would be covered by a little less.
    assert 200 < np.sum(inside) < 700
    np.testing.assert_array_equal(value[inside], 1)
    np.testing.assert_array_equal(sheets.coverage[0][inside] >= 1, True)
    least, most = (np.sum(coverage > some, axis=1)[inside] for some in (1e-4, 0))
    count = np.asarray(sheets.size[0], int)[inside]
    assert np.all((least <= count) & (count <= most))
    assert len(np.unique(count)) > 3
