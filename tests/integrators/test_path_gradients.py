"""Derivatives of random paths: closed forms, and differences of pictures of many samples."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.shaders import AbstractMaterial, ScatterSample


KEY = jax.random.key(5)
ALBEDO, EMISSION = np.array([0.8, 0.5, 0.3]), np.array([0.3, 0.2, 1.0])


class Glowing(AbstractMaterial):
    """A diffuse surface that shines by itself."""

    emission: jax.Array = eqx.field(converter=jnp.asarray)
    base: sg.Lambert

    needs_light: ClassVar[bool] = True

    def __call__(self, hit, view, lights):
        return self.emission + self.base(hit, view, lights)

    def albedo_at(self, hit, view):
        return self.base.albedo_at(hit, view)

    def scatter(self, hit, view, light):
        return self.base.scatter(hit, view, light)

    def density(self, hit, view, light):
        return self.base.density(hit, view, light)

    def sample(self, hit, view, uniform):
        return self.base.sample(hit, view, uniform)


class Mirror(AbstractMaterial):
    """All light, in one direction."""

    tint: jax.Array = eqx.field(converter=jnp.asarray)

    def __call__(self, hit, view, lights):
        return jnp.zeros_like(self.tint)

    def albedo_at(self, hit, view):
        return self.tint

    def scatter(self, hit, view, light):
        return jnp.zeros_like(self.tint)

    def density(self, hit, view, light):
        return jnp.zeros_like(hit.t)

    def sample(self, hit, view, uniform):
        direction = view - 2 * jnp.sum(view * hit.normal) * hit.normal
        yes = jnp.ones((), bool)
        return ScatterSample(direction, self.tint, jnp.zeros_like(hit.t), yes, ~yes)


def close(size=4, height=0.5):
    """A camera that sees a point below it, and little beside."""
    eye = [0.0, 0.0, height]
    return sg.PerspectiveCamera.look_at(eye, [0, 0, 0], [0, 1, 0], 0.001, size, size)


def tangent_of(scene, where, direction, camera, path, key=KEY):
    """The picture's derivative along a change of some leaves."""
    base = where(scene)
    direction = jax.tree.map(
        lambda x, d: jnp.broadcast_to(jnp.asarray(d, x.dtype), x.shape), base, direction
    )

    def draw(leaf):
        changed = eqx.tree_at(where, scene, leaf)
        return sg.render(changed, camera, path, key=key).rgb

    return jax.jvp(draw, (base,), (direction,))


def test_a_furnace_has_the_derivatives_of_its_series():
    oven = sg.Surface(sg.Sphere(), Glowing(EMISSION, sg.Lambert(ALBEDO)))
    scene, path = sg.Scene(sg.Group(oven=oven)), sg.Path(samples=4, bounces=3)
    eye, target = [0.1, 0.05, -0.1], [0.0, 1.0, 0.2]
    camera = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 1.0, 4, 4)

    def mean(scene):
        return jnp.sum(jnp.mean(sg.render(scene, camera, path, key=KEY).rgb, axis=(0, 1)))

    gradient = eqx.filter_grad(mean)(scene).root.children["oven"].shader
    powers = np.arange(1, 5)
    # L = e sum_k a^k, for k from 0 to bounces + 1
    by_albedo = EMISSION * np.sum(powers[:, None] * ALBEDO ** (powers[:, None] - 1), axis=0)
    np.testing.assert_allclose(gradient.base.albedo.color, by_albedo, rtol=1e-5)
    by_emission = 1 + np.sum(ALBEDO ** powers[:, None], axis=0)
    np.testing.assert_allclose(gradient.emission, by_emission, rtol=1e-5)
    # The size of a furnace changes nothing that is seen in it, nor does its place: but for noise,
    # which falls with the root of the samples.
    path = sg.Path(samples=1024, bounces=3)
    shape = eqx.filter_grad(mean)(scene).root.children["oven"].shape
    np.testing.assert_allclose(shape.radius, 0, atol=0.03)
    np.testing.assert_allclose(shape.center, 0, atol=0.15)


