"""The examples in the docstrings of the abstract classes that users implement work as written."""

import inspect
import re
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import scenegraph as sg
from scenegraph import fields, filters, lights, losses, rays, shaders, shapes
from support.contract_table import COUNTS, RADIANCE, RAYS, SCENE, TARGETS


BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
CAMERA = sg.PerspectiveCamera.look_at([0, -3, 2], [0, 0, 0], [0, 0, 1], 0.8, 4, 4, near=1, far=9)


def example(cls) -> dict:
    """Runs a docstring's example; returns the names that it defines."""
    names = {"sg": sg, "jax": jax, "jnp": jnp, "eqx": eqx, "ClassVar": ClassVar}
    exec(BLOCK.search(inspect.cleandoc(cls.__doc__))[1], names)
    return names


def test_shape_shader_light_and_field():
    """All in one picture, to which every one of their numbers contributes."""
    floor = example(shaders.AbstractShader)["floor"]
    nodes = {
        "ring": example(shapes.AbstractSmoothShape)["ring"],
        "floor": eqx.tree_at(lambda s: s.shape.point, floor, jnp.array([0.3, 0.0, -0.5])),
        "lamp": example(lights.AbstractLight)["lamp"],
        "haze": example(fields.AbstractField)["haze"],
    }
    scene = sg.Scene(sg.Group(**nodes), background=[0.0, 0.0, 0.0])

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(scene):
        return jnp.mean(sg.render(scene, CAMERA).rgb)

    owned = ("ring.shape", "floor.shader", "lamp", "haze.field")
    for path, leaf, _ in sg.scene.named_leaves(gradient(scene)):
        assert np.all(np.isfinite(leaf)), path
        assert np.any(leaf) or not path.startswith(owned), path


def test_shader_with_an_albedo():
    shader = example(shaders.AbstractAlbedoShader)["table"].shader
    hit = rays.Hit(1.0, jnp.zeros(3), jnp.array([0, 0, 1.0]), jnp.zeros(2), jnp.zeros((2, 2)), 1.0)
    view, light = (
        jnp.array([0, 0, -1.0]),
        rays.Irradiance(jnp.zeros((0, 3)), jnp.zeros((0, 3)), [0.5] * 3),
    )
    np.testing.assert_allclose(shader(hit, view, light), [0.05] * 3)
    np.testing.assert_allclose(shaders.albedo_of(shader, hit, view), [0.1, 0.5, 0.1])


def test_filter():
    sepia = example(filters.AbstractFilter)["sepia"]
    filtered = sepia(sg.Image(jnp.array([[[0.2, 0.4, 0.9]]])))
    np.testing.assert_allclose(filtered.rgb[0, 0], [0.5, 0.4, 0.3], rtol=1e-6)


def test_losses():
    batch = sg.data.Batch(jax.tree.map(lambda x: x[:2], RAYS), TARGETS[0], COUNTS[0])
    level = jax.tree.map(lambda x: x[0], RADIANCE)
    absolute = example(losses.AbstractRayLoss)["AbsoluteError"]()
    value, terms = absolute((level, level), batch, SCENE)
    errors = np.abs(level.rgb - batch.rgb).mean(axis=1)
    np.testing.assert_allclose(value, np.average(errors, weights=batch.lossmult), rtol=1e-5)

    regularised = example(losses.AbstractLoss)["loss"]
    checker = sg.Surface(sg.Plane(), sg.Checker(1.0, [0.5, 0.0, 1.0]))
    plain, _ = regularised.inner((level, level), batch, checker)
    value, _ = regularised((level, level), batch, checker)
    np.testing.assert_allclose(value - plain, regularised.strength * 1.25, rtol=1e-3)
