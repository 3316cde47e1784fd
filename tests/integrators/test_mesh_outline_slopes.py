"""Derivatives of the outline of meshes of far more faces than pixels, against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.hard_triangles import icosphere
from support.helpers import assert_close


NAMES = ["x", "y", "z", "size", "shear", "waves", "eye x", "eye z", "opacity"]
AT = [0.1, -0.2, 0.05, 0.9, 0.1, 0.15, 0.3, 0.7, 0.8]


def loss_of(level, part, two_sided):
    """A mean of what a mesh covers of 16 x 12 pixels, each with a weight of its own."""
    points, faces = icosphere(level)
    # A bowl of the faces below some height, which shows its inside; or all of them.
    faces = faces[np.mean(points[faces][..., 2], axis=1) < part]
    weights = np.random.default_rng(0).uniform(-1, 2, (12, 16))

    def loss(x):
        waves = x[5] * jnp.sin(3 * points[:, :1] + 1) * jnp.sin(4 * points[:, 2:])
        vertices = x[3] * (1 + waves) * points
        vertices += x[4] * vertices[:, 1:2] * jnp.array([1.0, 0.0, 0.5]) + x[:3]
        mesh = sg.TriangleMesh(vertices, faces, two_sided=two_sided)
        ball = sg.Surface(mesh, sg.Lambert([0.5] * 3), opacity=x[8])
        scene = sg.Scene(sg.Group(ball=ball, light=sg.AmbientLight([1.0] * 3)))
        eye = jnp.stack([x[6], jnp.asarray(-3.2), x[7]])
        target, up = jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])
        camera = sg.PerspectiveCamera.look_at(eye, target, up, 0.9, 16, 12)
        return jnp.mean(weights * sg.render(scene, camera).alpha)

    return loss


slow = pytest.mark.slow


# A pixel meets 20 to 40 faces, of which those of the far side are hidden, or more than are kept.
@pytest.mark.parametrize(
    "level, part, two_sided, close",
    [
        pytest.param(3, 2, True, 1e-3, marks=slow),
        pytest.param(3, 2, False, 1e-3, marks=slow),
        pytest.param(3, 0.2, True, 1e-2, marks=slow),
        pytest.param(4, 2, True, 1e-2, marks=slow),
    ],
)
def test_gradients_in_every_direction(level, part, two_sided, close, x64):
    loss, x = loss_of(level, part, two_sided), jnp.array(AT)
    value = jax.jit(loss)
    gradient = jax.jit(jax.grad(loss))(x)
    steps = 1e-6 * jnp.eye(len(x))
    expected = jnp.stack([(value(x + step) - value(x - step)) / 2e-6 for step in steps])
    assert jnp.min(jnp.abs(expected)) > 1e-3, dict(zip(NAMES, expected, strict=True))
    assert_close(gradient, expected, close)


def test_colours_of_a_mesh_at_rest():
    mesh = sg.TriangleMesh(*icosphere(3))
    camera = sg.PerspectiveCamera.look_at([0.3, -3.2, 0.7], [0] * 3, [0, 0, 1], 0.9, 16, 12)

    def loss(color):
        ball = sg.Surface(mesh, sg.Lambert(color))
        scene = sg.Scene(sg.Group(ball=ball, light=sg.AmbientLight([1.0] * 3)))
        return jnp.mean(sg.render(scene, camera).rgb)

    color = jnp.array([0.2, 0.5, 0.7])
    value, gradient = jax.jit(jax.value_and_grad(loss))(color)
    # The picture is linear in the colour, and all channels are alike.
    assert_close(gradient, jnp.full(3, value / jnp.sum(color)), 1e-5)
