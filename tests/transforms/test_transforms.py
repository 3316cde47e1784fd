"""Frames: there and back, and poses that stay rigid whatever an optimiser does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import scenegraph as sg
from scenegraph.transforms import (
    Affine,
    Inverse,
    inverse_matrix,
    Pose,
    rotate_about,
    rotate_euler,
    scale,
    Similarity,
    translate,
)
from support.helpers import assert_close, assert_finite_gradients, assert_gradients


SHEAR = [[1.0, 0.4, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 0.5]]
TRANSFORMS = {
    "similarity": Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], 2.5),
    "mirror": Similarity([1, 2, 3], [0.9, 0.1, -0.3, 0.2], -0.5),
    "affine": Affine(SHEAR, [0, 1, 0]),
    "pose": Pose.look_at([3, 2, 1], [0, 0, 0], [0, 0, 1]),
    "moved pose": Pose(jnp.eye(4), [0.3, -1, 2, 0.5, -0.7, 0.1]),
    "inverse": Inverse(Affine(SHEAR, [0, 1, 0])),
    "turn": rotate_about([1, 2, -2], 0.7, [0.5, 0, 1]),
    "shift and turn": translate([1, 2, 3]) @ rotate_euler([0.1, 0.2, 0.3]),
    "shear and turn": Affine(SHEAR, [0, 1, 0]) @ rotate_about([1, 2, -2], 0.7),
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


# --- By what they do


@pytest.mark.parametrize("seed", range(4))
def test_turns_about_an_axis(seed):
    generator = np.random.default_rng(seed)
    axis, center, angle = generator.normal(size=3), generator.normal(size=3), generator.normal()
    turn = rotate_about(axis, angle, center)
    expected = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    assert_close(turn.linear(), expected, 1e-6)
    assert_close(turn.offset(), center - expected @ center, 1e-5)
    # Points of the axis stay.
    assert_close(turn.point(jnp.asarray(center + 3 * axis, jnp.float32)), center + 3 * axis, 1e-5)


@pytest.mark.parametrize("order", ["xyz", "zyx", "zxz", "XYZ", "ZYX", "xy", "Z"])
def test_turns_by_euler_angles(order):
    angles = np.random.default_rng(0).normal(size=len(order))
    expected = Rotation.from_euler(order, angles).as_matrix().reshape(3, 3)
    assert_close(rotate_euler(angles, order).linear(), expected, 1e-6)


def test_shifts_and_scalings():
    assert_close(translate([1, 2, 3]).point(jnp.ones(3)), [2, 3, 4], 1e-6)
    assert_close(scale(2).linear(), 2 * np.eye(3), 1e-6)
    assert_close(scale([1, 2, 3]).linear(), np.diag([1, 2, 3]), 1e-6)
    assert scale(2).is_similarity and not scale([1, 2, 3]).is_similarity


def test_composition_is_the_product_of_matrices():
    def matrix(transform):
        top = np.column_stack([transform.linear(), transform.offset()])
        return np.vstack([top, [0, 0, 0, 1]])

    for a in TRANSFORMS.values():
        for b in TRANSFORMS.values():
            assert_close(matrix(a @ b), matrix(a) @ matrix(b), 1e-5)
    with pytest.raises(TypeError, match="`@` composes two transforms; got a"):
        TRANSFORMS["pose"] @ jnp.ones(3)


@pytest.mark.usefixtures("x64")
def test_makers_have_gradients():
    def moved(axis, angle, angles, factors, offset):
        turns = rotate_about(axis, angle, [0.3, 0, 1]) @ rotate_euler(angles, "zyx")
        return (translate(offset) @ scale(factors) @ turns).point(jnp.array([0.3, -1.0, 2.0]))

    axis, angles, factors, offset = jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)))
    assert_gradients(moved, axis, jnp.asarray(0.4), angles, factors, offset)
    # Also where nothing turns yet.
    assert_finite_gradients(lambda angle: rotate_about([0, 0, 1], angle).linear(), jnp.asarray(0.0))
    assert_finite_gradients(lambda angles: rotate_euler(angles).linear(), jnp.zeros(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rotate_about([0, 0, 0], 1.0), "`axis` of `rotate_about` must not be zero"),
        (lambda: rotate_euler([1, 2, 3], "xYz"), "letters x, y, z or of X, Y, Z; got 'xYz'"),
        (lambda: rotate_euler([1, 2], "xyz"), "must be 3 numbers for 'xyz'"),
        (lambda: scale([1, 0, 1]), "`Affine.matrix` must be invertible"),
        (lambda: scale(0), "`Similarity.scale` must be finite and not zero"),
    ],
)
def test_impossible_transforms_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- Matrices in the place of transforms


def test_a_node_is_transformed_by_a_matrix():
    matrix = np.vstack([np.column_stack([SHEAR, [1, 2, 3]]), [0, 0, 0, 1]])
    ball = sg.Surface(sg.Sphere(), [0.5, 0.2, 0.1])
    for given in (matrix, matrix.tolist(), jnp.asarray(matrix)):
        node = sg.Transformed(ball, given)
        assert_close(node.transform.linear(), matrix[:3, :3], 1e-6)
        assert_close(node.transform.offset(), matrix[:3, 3], 1e-6)
    by_matrix, gradient = jax.value_and_grad(
        lambda m: sg.Transformed(ball, m).transform.point(jnp.ones(3)).sum()
    )(jnp.asarray(matrix, jnp.float32))
    assert float(by_matrix) == pytest.approx((matrix @ np.ones(4))[:3].sum(), abs=1e-5)
    assert_close(gradient, np.vstack([np.ones((3, 4)), np.zeros(4)]), 1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.diag([1, 1, 1, 2]), "last row of a 4x4 matrix must be 0, 0, 0, 1; got .*2"),
        (np.eye(3), r"a transform or a 4x4 matrix is wanted; got shape \(3, 3\)"),
        ("here", "a transform or a 4x4 matrix is wanted; got 'here'"),
        (sg.Sphere(), "a transform or a 4x4 matrix is wanted; got a Sphere"),
        (np.zeros((4, 4)) + np.diag([0, 0, 0, 1]), "`Affine.matrix` must be invertible"),
    ],
)
def test_other_things_are_no_transforms(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sg.Transformed(sg.Surface(sg.Sphere(), [0.5] * 3), given)


def test_a_composed_transform_is_rendered_and_saved(tmp_path):
    ball = sg.Surface(sg.Sphere(radius=0.5), [0.5, 0.2, 0.1])
    turn = rotate_about([0, 0, 1], 0.3, [0.2, 0, 0])
    whole = sg.Scene(sg.Group(ball=sg.Transformed(ball, translate([0.1, 0, 0.2]) @ turn)))
    nested = sg.Transformed(sg.Transformed(ball, turn), translate([0.1, 0, 0.2]))
    camera = sg.PerspectiveCamera.look_at([0, -3, 0.5], [0, 0, 0], [0, 0, 1], 0.7, 6, 6)
    picture = sg.render(whole, camera).rgb
    assert_close(picture, sg.render(sg.Scene(sg.Group(ball=nested)), camera).rgb, 1e-6)
    sg.save(whole, tmp_path / "scene")
    assert_close(sg.render(sg.load(tmp_path / "scene"), camera).rgb, picture, 1e-6)
    assert float(whole["ball.transform.outer.translation"][2]) == pytest.approx(0.2)
