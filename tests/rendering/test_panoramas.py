"""Pictures of balls under panoramas."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1.2], [0, 0, 0], [0, 0, 1], 0.8, 16, 16)


@eqx.filter_jit
def picture(scene, lists):
    return sg.render(scene, CAMERA, sg.Surfaces(4, lists=lists)).rgb


def ball_under_sky(**more):
    ball = sg.Surface(sg.Sphere(), sg.GGX([0.97] * 3, 1.0, 0.3))
    sky = sg.EnvironmentLight(jnp.ones((8, 16, 3)), 16)
    return sg.Scene(sg.Group(ball=ball, sky=sky, **more))


@pytest.mark.slow
def test_with_and_without_lists():
    floor = sg.Surface(sg.Plane([0.0, 0.0, -1.0]), sg.Phong())
    scene = ball_under_sky(floor=floor, lamp=sg.PointLight([2.0, -2.0, 3.0], [9.0] * 3))
    listed, asked = (picture(scene, lists) for lists in (True, False))
    np.testing.assert_allclose(listed, asked, atol=1e-5)


def test_a_metal_ball_is_one_colour():
    """It was lit by points before, and speckled."""
    rgb = np.asarray(picture(ball_under_sky(), False))
    assert np.all(np.abs(rgb[6:10, 6:10] - 0.96) < 0.02)


@pytest.mark.slow
def test_a_floor_darkens_what_a_ball_mirrors():
    dark = sg.Surface(sg.Plane([0.0, 0.0, -1.0]), [0.0, 0.0, 0.0])
    above, below = (np.asarray(picture(ball_under_sky(floor=dark), False))[i, 8] for i in (4, 9))
    assert np.all(above > 0.8) and np.all(below < 0.5)


def test_panoramas_are_averaged_once_for_all_chunks():
    lamp, turn = sg.PointLight([2.0, -2.0, 3.0], [9.0] * 3), sg.Similarity(scale=2.0)
    scene = ball_under_sky(lamp=lamp)
    moved = eqx.tree_at(lambda x: x.root, scene, sg.Transformed(scene.root, turn))
    for flat in map(sg.flat.flatten, (scene, moved)):
        kinds = [type(stack.members.node) for stack in flat.lights]
        assert kinds == [sg.PointLight, sg.lights.PreparedEnvironment]


@eqx.filter_jit
@eqx.filter_grad
def brightness(scene, chunk):
    return jnp.mean(sg.render(scene, CAMERA, sg.Surfaces(4, lists=False), chunk=chunk).rgb ** 2)


@pytest.mark.slow
def test_chunks_add_the_gradients_of_texels():
    whole, chunks = (brightness(ball_under_sky(), chunk)["sky.texels"] for chunk in (256, 64))
    assert np.all(np.asarray(whole) > 0)
    np.testing.assert_allclose(chunks, whole, atol=1e-6)
