"""`look_at` of every camera of its own pose."""

import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


EYE, TARGET, UP = [3.0, -4.0, 2.0], [0.5, 0.0, 1.0], [0.0, 0.0, 1.0]
SIZE = 32, 24
CAMERAS = {
    "perspective": sg.PerspectiveCamera.look_at(EYE, TARGET, UP, 0.8, *SIZE),
    "orthographic": sg.OrthographicCamera.look_at(EYE, TARGET, UP, 3.0, *SIZE),
    "opencv": sg.OpenCVCamera.look_at(EYE, TARGET, UP, 0.8, *SIZE, k1=0.1),
    "fisheye": sg.FisheyeCamera.look_at(EYE, TARGET, UP, 0.8, *SIZE, k1=0.1),
    "panorama": sg.PanoramaCamera.look_at(EYE, TARGET, UP, *SIZE),
}


@pytest.mark.parametrize("name", CAMERAS)
def test_the_target_is_in_the_middle_and_up_is_up(name):
    camera = CAMERAS[name]
    middle = np.array(SIZE) / 2
    assert_close(camera.project(jnp.asarray(TARGET)), middle, absolute=1e-3)
    above = camera.project(jnp.asarray(TARGET) + 0.2 * jnp.asarray(UP))
    assert abs(float(above[0]) - middle[0]) < 1e-3 and float(above[1]) < middle[1] - 0.1
    if name != "orthographic":
        assert_close(camera.pose.offset(), EYE, 1e-6)


@pytest.mark.parametrize("name", ["perspective", "opencv", "fisheye"])
def test_the_angle_of_view_is_that_between_the_sides(name):
    """Without coefficients, that is, of lenses."""
    lens = {} if name == "perspective" else {"k1": 0.0}
    camera = type(CAMERAS[name]).look_at(EYE, TARGET, UP, 0.8, *SIZE, **lens)
    ways = [camera.line(jnp.array([x, SIZE[1] / 2]))[1] for x in (0.0, SIZE[0])]
    units = [way / jnp.linalg.norm(way) for way in ways]
    assert_close(jnp.arccos(jnp.dot(*units)), 0.8, 1e-4)
