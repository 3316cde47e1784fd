"""Cameras in the space that is bent: against the definition, and against differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.cameras import NDCCamera, orbit, pixel_centres, scale_resolution
from support.helpers import assert_close


FRUSTUM = [2 * 20 / 16, 2 * 20 / 12]


@eqx.filter_jit
def ray_of(camera, pixel):
    return camera.ray(pixel)


def camera_at(place, target=(0.3, -0.2, -4.0), **options) -> NDCCamera:
    pose = sg.Pose.look_at(place, target, [0, 1, 0])
    return NDCCamera(sg.PerspectiveCamera(pose, 20.0, 16, 12), FRUSTUM, **options)


PLACES = [[0.0, 0.0, 0.0], [0.3, -0.2, 0.1], [-0.2, 0.1, -0.4]]
EXACT, PUBLISHED = (camera_at(PLACES[1], published=p) for p in (False, True))
PIXEL = jnp.array([2.5, 9.5])


@pytest.mark.parametrize("place", PLACES)
def test_bent_points_are_those_of_the_definition(place):
    """A world point at (x, y, z) is at (-a x / z, -b y / z, 1 + 2 / z)."""
    camera = camera_at(place)
    origin, direction = (np.asarray(x, float) for x in camera.camera.line(PIXEL))
    start = -(1 + origin[2]) / direction[2]
    ray = ray_of(camera, PIXEL)
    for t in (0.0, 0.4, 0.9):
        # Along a bent ray, t is 1 - z0 / z with z0 = -1 on the plane.
        distance = start + (-1 / (1 - t) + 1) / direction[2]
        x, y, z = origin + distance * direction
        expected = [-FRUSTUM[0] * x / z, -FRUSTUM[1] * y / z, 1 + 2 / z]
        assert_close(ray.at(t), expected, 0, 2e-6)


def test_frustum_becomes_the_cube():
    camera = NDCCamera(sg.PerspectiveCamera(sg.Pose(jnp.eye(4)), 20.0, 16, 12), FRUSTUM)
    for pixel, corner in {(0.0, 0.0): (-1, 1), (16.0, 12.0): (1, -1)}.items():
        ray = ray_of(camera, jnp.asarray(pixel))
        assert_close(ray.at(0.0), [*corner, -1], 0, 1e-6)
        assert_close(ray.at(1.0), [*corner, 1], 0, 1e-6)
    assert (float(ray.near), float(ray.far)) == (0.0, 1.0)


def test_footprint_is_the_derivative(x64):
    camera, step = camera_at(np.array(PLACES[1])), 1e-5
    ray, line = ray_of(camera, PIXEL), eqx.filter_jit(camera.line)
    for axis, move in enumerate(step * np.eye(2)):
        ends = [line(np.asarray(PIXEL) + sign * move) for sign in (1, -1)]
        for index, derivative in enumerate((ray.d_origin, ray.d_direction)):
            difference = (np.asarray(ends[0][index]) - np.asarray(ends[1][index])) / (2 * step)
            assert_close(np.asarray(derivative)[axis], difference, 1e-8)


@pytest.mark.parametrize("camera", [EXACT, PUBLISHED], ids=["exact", "published"])
def test_project_inverts_line(camera):
    again = jax.jit(lambda pixel: camera.project(camera.ray(pixel).at(0.7)))
    assert_close(again(PIXEL), PIXEL, 1e-5)


def test_view_is_the_direction_before_bending():
    inner = ray_of(EXACT.camera, PIXEL)
    assert_close(ray_of(EXACT, PIXEL).view, inner.view, 1e-7)
    assert_close(ray_of(PUBLISHED, PIXEL).view, inner.direction, 1e-7)
    assert abs(float(jnp.linalg.norm(ray_of(PUBLISHED, PIXEL).view)) - 1) > 0.01


@eqx.filter_jit
def all_radii(camera: NDCCamera):
    return jax.vmap(camera.ray)(pixel_centres(16, 12)).radius


def test_published_radius_is_a_loop_over_differences():
    origins, _ = jax.jit(jax.vmap(PUBLISHED.line))(pixel_centres(16, 12))
    origins = np.asarray(origins, float).reshape(12, 16, 3)
    radii = all_radii(PUBLISHED).reshape(12, 16)
    for row in range(12):
        for column in range(16):
            r, c = (row if row < 11 else 9), (column if column < 15 else 13)
            down = np.linalg.norm(origins[r, column] - origins[r + 1, column])
            across = np.linalg.norm(origins[row, c] - origins[row, c + 1])
            expected = (down + across) / 2 * 2 / np.sqrt(12)
            assert float(radii[row, column]) == pytest.approx(expected, rel=2e-5)


def test_exact_and_published_radii_are_nearly_the_same():
    radii = [all_radii(camera) for camera in (EXACT, PUBLISHED)]
    assert_close(radii[0], radii[1], 0.15)
    assert np.max(np.abs(radii[0] - radii[1])) > 1e-4


def test_sizes_and_paths_reach_the_camera_inside():
    small = scale_resolution(EXACT, 0.5)
    assert (small.width, small.height) == (8, 6)
    assert_close(ray_of(small, PIXEL / 2).origin, ray_of(EXACT, PIXEL).origin, 1e-6)
    assert_close(2 * ray_of(EXACT, PIXEL).radius, ray_of(small, PIXEL / 2).radius, 1e-6)
    cameras = orbit(EXACT, [0.3, -0.2, -4.0], [0, 1, 0], 8)
    assert_close(ray_of(cameras[0], PIXEL).origin, ray_of(EXACT, PIXEL).origin, 1e-5)
    assert_close(cameras[1].pose.offset()[1], PLACES[1][1], 1e-4)


def test_what_depends_on_the_size_is_not_stacked_in_several():
    sg.pixels.stack_cameras([EXACT, EXACT.resized(8, 6)])
    with pytest.raises(ValueError, match="NDCCamera depend on the size"):
        sg.pixels.stack_cameras([PUBLISHED, PUBLISHED.resized(8, 6)])
