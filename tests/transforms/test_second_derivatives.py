"""First and second derivatives through everything that makes a pose, beside differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import scenegraph as sg
from scenegraph.transforms import Affine, Pose, rotate_about, rotate_euler, scale, Similarity


UP, TARGET = [0.0, 0.0, 1.0], [0.1, 0.2, -0.1]
EYE = np.array([0.3, -4.0, 1.2])
TURN = np.array([0.4, -0.3, 0.7])
TANGENT = np.array([0.3, -0.2, 0.5, 0.4, -0.7, 1.1])


def turned(x):
    """A rotation and a shift as a matrix, of three numbers."""
    turn = rotate_euler(x).linear()
    top = jnp.concatenate([turn, jnp.stack([x[0] * x[1], x[2], x[0]])[:, None]], axis=1)
    return jnp.concatenate([top, jnp.array([[0.0, 0.0, 0.0, 1.0]])])


def tangent_of(x):
    return jnp.concatenate([x**2, jnp.array([0.3, -0.2, 0.5]) + x])


BASE = np.asarray([[0.0, -1, 0, 0.3], [1, 0, 0, -0.2], [0, 0, 1, 0.5], [0, 0, 0, 1]])
SIZE = (16, 12)
BALL = np.array([0.1, -0.3, 0.2])
MAKERS = {
    "Pose.look_at by eye": (lambda x: Pose.look_at(x, TARGET, UP), EYE),
    "Pose.look_at by target": (lambda x: Pose.look_at(EYE, x, UP), np.array(TARGET)),
    "Pose.look_at by up": (lambda x: Pose.look_at(EYE, TARGET, x), np.array([0.1, 0.2, 1.0])),
    "Pose of a matrix": (lambda x: Pose(turned(x)), TURN),
    "Pose of a matrix and zeros": (lambda x: Pose(turned(x), jnp.zeros(6)), TURN),
    "Pose of a matrix and a tangent": (lambda x: Pose(turned(x), TANGENT), TURN),
    "Pose of both": (lambda x: Pose(turned(x), tangent_of(x)), TURN),
    "Pose by its tangent at zero": (lambda x: Pose(BASE, x), np.zeros(6)),
    "Pose by a tiny tangent": (lambda x: Pose(BASE, x), 1e-9 * TANGENT),
    "Pose by a tangent": (lambda x: Pose(BASE, x), TANGENT),
    "Pose by a tangent of one radian": (
        lambda x: Pose(BASE, x),
        TANGENT / np.linalg.norm(TANGENT[3:]),
    ),
    "Pose by a tangent of five radians": (lambda x: Pose(BASE, x), 4 * TANGENT),
    "PerspectiveCamera.look_at": (
        lambda x: sg.PerspectiveCamera.look_at(x, TARGET, UP, 0.6, *SIZE).pose,
        EYE,
    ),
    "OrthographicCamera.look_at": (
        lambda x: sg.OrthographicCamera.look_at(x, TARGET, UP, 2.0, *SIZE).pose,
        EYE,
    ),
    "rotate_about by axis": (lambda x: rotate_about(x, 0.7, [0.5, 0.0, 1.0]), TURN),
    "rotate_about by angle": (lambda x: rotate_about(TURN, x[0], [0.5, 0.0, 1.0]), np.zeros(1)),
    "rotate_euler at zero": (lambda x: rotate_euler(x, "XYZ"), np.zeros(3)),
    "Similarity": (lambda x: Similarity(x[:3], x[3:7], x[7]), np.array([1.0, 2, 3, 1, 0, 0, 0, 2])),
    "scale": (scale, TURN),
    "Affine": (lambda x: Affine(jnp.eye(3) + jnp.outer(x, x), x), TURN),
    "inverse": (lambda x: Pose.look_at(x, TARGET, UP).inverse(), EYE),
    "composed": (lambda x: Pose(turned(x)) @ Pose.look_at(x, TARGET, UP), EYE),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", MAKERS)
def test_first_and_second_derivatives(name):
    """Of all numbers of a transform's map, weighted."""
    make, at = MAKERS[name]
    weights = np.random.default_rng(0).normal(size=(4, 3))

    def number(x):
        made = make(x)
        return jnp.sum(weights * jnp.concatenate([made.linear(), made.offset()[None]]))

    check_derivatives(number, jnp.asarray(at))


