"""A camera that moves while its picture is read: every row is a picture of a camera at rest."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import scenegraph as sg
from scenegraph.cameras import MovedCamera, NDCCamera, scale_resolution
from support.helpers import assert_close


WIDTH, HEIGHT = 12, 10
POSE = sg.Pose.look_at([0.4, -3.0, 1.2], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
TWIST = np.array([0.1, -0.05, 0.08, 0.06, -0.2, 0.1])
LENSES = {
    "perspective": sg.PerspectiveCamera(POSE, 12.0, WIDTH, HEIGHT),
    "opencv": sg.OpenCVCamera(POSE, [12.0, 11.0], WIDTH, HEIGHT, k1=-0.1, p1=0.01),
    "fisheye": sg.FisheyeCamera(POSE, 9.0, WIDTH, HEIGHT, k1=0.05),
}
every_lens = pytest.mark.parametrize("name", LENSES)
ray_of = eqx.filter_jit(lambda camera, pixel: camera.ray(pixel))
pixel_of = eqx.filter_jit(lambda camera, point: camera.project(point))


def rolling(name: str = "perspective", twist=TWIST) -> sg.RollingShutter:
    return sg.RollingShutter(LENSES[name], twist)


def pose_at(height: float | np.ndarray, twist=TWIST) -> np.ndarray:
    """The pose of a row, or of many, by the exponential of a 4x4 matrix."""
    (a, b, c), shift = twist[3:], twist[:3, None]
    matrix = np.block([[np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]]), shift], [np.zeros((1, 4))]])
    shares = np.asarray(height)[..., None, None] / HEIGHT - 0.5
    return np.asarray(POSE.base.value) @ expm(shares * matrix)


def still(height: float, name: str = "perspective") -> sg.cameras.AbstractCamera:
    """The camera at rest where the moving one is as it reads a row."""
    pose = sg.Pose(jnp.asarray(pose_at(height), jnp.float32))
    return eqx.tree_at(lambda c: c.pose, LENSES[name], pose)


@every_lens
@pytest.mark.parametrize("height", [0.5, 3.5, 9.5])
def test_a_row_is_that_of_a_camera_at_rest(name, height):
    pixel = jnp.array([2.5, height])
    seen, expected = ray_of(rolling(name), pixel), ray_of(still(height, name), pixel)
    assert_close(seen.origin, expected.origin, 2e-6)
    assert_close(seen.direction, expected.direction, 2e-6)
    assert_close(seen.d_direction[0], expected.d_direction[0], 2e-6)


@every_lens
def test_at_rest_nothing_changes(name):
    pixel = jnp.array([2.5, 9.5])
    rest, expected = (ray_of(c, pixel) for c in (rolling(name, np.zeros(6)), LENSES[name]))
    for one, other in zip(jax.tree.leaves(rest), jax.tree.leaves(expected), strict=True):
        assert_close(one, other, 2e-6, 2e-6)


@pytest.mark.usefixtures("x64")
def test_footprints_hold_the_motion():
    """By finite differences of the line, down the picture, where eye and view both move."""
    camera, pixel, step = rolling(), np.array([2.5, 7.5]), np.array([0.0, 1e-5])
    ray, line = ray_of(camera, jnp.asarray(pixel)), eqx.filter_jit(camera.line)
    ahead, behind = (line(jnp.asarray(pixel + s)) for s in (step, -step))
    origin, direction = ((a - b) / 2e-5 for a, b in zip(ahead, behind, strict=True))
    assert_close(ray.d_origin[1], origin, 1e-6)
    assert_close(ray.d_direction[1], direction, 1e-6)
    assert np.abs(ray.d_origin[1]).max() > 0.005


@every_lens
def test_project_finds_the_row(name):
    camera, pixel = rolling(name), jnp.array([2.5, 8.5])
    assert_close(pixel_of(camera, ray_of(camera, pixel).at(3.0)), pixel, 1e-5)


def test_project_agrees_with_a_search_through_all_rows():
    point, heights = np.array([0.3, 0.2, -0.4]), np.linspace(0, HEIGHT, 2001)
    _, y, z, _ = (np.linalg.inv(pose_at(heights)) @ np.append(point, 1.0)).T
    rows = HEIGHT / 2 + 12.0 * y / z
    expected = heights[np.argmin(np.abs(rows - heights))]
    assert pixel_of(rolling(), jnp.asarray(point))[1] == pytest.approx(expected, abs=0.006)


@pytest.mark.usefixtures("x64")
def test_derivatives_of_project():
    """By the velocity, through the row in which the point is seen."""
    point = jnp.array([0.3, 0.2, -0.4])
    seen = jax.jit(lambda twist: sg.RollingShutter(LENSES["perspective"], twist).project(point))
    moved = [seen(jnp.asarray(TWIST + s * e)) for e in np.eye(6) for s in (1e-6, -1e-6)]
    expected = (np.array(moved[::2]) - np.array(moved[1::2])) / 2e-6
    assert_close(jax.jit(jax.jacrev(seen))(jnp.asarray(TWIST)).T, expected, 1e-6)


def test_a_smaller_picture_takes_as_long():
    """Half as many rows are read in the same time; a part of the rows in a part of it."""
    camera = rolling()
    half = scale_resolution(camera, 0.5)
    assert (half.height, float(half.rows)) == (HEIGHT // 2, HEIGHT / 2)
    large, small = (ray_of(c, jnp.array(p)) for c, p in ((camera, (3.0, 7.0)), (half, (1.5, 3.5))))
    assert_close(small.origin, large.origin, 1e-6)
    assert_close(small.direction, large.direction, 1e-6)
    cropped, pixel = camera.resized(4, 4), jnp.array([2.5, 3.5])
    assert eqx.tree_equal(ray_of(cropped, pixel), ray_of(camera, pixel))


@pytest.mark.parametrize("camera", [NDCCamera, MovedCamera])
def test_only_a_camera_with_a_pose_moves(camera):
    inner = LENSES["perspective"]
    wrapped = camera(inner, [1.0, 1.0]) if camera is NDCCamera else camera(sg.Similarity(), inner)
    with pytest.raises(TypeError, match=f"a {camera.__name__} has none"):
        sg.RollingShutter(wrapped, np.zeros(6))


def test_rows_are_positive():
    with pytest.raises(ValueError, match="rows.*positive"):
        sg.RollingShutter(LENSES["perspective"], np.zeros(6), rows=0)


FINE = 4
SCENE = sg.Scene(
    sg.Group(
        board=sg.Surface(sg.Rectangle(size=[2.0, 1.6]), sg.Checker(0.5, [0.9] * 3, [0.1] * 3)),
        ball=sg.Surface(sg.Sphere([0.3, 0.2, 0.3], 0.4), sg.Constant([0.9, 0.2, 0.1])),
    ),
    background=[0.4, 0.5, 0.6],
)


@pytest.mark.slow
def test_a_picture_row_by_row():
    """Rows a quarter of a pixel high, each seen by a camera at rest with four times the pixels.

    Coverage takes edges to be straight within a pixel, also for a camera at rest, whose error is
    the measure.
    """

    @eqx.filter_jit
    def render(camera, row):
        pixels = jnp.stack([jnp.arange(FINE * WIDTH) + 0.5, jnp.full(FINE * WIDTH, row + 0.5)], -1)
        return sg.render_rays(SCENE, jax.vmap(camera.ray)(pixels))[-1].rgb

    def fine(at):
        rows = range(FINE * HEIGHT)
        cameras = [scale_resolution(still(at((row + 0.5) / FINE)), FINE) for row in rows]
        seen = [np.asarray(render(x, float(row))) for row, x in zip(rows, cameras, strict=True)]
        return np.reshape(seen, (HEIGHT, FINE, WIDTH, FINE, 3)).mean((1, 3))

    moving, rest = (np.asarray(sg.render(SCENE, rolling(twist=x)).rgb) for x in (TWIST, 0 * TWIST))
    expected, expected_at_rest = fine(lambda y: y), fine(lambda y: HEIGHT / 2)
    error, least = (np.abs(x).mean() for x in (moving - expected, rest - expected_at_rest))
    assert error < 1.3 * least
    assert np.abs(rest - expected).mean() > 1.8 * error
