"""Views and lights of scenes that have none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.assets import camera_path, scene_camera
from scenegraph.assets._framing import scene_bounds
from support.helpers import assert_close


TURN = sg.transforms.rotate_about([1.0, 1, 0], 0.7, [3.0, 0, 0])
RNG = np.random.default_rng(0)
MESH = sg.TriangleMesh(RNG.normal(size=(30, 3)), np.arange(30).reshape(10, 3))
SCENE = sg.Scene(
    sg.Group(
        mesh=sg.Transformed(sg.Surface(MESH, sg.Lambert([0.5, 0.5, 0.5])), TURN),
        balls=sg.Instances(
            sg.Surface(sg.Sphere(radius=0.5), [0.1, 0.2, 0.3]),
            [sg.Similarity([x, 0.0, 0.0]) for x in (-4.0, 2.0)],
        ),
        floor=sg.Surface(sg.Plane(), [0.1, 0.2, 0.3]),
    )
)


def test_bounds():
    points = np.asarray(jax.vmap(TURN.point)(MESH.vertices))
    lower = np.minimum(points.min(axis=0), [-4.5, -0.5, -0.5])
    upper = np.maximum(points.max(axis=0), [2.5, 0.5, 0.5])
    bounds = scene_bounds(SCENE)
    assert_close(bounds.lower, lower, 1e-5)
    assert_close(bounds.upper, upper, 1e-5)


@pytest.mark.parametrize("up", [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("size", [(640, 480), (100, 300)])
def test_all_is_seen_and_fills_the_picture(up, size):
    camera = sg.assets.frame_camera(SCENE, *size, up=up)
    bounds = scene_bounds(SCENE)
    corners = np.stack(np.meshgrid(*np.stack([bounds.lower, bounds.upper]).T), -1).reshape(-1, 3)
    pixels = np.asarray(jax.vmap(camera.project)(jnp.asarray(corners, jnp.float32)))
    extent = pixels.max(axis=0) - pixels.min(axis=0)
    assert np.all(pixels > 0) and np.all(pixels < size)
    assert np.max(extent / size) > 0.5
    # Upwards in the scene is upwards in the picture.
    center = jnp.asarray(bounds.center, jnp.float32)
    (x, y), (_, above) = map(camera.project, (center, center + 0.1 * jnp.asarray(up)))
    assert above < y and (x, y) == pytest.approx(np.array(size) / 2, abs=0.1)
    assert float(camera.near) < float(camera.far) / 1000


def test_an_empty_scene_has_a_view():
    camera = sg.assets.frame_camera(sg.Scene(sg.Group()))
    assert np.all(np.isfinite(camera.pose.offset()))


def test_lights_are_added_where_there_are_none():
    lit = sg.assets.add_lights(SCENE)
    assert {"mesh", "balls", "floor", "key_light", "fill_light"} == set(lit.root.children)
    sun = sg.DirectionalLight([0.0, 0, -1], [1.0, 1, 1])
    scene = sg.Scene(sg.Group(sun=sun))
    assert sg.assets.add_lights(scene) is scene
    taken = sg.Scene(sg.Group(key_light=sg.Surface(sg.Sphere(), [0.1, 0.2, 0.3])))
    assert set(sg.assets.add_lights(taken).root.children) == {
        "key_light",
        "key_light_2",
        "fill_light",
    }


def test_paths_begin_at_the_camera_of_the_scene():
    eye = sg.PerspectiveCamera.look_at([0.0, 2, 9], [0.0, 1, 0], [0.0, 1, 0], 0.8, 64, 48)
    scene = sg.Scene(sg.Group(**SCENE.root.children, eye=sg.Transformed(eye, TURN)))
    camera, up = scene_camera(scene), (0.0, 1.0, 0.0)
    cameras = camera_path(scene, camera, "orbit", 4, up=up)
    assert_close(cameras[0].pose.offset(), TURN.point(eye.pose.offset()), 1e-5)
    assert (cameras[0].width, float(cameras[0].focal)) == (64, float(eye.focal))
    center = jnp.asarray(scene_bounds(scene).center, jnp.float32)
    for other in cameras:
        assert_close(other.project(center), [32, 24], absolute=1e-2)
    assert len(camera_path(scene, camera, "spiral", 5, up=up)) == 5
    with pytest.raises(ValueError, match="orbit and spiral"):
        camera_path(scene, camera, "ellipse", 4, up=up)
    with pytest.raises(ValueError, match="no camera at 'lens'; cameras in the scene: eye"):
        scene_camera(scene, "lens")


def test_a_camera_from_straight_above_can_turn():
    above = sg.PerspectiveCamera.look_at([0.0, 9, 0], [0.0, 0, 0], [0.0, 0, 1], 0.8, 64, 48)
    ball = sg.Surface(sg.Sphere(), [0.1, 0.2, 0.3])
    scene = sg.Scene(sg.Group(ball=ball, above=above))
    cameras = camera_path(scene, scene_camera(scene), "orbit", 3, up=(0.0, 1.0, 0.0))
    assert all(np.all(np.isfinite(camera.pose.offset())) for camera in cameras)
