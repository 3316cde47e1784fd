"""Meshes whose faces are about as small as pixels cast no shadows on themselves within a pixel."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


def waves(side):
    """A field of low hills: its faces are all lit, so that it has no shadow."""
    x, y = np.meshgrid(*2 * [np.linspace(-1, 1, side)], indexing="ij")
    heights = 0.02 * np.sin(9 * x + 1) * np.sin(8 * y + 2)
    corner = np.arange(side * side).reshape(side, side)
    a, b, c, d = (
        x.ravel() for x in (corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:])
    )
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    return sg.TriangleMesh(np.stack([x, y, heights], -1).reshape(-1, 3), faces)


@pytest.mark.slow
def test_small_uneven_faces_do_not_shadow_themselves():
    lamp = sg.PointLight([3.0, 1.0, 2.0], [20.0] * 3)
    scene = sg.Scene(sg.Group(hills=sg.Surface(waves(48), sg.Lambert([0.8] * 3)), lamp=lamp))
    camera = sg.PerspectiveCamera.look_at([0.2, -2.5, 2], [0, 0, 0], [0, 0, 1], 0.8, 32, 32)
    lit = sg.render(scene, camera).rgb
    unshaded = sg.render(scene, camera, integrator=sg.Surfaces(shadows=False)).rgb
    assert float(jnp.mean(unshaded)) > 0.05
    np.testing.assert_allclose(lit, unshaded, atol=0.02 * float(jnp.max(unshaded)))
