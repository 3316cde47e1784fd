"""Frames: there and back, and poses that stay rigid whatever an optimiser does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.transforms import Affine, Inverse, inverse_matrix, Pose, Similarity
from support.helpers import assert_close, assert_finite_gradients, assert_gradients


SHEAR = [[1.0, 0.4, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 0.5]]
TRANSFORMS = {
    "similarity": Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], 2.5),
    "mirror": Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], -0.5),
    "affine": Affine(SHEAR, [0, 1, 0]),
    "pose": Pose.look_at([3, 2, 1], [0, 0, 0], [0, 0, 1]),
    "moved pose": Pose(jnp.eye(4), [0.3, -1, 2, 0.5, -0.7, 0.1]),
    "inverse": Inverse(Affine(SHEAR, [0, 1, 0])),
}


def assert_rotation(matrix):
    assert_close(matrix.T @ matrix, np.eye(3), 1e-6)
    assert float(jnp.linalg.det(matrix)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_there_and_back(name):
    transform, point = TRANSFORMS[name], jnp.array([0.3, -2.0, 1.1])
    back = transform.inverse()
    assert back.is_similarity == transform.is_similarity
    assert_close(back.point(transform.point(point)), point, 2e-6)
    assert_close(transform.point(back.point(point)), point, 2e-6)
    assert_close(back.direction(transform.direction(point)), point, 2e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_direction_is_the_difference_of_points(name):
    transform, a, b = TRANSFORMS[name], jnp.array([0.3, -2.0, 1.1]), jnp.array([1.0, 0.5, -0.2])
    assert_close(transform.direction(a - b), transform.point(a) - transform.point(b), 1e-6)
    assert_close(transform.point(jnp.zeros(3)), transform.offset(), 1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_is_similarity_tells_the_truth(name):
    matrix = TRANSFORMS[name].linear()
    product = matrix.T @ matrix
    scaled = product[0, 0] * np.eye(3)
    assert TRANSFORMS[name].is_similarity == np.allclose(product, scaled, atol=1e-5)


def test_inverse_matrix_against_numpy():
    matrices = np.random.default_rng(0).normal(size=(20, 3, 3)).astype(np.float32)
    assert_close(jax.jit(jax.vmap(inverse_matrix))(matrices), np.linalg.inv(matrices), 1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1e-12, 1e-3, 1.0, 100.0])
def test_pose_stays_a_rotation(seed, size):
    delta = size * jax.random.normal(jax.random.key(seed), (6,))
    assert_rotation(Pose(TRANSFORMS["pose"].base, delta).linear())


@pytest.mark.parametrize("seed", range(5))
def test_similarity_rotation_is_normalised_on_use(seed):
    quaternion = 30 * jax.random.normal(jax.random.key(seed), (4,))
    assert_rotation(Similarity(rotation=quaternion).linear())


def test_quaternions_are_wxyz():
    quarter = Similarity(rotation=[1, 0, 0, 1])
    assert_close(quarter.direction(jnp.array([1.0, 0.0, 0.0])), [0, 1, 0], 1e-6)


def test_pose_delta_shifts_along_the_camera_axes():
    pose = TRANSFORMS["pose"]
    moved = Pose(pose.base, [0, 0, -1, 0, 0, 0])
    assert_close(moved.offset(), pose.offset() + pose.direction(jnp.array([0.0, 0.0, -1.0])), 1e-6)


def test_pose_is_its_base_times_the_exponential_of_delta():
    base, delta = TRANSFORMS["pose"].base, np.array([0.3, -1, 2, 0.5, -0.7, 0.1])
    twist = np.zeros((4, 4))
    twist[:3, :3] = np.cross(np.eye(3), delta[3:])
    twist[:3, 3] = delta[:3]
    expected = np.asarray(base.value) @ np.asarray(jax.scipy.linalg.expm(twist))
    pose = Pose(base, delta)
    assert_close(pose.linear(), expected[:3, :3], 1e-6)
    assert_close(pose.offset(), expected[:3, 3], 1e-6)


def test_pose_delta_turns_about_the_camera():
    pose = TRANSFORMS["pose"]
    turned = Pose(pose.base, [0, 0, 0, 0, np.pi / 2, 0])
    assert_close(turned.offset(), pose.offset(), 1e-6)
    right = pose.direction(jnp.array([1.0, 0.0, 0.0]))
    assert_close(turned.direction(jnp.array([0.0, 0.0, 1.0])), right, 1e-6)


def test_look_at_axes():
    pose = Pose.look_at([0, -4, 0], [0, 0, 0], [0, 0, 1])
    assert_close(pose.linear(), np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]), 1e-6)
    assert_close(pose.offset(), [0, -4, 0])


@pytest.mark.parametrize("seed", range(3))
def test_look_at_looks_at(seed):
    eye, target, up = np.random.default_rng(seed).normal(size=(3, 3))
    pose = Pose.look_at(eye, target, up)
    assert_rotation(pose.linear())
    inside = pose.inverse()
    x, y, z = inside.point(jnp.asarray(target))
    assert_close(jnp.stack([x, y, z]), [0, 0, -np.linalg.norm(target - eye)], 1e-5)
    right, upwards, _ = inside.direction(jnp.asarray(up))
    assert abs(right) < 1e-6 and upwards > 0


def test_pose_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"4x4.*\(3, 4\)"):
        Pose(jnp.eye(4)[:3])


def test_pose_gradient_is_finite_at_zero():
    def moved(delta, point):
        return Pose(jnp.eye(4), delta).point(point)

    assert_finite_gradients(moved, jnp.zeros(6), jnp.ones(3))


@pytest.mark.parametrize("name", ["similarity", "affine", "inverse", "moved pose"])
def test_gradients(name, x64):
    transform = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), TRANSFORMS[name])
    point = jnp.array([0.3, -2.0, 1.1])
    if isinstance(transform, Pose):
        return assert_gradients(
            lambda d, p: Pose(transform.base, d).point(p), transform.delta, point
        )
    assert_gradients(lambda t, p: t.inverse().point(p), transform, point)


def test_only_the_tangent_of_a_pose_has_a_gradient():
    pose = TRANSFORMS["pose"]
    gradient = jax.grad(lambda pose: jnp.sum(pose.point(jnp.ones(3)) ** 2))(pose)
    assert np.any(gradient.delta) and not np.any(gradient.base.value)
    assert isinstance(gradient, sg.Pose)
