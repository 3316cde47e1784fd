"""Cameras: the published Blender rays, conventions, footprints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import focal_from_fov, MovedCamera, orbit, pixel_centres, spiral
from support.helpers import assert_close, golden


POSE = sg.Pose.look_at([3, 1, 2], [0, 0, 0], [0, 0, 1])
CAMERAS = {
    "perspective": sg.PerspectiveCamera(POSE, 20.0, 16, 12, near=2, far=6),
    "off centre": sg.PerspectiveCamera(POSE, 20.0, 16, 12, principal_point=[3, 4]),
    "orthographic": sg.OrthographicCamera(POSE, 8.0, 16, 12),
    "moved": MovedCamera(
        sg.Similarity([1, 2, 3], [1, 0, 2, 0], 3), sg.PerspectiveCamera(POSE, 9.0, 16, 12)
    ),
}


@eqx.filter_jit
def ray_of(camera, pixel):
    return camera.ray(pixel)


@eqx.filter_jit
def line_of(camera, pixel):
    return camera.line(pixel)


@eqx.filter_jit
def pixel_of(camera, point):
    return camera.project(point)


@pytest.mark.parametrize("prefix", ["factor0.", "factor2."])
def test_published_blender_rays(prefix):
    data = {n.removeprefix(prefix): x for n, x in golden("blender_rays").items() if prefix in n}
    height, width = map(int, data["hw"])
    pose = sg.Pose(jnp.asarray(data["camtoworld"]))
    camera = sg.PerspectiveCamera(pose, float(data["focal"]), width, height, near=2, far=6)
    pixels = jnp.asarray(data["pixel_row_col"][:, ::-1] + 0.5, jnp.float32)
    rays = jax.jit(jax.vmap(camera.ray))(pixels)
    assert_close(rays.origin, data["origins"], 0, 1e-6)
    assert_close(rays.direction, data["directions"], 0, 1e-6)
    assert_close(rays.view, data["viewdirs"], 0, 1e-6)
    assert_close(rays.radius, data["radii"][:, 0], 0, 1e-7)
    assert_close(rays.near, data["near"][:, 0], 0)
    assert_close(rays.far, data["far"][:, 0], 0)


def test_pixels_and_axes():
    """Right is x, down in the picture is y, and the first pixel's centre is at one half."""
    camera = sg.PerspectiveCamera(sg.Pose(jnp.eye(4)), 2.0, 4, 2)
    direction = ray_of(camera, jnp.array([0.5, 0.5])).direction
    assert_close(direction, [-0.75, 0.25, -1])
    assert_close(ray_of(camera, jnp.array([2.0, 1.0])).direction, [0, 0, -1])


def test_pixel_centres_go_row_by_row():
    assert_close(pixel_centres(2, 2), np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 1.5]]))


@pytest.mark.parametrize("name", CAMERAS)
def test_footprint_is_the_neighbouring_line(name):
    """Lines of these cameras are linear in the pixel: one step of the derivative arrives there."""
    camera, pixel = CAMERAS[name], jnp.array([2.5, 9.5])
    ray = jax.tree.map(np.asarray, ray_of(camera, pixel))
    for axis, step in enumerate(np.eye(2, dtype=np.float32)):
        origin, direction = line_of(camera, np.asarray(pixel) + step)
        assert_close(ray.origin + ray.d_origin[axis], origin, 2e-6)
        assert_close(ray.direction + ray.d_direction[axis], direction, 2e-6)


@pytest.mark.parametrize("name", CAMERAS)
def test_project_inverts_line(name):
    camera, pixel = CAMERAS[name], jnp.array([2.5, 9.5])
    assert_close(pixel_of(camera, ray_of(camera, pixel).at(3.0)), pixel, 1e-5)


@pytest.mark.parametrize("name", CAMERAS)
def test_view_has_length_one(name):
    ray = ray_of(CAMERAS[name], jnp.array([2.5, 9.5]))
    assert_close(ray.view, ray.direction / np.linalg.norm(ray.direction), 1e-6)