def test_pictures_are_linear_in_what_shines():
    sky = sg.EnvironmentLight(np.random.default_rng(0).uniform(size=(4, 8, 3)))
    floor = sg.Surface(sg.Plane(), sg.Lambert([0.6, 0.5, 0.4]))
    metal = sg.GGX([0.9, 0.6, 0.2], metallic=1.0, roughness=0.3)
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), metal)
    lamp = sg.PointLight([1.0, -1.0, 2.0], [3.0, 3.0, 3.0])
    panel = sg.RectangleLight([0.0, 0.0, 3.0], [0.5, 0.0, 0.0], [0.0, -0.5, 0.0], [4.0, 3.0, 2.0])
    things = {"floor": floor, "ball": ball, "lamp": lamp, "panel": panel, "sky": sky}
    scene, path = sg.Scene(sg.Group(**things)), sg.Path(samples=8, bounces=2)
    camera = sg.PerspectiveCamera.look_at([0, -4, 1.5], [0, 0, 0.5], [0, 0, 1], 0.5, 6, 6)

    def total(shining):
        changed = eqx.tree_at(_shining, scene, shining)
        return jnp.sum(sg.render(changed, camera, path, key=KEY).rgb)

    value, gradient = jax.value_and_grad(total)(_shining(scene))
    # By Euler's theorem, sum_i x_i df/dx_i = f.
    products = jax.tree.map(lambda x, y: jnp.sum(x * y), gradient, _shining(scene))
    np.testing.assert_allclose(sum(jax.tree.leaves(products)), value, rtol=1e-4)


def _shining(scene):
    children = scene.root.children
    return children["lamp"].intensity, children["panel"].radiance, children["sky"].texels


def check_tangent(picture, expected, sigmas=4.5):
    """Compares the mean over equal pixels with a number, by how much pixels differ."""
    picture = np.asarray(picture, np.float64).reshape(-1, 3)
    error = np.std(picture, axis=0, ddof=1) / np.sqrt(len(picture))
    assert np.all(error < 0.05 * np.max(np.abs(expected)) + 1e-9), "the test says little"
    np.testing.assert_array_less(
        np.abs(picture.mean(axis=0) - expected), sigmas * error + 1e-4 * np.max(np.abs(expected))
    )


def _factor(a, b, height):
    """The part of the light of a rectangle's plane that arrives below its centre."""
    x, y = a / height, b / height
    part = lambda x, y: x / np.sqrt(1 + x**2) * np.arctan(y / np.sqrt(1 + x**2))
    return 4 * (part(x, y) + part(y, x)) / (2 * np.pi)


@pytest.mark.parametrize("name", ["height", "width", "radiance", "floor"])
def test_a_panel_of_light_has_the_derivatives_of_its_form_factor(name):
    radiance = np.array([2.0, 1.0, 0.5])
    panel = sg.RectangleLight([0.0, 0.0, 1.0], [0.5, 0.0, 0.0], [0.0, -0.8, 0.0], radiance)
    floor = sg.Surface(sg.Plane([0.0, 0.0, 0.0]), sg.Lambert(ALBEDO))
    scene = sg.Scene(sg.Group(panel=panel, floor=floor))
    step = 1e-5
    by = lambda f: (f(step) - f(-step)) / (2 * step) * ALBEDO * radiance
    children = lambda scene: scene.root.children
    where, direction, expected = {
        "height": (
            lambda s: children(s)["panel"].center,
            [0.0, 0.0, 1.0],
            by(lambda e: _factor(0.5, 0.8, 1 + e)),
        ),
        "width": (
            lambda s: children(s)["panel"].edge_u,
            [1.0, 0.0, 0.0],
            by(lambda e: _factor(0.5 + e, 0.8, 1)),
        ),
        "radiance": (
            lambda s: children(s)["panel"].radiance,
            [1.0, 1.0, 1.0],
            ALBEDO * _factor(0.5, 0.8, 1),
        ),
        "floor": (
            lambda s: children(s)["floor"].shape.point,
            [0.0, 0.0, 1.0],
            by(lambda e: _factor(0.5, 0.8, 1 - e)),
        ),
    }[name]
    path = sg.Path(samples=512, bounces=0)
    _, tangent = tangent_of(scene, where, direction, close(6), path)
    check_tangent(tangent, expected)


@pytest.mark.parametrize("leaf", ["roughness", "metallic"])
def test_a_rough_surface_under_a_sky_has_the_derivatives_of_its_mean(leaf):
    texels = np.random.default_rng(3).uniform(size=(3, 6, 3))
    sky = sg.EnvironmentLight(texels)
    floor = sg.Surface(sg.Plane(), sg.GGX([0.8, 0.5, 0.3], metallic=0.6, roughness=0.5))
    scene, path = sg.Scene(sg.Group(floor=floor, sky=sky)), sg.Path(samples=4096, bounces=0)
    camera = sg.PerspectiveCamera.look_at([0, -1, 1.0], [0, 0, 0], [0, 1, 0], 0.001, 6, 6)
    where = lambda scene: getattr(scene.root.children["floor"].shader, leaf)
    _, tangent = tangent_of(scene, where, 1.0, camera, path)
    step = 0.02
    draw = lambda e: (
        sg.render(
            eqx.tree_at(where, scene, where(scene) + e), camera, path, key=jax.random.key(6)
        ).rgb
    )
    differences = (draw(step) - draw(-step)) / (2 * step)
    mine, theirs = (np.asarray(x, np.float64).reshape(-1, 3) for x in (tangent, differences))
    error = np.sqrt((np.var(mine, axis=0) + np.var(theirs, axis=0)) / (len(mine) - 1))
    expected = theirs.mean(axis=0)
    assert np.all(error < 0.2 * np.max(np.abs(expected)))
    # The difference has an error of its own, of the order of the step squared.
    np.testing.assert_array_less(
        np.abs(mine.mean(axis=0) - expected), 4.5 * error + 0.01 * np.max(np.abs(expected))
    )


