"""How many layers first pictures of many surfaces have, and pictures in traced functions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.integrators import choose_integrator
from scenegraph.rendering import _render
from scenegraph.scene import find_contents


@pytest.mark.parametrize("copies", [False, True])
def test_pictures_of_many_surfaces_begin_with_more_layers(monkeypatch, copies):
    """Twelve balls behind each other, with eight layers a ray: no picture is drawn twice."""
    places = np.linspace([0.0, 0.0, 0.0], [0.0, 9.0, 0.0], 12)
    shade = sg.Surface(sg.Sphere([0.0, 0.0, 0.0], 0.3), sg.Constant([0.5, 0.2, 0.1]), opacity=0.1)
    if copies:
        balls = sg.Instances(shade, jax.vmap(sg.Similarity)(jnp.asarray(places)))
    else:
        at = lambda place: sg.Transformed(shade, sg.Similarity(place))
        balls = sg.Group(**{f"ball{i}": at(place) for i, place in enumerate(places)})
    camera = sg.PerspectiveCamera.look_at([0, -5, 0], [0, 0, 0], [0, 0, 1], 0.2, 8, 6)
    expected = sg.render(sg.Scene(balls), camera)
    layers, draw_all = [], _render.draw_picture
    monkeypatch.setattr(_render, "_MANY_SURFACES", 11)
    monkeypatch.setattr(_render, "_enlarged", {})
    draw = lambda scene, camera, how, *more: (
        layers.append(how.surfaces.layers) or draw_all(scene, camera, how, *more)
    )
    monkeypatch.setattr(_render, "draw_picture", draw)
    image = sg.render(sg.Scene(balls), camera)
    assert layers == [16]
    np.testing.assert_allclose(image.rgb, expected.rgb, atol=1e-6)


@pytest.mark.parametrize(("boxes", "balls", "layers"), [(3, 0, 8), (4, 12, 16), (4, 13, 8)])
def test_pictures_of_many_boxes_begin_with_more_layers(monkeypatch, boxes, balls, layers):
    """Of more than three boxes, if one surface in four is a box."""
    monkeypatch.setattr(_render, "_MANY_SIDED", 3)
    parts = {f"box{i}": sg.Box([i, 0, 0], [i + 0.5, 1, 1]) for i in range(boxes)}
    parts |= {f"ball{i}": sg.Sphere([i, 2, 0], 0.4) for i in range(balls)}
    scene = sg.Scene(sg.Group(**{name: sg.Surface(x, [0.5] * 3) for name, x in parts.items()}))
    contents = find_contents(scene)
    chosen = choose_integrator(scene, None, contents)
    first = _render.with_first_layers(chosen, contents)
    assert first.surfaces.layers == layers


def test_constant_scenes_in_traced_functions(ball):
    scene, camera = ball
    brighter = jax.jit(lambda factor: factor * sg.render(scene, camera).rgb)(2.0)
    np.testing.assert_allclose(brighter, 2 * sg.render(scene, camera).rgb, atol=1e-6)


def test_gradients_outside_of_jit(ball):
    scene, camera = ball
    slope = eqx.filter_grad(lambda scene: jnp.mean(sg.render(scene, camera).rgb))(scene)
    jitted = eqx.filter_jit(eqx.filter_grad(lambda scene: jnp.mean(sg.render(scene, camera).rgb)))
    np.testing.assert_allclose(
        slope["ball.shape"].center, jitted(scene)["ball.shape"].center, rtol=1e-4, atol=1e-7
    )


@pytest.fixture(name="ball", scope="module")
def _ball():
    ball = sg.Surface(sg.Sphere([0.0, 0.0, 1.0], 1.0), sg.Lambert([0.8, 0.4, 0.2]))
    lamp = sg.PointLight([2.0, -2.0, 4.0], [30.0] * 3)
    camera = sg.PerspectiveCamera.look_at([0, -5, 2], [0, 0, 1], [0, 0, 1], 0.7, 24, 16)
    return sg.Scene(sg.Group(ball=ball, lamp=lamp)), camera