def test_a_moved_camera_sees_the_moved_ray():
    camera, pixel = CAMERAS["moved"], jnp.array([2.5, 9.5])
    inner, outer = ray_of(camera.camera, pixel), ray_of(camera, pixel)
    for t in (0.0, 2.5):
        assert_close(outer.at(t), camera.transform.point(inner.at(t)), 1e-6)


def test_look_at_puts_the_target_in_the_middle():
    camera = sg.PerspectiveCamera.look_at([3, 1, 2], [0.5, 0, 0], [0, 0, 1], 0.8, 16, 12)
    assert_close(pixel_of(camera, jnp.array([0.5, 0.0, 0.0])), [8, 6], 1e-5)
    above = pixel_of(camera, jnp.array([0.5, 0.0, 0.3]))
    assert abs(above[0] - 8) < 1e-4 and above[1] < 6


def test_field_of_view_spans_the_picture():
    camera = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.8, 16, 12)
    left, right = (np.asarray(ray_of(camera, jnp.array([x, 6.0])).view) for x in (0.0, 16.0))
    assert float(np.arccos(left @ right)) == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize("fov", [0.0, -1.0, 3.2])
def test_impossible_field_of_view(fov):
    with pytest.raises(ValueError, match="fov_x"):
        focal_from_fov(fov, 10)


def test_impossible_resolution():
    with pytest.raises(ValueError, match="0, 12"):
        sg.PerspectiveCamera(POSE, 10.0, 0, 12)


@pytest.mark.parametrize("width", [np.int64(16), np.uint8(16), jnp.asarray(16)])
def test_sizes_of_other_integer_types(width):
    eye, target, up = [3, 1, 2], [0, 0, 0], [0, 0, 1]
    cameras = [
        sg.PerspectiveCamera.look_at(eye, target, up, 0.8, width, width),
        sg.OrthographicCamera.look_at(eye, target, up, 2.0, width, width),
        sg.PanoramaCamera(POSE, width, width),
        sg.OpenCVCamera(POSE, 9.0, width, width),
        sg.FisheyeCamera(POSE, 9.0, width, width),
        CAMERAS["perspective"].resized(width, width),
    ]
    for camera in cameras:
        assert type(camera.width) is type(camera.height) is int
        assert camera.width == 16


@pytest.mark.parametrize("camera", [sg.PerspectiveCamera, sg.OrthographicCamera, sg.OpenCVCamera])
def test_a_matrix_is_a_pose(camera):
    matrix = np.asarray(POSE.base.value)
    assert eqx.tree_equal(camera(matrix, 9.0, 4, 4), camera(POSE, 9.0, 4, 4))
    with pytest.raises(TypeError, match=f"`{camera.__name__}.pose` must be a transform"):
        camera("somewhere", 9.0, 4, 4)


def test_look_at_needs_points():
    with pytest.raises(TypeError, match=r"`look_at.eye` must be three numbers; got float32\[2\]"):
        sg.PerspectiveCamera.look_at([3, 1], [0, 0, 0], [0, 0, 1], 0.8, 4, 4)


@pytest.mark.parametrize("path", [orbit, spiral])
def test_paths_keep_distance_and_aim(path):
    target = np.array([0.5, 0.0, -0.5])
    cameras = path(CAMERAS["perspective"], target, [0, 0, 1], 7)
    distance = np.linalg.norm(POSE.offset() - target)
    for camera in cameras:
        assert float(np.linalg.norm(np.asarray(camera.pose.offset()) - target)) == pytest.approx(
            distance, rel=1e-5
        )
        assert_close(pixel_of(camera, jnp.asarray(target, jnp.float32)), [8, 6], 1e-4)
    assert len(cameras) == 7
    assert_close(cameras[0].pose.offset(), POSE.offset(), 1e-5)


def test_camera_leaves_have_gradients():
    def where(camera):
        return jnp.sum(camera.ray(jnp.array([2.5, 9.5])).at(2.0))

    gradient = jax.jit(jax.grad(where))(CAMERAS["off centre"])
    for leaf in (gradient.focal, gradient.principal_point, gradient.pose.delta):
        assert np.all(np.isfinite(leaf)) and np.any(leaf)