def test_what_a_mirror_shows_moves_with_it():
    # The colour of the background is linear in the elevation.
    ramp = sg.shaders.Gradient([0.0, -1.5], [0.0, 1.5], [0.0, 0.0, 0.0], [1.0, 0.5, 0.2])
    mirror = sg.Surface(sg.Plane(), Mirror([0.9, 0.8, 0.7]))
    scene = sg.Scene(sg.Group(mirror=mirror), background=ramp)
    camera = sg.PerspectiveCamera.look_at([0, -2, 1.0], [0, 0, 0], [0, 0, 1], 0.3, 4, 4)
    path = sg.Path(samples=4, bounces=0)
    where = lambda scene: scene.root.children["mirror"].shape.normal
    _, tangent = tangent_of(scene, where, [0.0, 1.0, 0.0], camera, path)
    step = 1e-2
    draw = lambda e: (
        sg.render(eqx.tree_at(where, scene, jnp.array([0.0, e, 1.0])), camera, path, key=KEY).rgb
    )
    differences = (draw(step) - draw(-step)) / (2 * step)
    assert np.min(np.abs(differences)) > 0.05
    np.testing.assert_allclose(tangent, differences, rtol=2e-3)


def test_light_through_what_is_partly_transparent():
    # Half of all paths meet the sheet, the others the floor behind it.
    sheet = sg.Surface(sg.Plane([0.0, 0.0, 0.2]), [1.0, 0.5, 0.0], opacity=0.4)
    floor = sg.Surface(sg.Plane(), [0.0, 0.5, 1.0])
    scene, path = sg.Scene(sg.Group(sheet=sheet, floor=floor)), sg.Path(samples=256, bounces=0)
    where = lambda scene: scene.root.children["sheet"].opacity
    image, tangent = tangent_of(scene, where, 1.0, close(8), path)
    check_tangent(image, np.array([0.4, 0.5, 0.6]))
    check_tangent(tangent, np.array([1.0, 0.0, -1.0]))


def test_all_leaves_have_finite_derivatives_both_ways():
    things = {
        "floor": sg.Surface(sg.Plane(), sg.Lambert([0.6, 0.6, 0.6])),
        "ball": sg.Surface(sg.Sphere([0.0, 0.0, 0.5], 0.5), sg.GGX(roughness=0.0, metallic=1.0)),
        "wall": sg.Surface(
            sg.TriangleMesh([[1.0, -1, 0], [1, 1, 0], [1, 0, 1.5]], [[0, 1, 2]]), sg.Phong()
        ),
        "lamp": sg.PointLight([1.0, -1.0, 2.0], [3.0, 3.0, 3.0]),
        "bulb": sg.SphereLight([-1.0, 0.0, 0.3], 0.3, [3.0, 3.0, 3.0]),
        "sky": sg.EnvironmentLight(jnp.ones((2, 4, 3))),
    }
    scene, path = sg.Scene(sg.Group(**things)), sg.Path(samples=4, bounces=2)
    camera = sg.PerspectiveCamera.look_at([0, -4, 1.5], [0, 0, 0.5], [0, 0, 1], 0.8, 6, 6)
    floats, static = eqx.partition((scene, camera), eqx.is_inexact_array)

    def loss(floats):
        scene, camera = eqx.combine(floats, static)
        image = sg.render(scene, camera, path, key=KEY)
        return jnp.sum(image.rgb**2) + jnp.sum(image.alpha) + jnp.sum(image.depth)

    gradient = jax.grad(loss)(floats)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(gradient))
    generator = np.random.default_rng(0)
    change = jax.tree.map(lambda x: jnp.asarray(generator.normal(size=x.shape), x.dtype), floats)
    forward = jax.jvp(loss, (floats,), (change,))[1]
    products = jax.tree.map(lambda x, y: jnp.sum(x * y), gradient, change)
    np.testing.assert_allclose(sum(jax.tree.leaves(products)), forward, rtol=2e-3)
