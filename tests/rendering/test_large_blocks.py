"""Devices of many cores compute more rows at once: pictures and gradients are the same."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.numerics import _blocks
from support.helpers import assert_close


def eye():
    return sg.PerspectiveCamera.look_at([0, -8, 5], [0, 0, 0.5], [0, 0, 1], 0.8, 64, 48)


def room():
    checker = sg.Checker(1.0, [0.8] * 3, [0.2] * 3)
    floor = sg.Surface(sg.Plane(), sg.Lambert(checker))
    return {"floor": floor, "lamp": sg.PointLight([2.0, -2.0, 6.0], [60.0] * 3)}


def balls():
    draw = np.random.default_rng(0)
    shapes = [lambda at: sg.Sphere(at, 0.3), lambda at: sg.Box(at - 0.2, at + 0.3)]
    things = {
        f"thing{i}": sg.Surface(shapes[i % 2](draw.uniform([-3, -3, 0.3], [3, 3, 1.5])), [0.5] * 3)
        for i in range(24)
    }
    return sg.Scene(sg.Group(**room(), **things))


def crowd():
    """So many balls that lists are long."""
    draw = np.random.default_rng(0)
    centers = draw.uniform([-3, -3, 0.3], [3, 3, 1.5], (300, 3))
    things = {
        f"ball{i}": sg.Surface(sg.Sphere(at, 0.15), [0.5] * 3) for i, at in enumerate(centers)
    }
    return sg.Scene(sg.Group(**room(), **things))


def blobs():
    draw = np.random.default_rng(0)
    centers = draw.uniform([-3, -3, 0.3], [3, 3, 1.5], (6, 3))
    volumes = {
        f"blob{i}": sg.Volume(
            sg.fields.GaussianBlob(at, 0.2, 20.0, [0.8, 0.5, 0.2]), sg.Box(at - 0.5, at + 0.5)
        )
        for i, at in enumerate(centers)
    }
    return sg.Scene(sg.Group(**volumes), integrator=sg.Hierarchical((24,)))


def ring():
    """More than 2,000 faces, some of them before others."""
    u, w = np.meshgrid(np.arange(64), np.arange(20), indexing="ij")
    # Turned, so that no edge lies on that between two pixels, where derivatives have a step.
    around, across = 2 * np.pi * u / 64 + 0.03, 2 * np.pi * w / 20
    far = 1.5 + 0.5 * np.cos(across)
    places = np.stack([far * np.cos(around), far * np.sin(around), 0.6 + np.sin(across) / 2], -1)
    at = lambda a, b: ((u + a) % 64) * 20 + (w + b) % 20
    corners = (at(0, 0), at(1, 0), at(1, 1)), (at(0, 0), at(1, 1), at(0, 1))
    faces = np.concatenate([np.stack(x, axis=-1).reshape(-1, 3) for x in corners])
    mesh = sg.TriangleMesh(places.reshape(-1, 3), faces)
    return sg.Scene(sg.Group(**room(), ring=sg.Surface(mesh, sg.Lambert([0.5] * 3))))


# Of a sheet's fragments as many have derivatives as there are layers: all, of the ring in a pixel.
EVERYTHING = sg.Surfaces(layers=32)


def of_picture(scene):
    arrays, rest = eqx.partition(scene, eqx.is_inexact_array)
    integrator = EVERYTHING if "ring" in scene.root.children else None

    @jax.jit
    def both(arrays):
        loss = lambda x: jnp.mean(sg.render(eqx.combine(x, rest), eye(), integrator).rgb ** 2)
        picture = sg.render(eqx.combine(arrays, rest), eye(), integrator)
        return picture.rgb, picture.overflow, jax.grad(loss)(arrays)

    jax.clear_caches()
    return both(arrays)


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "scene", [blobs, *(pytest.param(scene, marks=slow) for scene in (balls, crowd, ring))]
)
def test_pictures_and_gradients(scene, x64, monkeypatch):
    rgb, overflow, gradient = of_picture(scene())
    monkeypatch.setitem(_blocks._TIMES, "cpu", 64)
    others = of_picture(scene())
    assert rgb.dtype == jnp.float64
    assert_close(others[0], rgb, absolute=1e-5)
    np.testing.assert_array_equal(others[1], overflow)
    for own, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(others[2]), strict=True):
        assert_close(other, own, relative=1e-3, absolute=1e-6)
