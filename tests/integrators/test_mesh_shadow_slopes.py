"""Derivatives of the shadow of a mesh of far more faces than pixels, against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


# The floor where the shadow falls; of the mesh itself, the picture shows nothing.
CAMERA = [[1.4, -0.9, 0.8], [1.4, 0.6, 0.0], [0.0, 0.0, 1.0], 1.1, 12, 10]
AT = [-1.3, -0.4, 3.1, 0.02, 0.1, 0.35, 0.03]
NAMES = ["lamp x", "lamp y", "lamp z", "floor z", "mesh y", "size", "waves"]


def stone(size, waves, shift):
    """The vertices and faces, 3,040, of a sphere with waves: dozens meet the light of a pixel."""
    u, w = np.meshgrid(np.arange(40), np.arange(1, 39), indexing="ij")
    around, up = 2 * np.pi * u / 40, np.pi * w / 39
    way = np.stack([np.cos(around) * np.sin(up), np.sin(around) * np.sin(up), np.cos(up)], -1)
    far = size + waves * jnp.sin(5 * around + 1) * jnp.sin(4 * up)
    points = (far[..., None] * way).reshape(-1, 3)
    poles = size * np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    at = lambda a, b: ((u + a) % 40) * 38 + w + b - 1
    inner = (at(0, 0), at(0, 1), at(1, 1)), (at(0, 0), at(1, 1), at(1, 0))
    faces = [np.stack(x, axis=-1)[:, :-1].reshape(-1, 3) for x in inner]
    ends = (np.full((40, 1), 1520), at(0, 0)[:, :1], at(1, 0)[:, :1])
    others = (np.full((40, 1), 1521), at(1, 37)[:, :1], at(0, 37)[:, :1])
    faces += [np.stack(x, axis=-1).reshape(-1, 3) for x in (ends, others)]
    return jnp.concatenate([points, poles]) + shift, np.concatenate(faces)


def loss_of(opacity):
    """The mean square of a picture, of all numbers and of the stone's opacity."""

    def loss(x):
        lamp = sg.PointLight(x[:3], [30.0] * 3)
        floor = sg.Surface(sg.Plane([0.0, 0.0, x[3]]), sg.Lambert([0.7] * 3))
        mesh = sg.TriangleMesh(*stone(x[5], x[6], jnp.array([0.2, x[4], 1.1])))
        ball = sg.Surface(mesh, sg.Lambert([0.5] * 3), opacity=opacity(x[7]))
        scene = sg.Scene(sg.Group(floor=floor, ball=ball, lamp=lamp))
        camera = sg.PerspectiveCamera.look_at(*CAMERA)
        return jnp.mean(sg.render(scene, camera).rgb ** 2)

    return loss


def number(x):
    return x


def shader(x):
    """The same opacity everywhere, as a shader: it is asked of a few faces, which must not tell."""
    return sg.Checker(0.3, x * jnp.ones(3), x * jnp.ones(3))


slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("opacity", [number, shader])
def test_gradients_in_every_direction(opacity, x64):
    loss = jax.jit(loss_of(opacity))
    x = jnp.array([*AT, 0.7])
    gradient = jax.jit(jax.grad(loss_of(opacity)))(x)
    steps = 1e-6 * jnp.eye(len(x))
    expected = jnp.stack([(loss(x + step) - loss(x - step)) / 2e-6 for step in steps])
    assert jnp.min(jnp.abs(expected)) > 1e-5, dict(zip(NAMES, expected, strict=False))
    assert_close(gradient, expected, 1e-5)


@slow
def test_derivatives_forward_twice_and_of_a_batch(x64):
    x, along = jnp.array([*AT, 1.0]), jnp.array([0.3, -0.2, 0.4, 0.1, -0.3, 0.2, 0.1, 0.0])
    loss = loss_of(lambda _: 1.0)
    both = jax.jit(lambda x: jax.jvp(jax.value_and_grad(loss), (x,), (along,)))
    (value, gradient), (slope, change) = both(x)
    # Forward mode is the gradient's product with the direction.
    assert_close(slope, gradient @ along, 1e-9)
    before, after = (both(x + step * along)[0][1] for step in (-1e-7, 1e-7))
    assert_close(change, (after - before) / 2e-7, 1e-4)
    batch = jax.jit(jax.vmap(jax.grad(loss)))(jnp.stack([x, x + 0.01 * along]))
    assert_close(batch[0], gradient, 1e-9)
    assert_close(batch[1], both(x + 0.01 * along)[0][1], 1e-9)
    assert value > 0