def check_derivatives(number, at):
    at, step = jnp.asarray(at, jnp.float64), 1e-5
    # A number and its gradient, and how both change along a direction.
    along = jax.jit(lambda x, way: jax.jvp(jax.value_and_grad(number), (x,), (way,)))
    for way in jnp.eye(len(at)):
        (ahead, ahead_slopes), _ = along(at + step * way, way)
        (behind, behind_slopes), _ = along(at - step * way, way)
        (_, slopes), (slope, bends) = along(at, way)
        first, second = (ahead - behind) / (2 * step), (ahead_slopes - behind_slopes) / (2 * step)
        np.testing.assert_allclose([slope, slopes @ way], first, atol=1e-8 * (1 + abs(first)))
        np.testing.assert_allclose(bends, second, atol=1e-8 * (1 + np.abs(second).max()))


CAMERAS = {
    "perspective": lambda x: sg.PerspectiveCamera.look_at(x, TARGET, UP, 0.6, *SIZE),
    "orthographic": lambda x: sg.OrthographicCamera.look_at(x, TARGET, UP, 2.0, *SIZE),
    "opencv": lambda x: sg.OpenCVCamera(Pose.look_at(x, TARGET, UP), 20.0, *SIZE, k1=-0.1, p1=0.01),
    "fisheye": lambda x: sg.FisheyeCamera(Pose.look_at(x, TARGET, UP), 9.0, *SIZE, k1=0.05),
    "panorama": lambda x: sg.PanoramaCamera(Pose.look_at(x, TARGET, UP), *SIZE),
    "moved": lambda x: sg.cameras.MovedCamera(
        Pose.look_at(x, TARGET, UP), sg.PerspectiveCamera(np.eye(4), 20.0, *SIZE)
    ),
    "rolling": lambda x: sg.RollingShutter(
        sg.PerspectiveCamera.look_at(x, TARGET, UP, 0.6, *SIZE), [0.1, 0.0, 0.2, 0.05, -0.1, 0.02]
    ),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", CAMERAS)
def test_derivatives_of_what_a_camera_sees(name):
    """A projected point, and the ray of a pixel, by the eye."""

    def number(x):
        camera = CAMERAS[name](x)
        ray = camera.ray(jnp.array([3.2, 4.7]))
        seen = camera.project(jnp.asarray(BALL))
        return seen @ jnp.array([0.7, -0.4]) + ray.direction @ BALL + jnp.sum(ray.d_direction**2)

    check_derivatives(number, EYE)


@pytest.mark.parametrize("angle", [0.0, 1e-4, 0.3, 0.999, 1.001, 3.0, 20.0])
def test_pose_against_the_matrix_exponential(angle):
    """Shift and rotation of a tangent vector, beside SciPy's exponential of its 4x4 matrix."""
    x, y, z = turn = angle * np.array([0.6, 0.0, 0.8])
    matrix = np.zeros((4, 4))
    matrix[:3] = np.column_stack([[[0, -z, y], [z, 0, -x], [-y, x, 0]], TANGENT[:3]])
    pose = Pose(np.eye(4), np.concatenate([TANGENT[:3], turn]))
    np.testing.assert_allclose(pose.linear(), expm(matrix)[:3, :3], atol=2e-6)
    np.testing.assert_allclose(pose.offset(), expm(matrix)[:3, 3], atol=1e-6)


@pytest.mark.parametrize(("view", "upwards"), [(2, 1), (1, 2), (0, 2)])
def test_a_traced_camera_along_up(view, upwards):
    """Another axis is upwards, and derivatives are finite."""
    up, eye = jnp.eye(3)[view], 3 * jnp.eye(3)[view]
    linear = jax.jit(lambda eye: Pose.look_at(eye, [0, 0, 0], up).linear())
    if view:
        np.testing.assert_allclose(linear(eye)[:, 1], np.eye(3)[upwards], atol=1e-6)
    np.testing.assert_allclose(linear(eye)[:, 2], np.eye(3)[view], atol=1e-6)
    np.testing.assert_allclose(linear(eye).T @ linear(eye), np.eye(3), atol=1e-6)
    assert np.isfinite(jax.jacobian(linear)(eye)).all()
    assert np.isnan(jax.jit(lambda x: Pose.look_at(x, x, up).linear())(eye)).all()


def test_derivatives_leave_the_numbers_alone():
    """A traced matrix with a tangent vector keeps both to the last bit."""
    matrix, tangent = np.asarray(turned(jnp.asarray(TURN, jnp.float32))), TANGENT.astype("f4")
    pose = jax.jit(Pose)(matrix, tangent)
    assert np.array_equal(pose.delta, tangent)
    assert np.array_equal(pose.base.value, matrix)
