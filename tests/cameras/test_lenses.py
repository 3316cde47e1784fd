"""Lenses that bend: OpenCV's own numbers, its formulas in plain numpy, and the way back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import scenegraph as sg
from scenegraph.cameras import AbstractCamera, cone, MovedCamera, pixel_centres, scale_resolution
from scenegraph.numerics import unfreeze
from scenegraph.scene import freeze
from support.helpers import assert_close


AHEAD = sg.Pose(np.eye(4))
POSE = sg.Pose.look_at([3.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
BENT = dict(k1=-0.21, k2=0.06, p1=0.003, p2=-0.002, k3=0.01, k4=0.05, k5=-0.01, k6=0.004)
ROUND = dict(k1=0.03, k2=-0.01, k3=0.004, k4=-0.0007)
OFF = dict(principal_point=[9.0, 5.0], near=0.5, far=7.0)
CAMERAS = {
    "opencv": sg.OpenCVCamera(POSE, [12.0, 11.0], 16, 12, **OFF, **BENT),
    "fisheye": sg.FisheyeCamera(POSE, [7.0, 6.5], 16, 12, **OFF, **ROUND),
    "panorama": sg.PanoramaCamera(POSE, 16, 8),
    "part": sg.PanoramaCamera(POSE, 16, 12, focal=[9.0, 8.0], **OFF),
}
MOVED = MovedCamera(sg.Similarity([1, 2, 3], [1, 0, 2, 0], 3), CAMERAS["fisheye"])
every_camera = pytest.mark.parametrize("name", CAMERAS)


# Compiled once for all cameras of a kind and size.
project = eqx.filter_jit(lambda camera, points: jax.vmap(camera.project)(points))
rays = eqx.filter_jit(lambda camera, pixels: jax.vmap(camera.ray)(pixels))
lines = eqx.filter_jit(lambda camera, pixels: jax.vmap(camera.line)(pixels)[1])


def seen(camera: AbstractCamera, points) -> np.ndarray:
    """Where points are seen, given as OpenCV has them: x right, y down, z ahead."""
    turned = np.asarray(points) * [1, -1, -1]
    return np.asarray(project(camera, jnp.asarray(turned, camera.far.dtype)))


def all_pixels(camera: AbstractCamera) -> jax.Array:
    return pixel_centres(camera.width, camera.height).astype(camera.far.dtype)


# --- Forwards


def bend(x, y, k1, k2, p1, p2, k3, k4, k5, k6):
    """As OpenCV's documentation writes it."""
    r = np.sqrt(x**2 + y**2)
    radial = (1 + k1 * r**2 + k2 * r**4 + k3 * r**6) / (1 + k4 * r**2 + k5 * r**4 + k6 * r**6)
    return (
        x * radial + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2),
        y * radial + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y,
    )


def bend_round(x, y, z, k1, k2, k3, k4):
    r = np.sqrt(x**2 + y**2)
    theta = np.arctan2(r, z)
    bent = theta * (1 + k1 * theta**2 + k2 * theta**4 + k3 * theta**6 + k4 * theta**8)
    return x * bent / r, y * bent / r


POINTS = [[0.5, -0.3, 2.0], [-1.1, 0.4, 1.6], [0.02, 0.9, 3.0]]


def test_opencv_itself_sees_points_there():
    """`cv2.projectPoints` of OpenCV 5.0.0."""
    lens = dict(principal_point=[320.0, 250.0], **BENT)
    camera = sg.OpenCVCamera(AHEAD, [700.0, 650.0], 640, 500, **lens)
    expected = [
        [490.7858796114552, 154.9473170736178],
        [-108.53389100197296, 395.4903271362181],
        [324.4427645915096, 441.08727852617477],
    ]
    assert_close(seen(camera, POINTS), expected, 2e-7)


def test_opencv_itself_sees_points_there_by_a_fisheye():
    """`cv2.fisheye.projectPoints` of OpenCV 5.0.0."""
    lens = dict(principal_point=[320.0, 250.0], **ROUND)
    camera = sg.FisheyeCamera(AHEAD, [700.0, 650.0], 640, 500, **lens)
    expected = [
        [490.68056760120413, 154.90654090790053],
        [-99.90016082433306, 391.7844698887359],
        [324.5449526891782, 439.9140945120902],
    ]
    assert_close(seen(camera, POINTS), expected, 2e-7)


def test_by_hand():
    """x = 1/2, y = 1/4, so r^2 = 5/16; radial is 1 + 0.1 * 5/16."""
    camera = sg.OpenCVCamera(AHEAD, 100.0, 80, 60, k1=0.1, p1=0.02, p2=-0.04)
    u = 0.5 * 1.03125 + 2 * 0.02 * 0.125 - 0.04 * (0.3125 + 0.5)
    v = 0.25 * 1.03125 + 0.02 * (0.3125 + 0.125) - 2 * 0.04 * 0.125
    assert_close(seen(camera, [[1.0, 0.5, 2.0]])[0], [40 + 100 * u, 30 + 100 * v], 1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("seed", range(3))
def test_formulas_in_numpy(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform([-0.6, -0.6, 1.0], [0.6, 0.6, 2.0], (20, 3))
    names = ("k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6")
    lens = dict(zip(names, rng.uniform(-0.1, 0.1, 8), strict=True))
    camera = sg.OpenCVCamera(AHEAD, [50.0, 60.0], 80, 60, **lens)
    x, y = bend(points[:, 0] / points[:, 2], points[:, 1] / points[:, 2], **lens)
    assert_close(seen(camera, points), np.stack([40 + 50 * x, 30 + 60 * y], -1), 1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("ahead", [2.0, 0.3, 0.0, -0.7])
def test_fisheye_formulas_in_numpy_also_behind(ahead):
    points = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    points[:, 2] = ahead
    lens = ROUND | dict(k4=0.0)
    camera = sg.FisheyeCamera(AHEAD, [50.0, 60.0], 80, 60, **lens)
    x, y = bend_round(*points.T, **lens)
    assert_close(seen(camera, points), np.stack([40 + 50 * x, 30 + 60 * y], -1), 1e-12)


def test_panorama_directions():
    camera = sg.PanoramaCamera(AHEAD, 16, 8)
    looks = {(8, 4): (0, 0, -1), (12, 4): (1, 0, 0), (4, 4): (-1, 0, 0), (16, 4): (0, 0, 1)}
    looks |= {(8, 0): (0, 1, 0), (8, 8): (0, -1, 0)}
    assert_close(lines(camera, jnp.array([*looks], float)), [*looks.values()], 1e-6)


@pytest.mark.parametrize("up", [1.0, -1.0])
def test_panorama_sees_its_poles(up):
    camera = sg.PanoramaCamera(AHEAD, 16, 8)
    point = jnp.array([0.0, up, 0.0])
    assert_close(camera.project(point), [8, 4 - 4 * up], 1e-6)
    assert np.all(np.isfinite(jax.jit(jax.jacfwd(camera.project))(point)))
    assert not np.isfinite(camera.project(jnp.zeros(3))[1])


def test_without_bending_it_is_a_pinhole_camera():
    pinhole = sg.PerspectiveCamera(POSE, 12.0, 16, 12, principal_point=[9.0, 5.0], near=1, far=3)
    bent = sg.OpenCVCamera(POSE, 12.0, 16, 12, principal_point=[9.0, 5.0], near=1, far=3)
    pixels, points = jnp.array([[2.5, 9.5]]), jnp.array([[0.3, -0.2, 0.5]])
    mine, other = (jax.tree.leaves(rays(camera, pixels)) for camera in (bent, pinhole))
    for a, b in zip(mine, other, strict=True):
        assert_close(a, b, 1e-6, 1e-7)
    assert_close(project(bent, points), project(pinhole, points), 1e-6)


# --- Backwards


@every_camera
def test_all_pixels_come_back(name):
    camera = CAMERAS[name]
    pixels = all_pixels(camera)
    there = rays(camera, pixels)
    points = there.origin + 3 * there.direction
    assert_close(project(camera, points), pixels, 0, 2e-4)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "lens",
    [
        dict(k1=-0.3, k2=0.1),
        dict(k1=0.4, k2=0.1, p1=0.01, p2=-0.01),
        dict(k1=-0.28, k2=0.07, p1=0.001, p2=-0.002),
        dict(k1=5.0, k2=3.0, k4=5.3, k5=4.0, k6=0.5),
    ],
)
def test_strong_lenses_come_back(lens):
    """Up to 40 degrees off the axis."""
    camera = sg.OpenCVCamera(AHEAD, 60.0, 80, 60, **lens)
    directions = lines(camera, all_pixels(camera))
    assert_close(project(camera, 3 * directions), all_pixels(camera), 0, 1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("lens", [{}, dict(k1=-0.03, k2=0.01), dict(k1=0.1, k2=-0.01)])
def test_fisheyes_that_see_behind_come_back(lens):
    """More than 110 degrees off the axis."""
    camera = sg.FisheyeCamera(AHEAD, 20.0, 80, 60, **lens)
    directions = lines(camera, all_pixels(camera))
    assert np.min(-directions[:, 2]) < np.cos(np.radians(110))
    assert_close(jnp.linalg.norm(directions, axis=1), np.ones(4800), 1e-12)
    assert_close(project(camera, 3 * directions), all_pixels(camera), 0, 1e-10)


# --- Derivatives


def doubled(tree):
    return jax.tree.map(lambda x: x.astype(jnp.float64), tree)


def outputs(camera, pixel, point) -> jax.Array:
    """Origin, direction, footprint, near and far of a ray, and where a point is seen."""
    ray = camera.ray(pixel)
    parts = [ray.origin, ray.direction, ray.view, ray.d_origin, ray.d_direction, ray.near, ray.far]
    return jnp.concatenate([x.ravel() for x in (*parts, camera.project(point))])


def assert_derivatives(function, start: jax.Array, step: float = 1e-5) -> None:
    """Against central differences, in all directions at once."""
    jacobian = jax.jit(jax.jacfwd(function))(start)
    steps = step * jnp.eye(start.size)
    ahead, behind = (jax.jit(jax.vmap(function))(start + sign * steps) for sign in (1, -1))
    assert_close(jacobian, (ahead - behind).T / (2 * step), 1e-8)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@every_camera
def test_derivatives_by_every_leaf(name):
    """And by pixel and point: off the axis, and on it, where polar coordinates would have none.
    Derivatives of the footprint are second ones of the line."""
    camera = doubled(CAMERAS[name])
    camera = eqx.tree_at(lambda c: c.pose.delta, camera, 0.01 * jnp.arange(6.0))
    pixels = jnp.stack([jnp.array([2.6, 4.7]), camera.principal_point])
    there = rays(camera, pixels)
    inputs = unfreeze(camera), pixels, there.origin + 2 * there.direction
    flat, as_inputs = ravel_pytree(inputs)
    frozen = as_inputs(jnp.arange(flat.size))[0].pose.base.ravel().astype(int)
    free = jnp.delete(jnp.arange(flat.size), frozen)

    def ask(values):
        moved, pixels, points = as_inputs(flat.at[free].set(values))
        moved = eqx.tree_at(lambda c: c.pose.base, moved, camera.pose.base)
        return jax.vmap(outputs, (None, 0, 0))(moved, pixels, points).ravel()

    assert_derivatives(ask, flat[free])


# --- Where the formula folds back


FOLDED = sg.OpenCVCamera(AHEAD, 30.0, 80, 60, k1=-0.3)
FOLDED_ROUND = sg.FisheyeCamera(AHEAD, 30.0, 80, 60, k1=-0.2)


def test_points_beyond_the_fold_are_not_in_the_picture():
    """The fold of x (1 - 0.3 x^2) is at x = 1 / sqrt(0.9) = 1.054."""
    aside = np.array([0.0, 0.9, 1.05, 1.06, 1.2, 1.8, 2.5, 20.0, 300.0])
    places = seen(FOLDED, np.stack([aside, 0 * aside, 1 + 0 * aside], -1))
    np.testing.assert_array_equal(np.isfinite(places[:, 0]), aside < 1.054)
    with_second = sg.OpenCVCamera(AHEAD, 30.0, 80, 60, k1=-0.6, k2=0.1)
    assert np.isfinite(seen(with_second, [[0.7, 0.0, 1.0]])).all()
    assert not np.isfinite(seen(with_second, [[1.5, 0.0, 1.0], [2.5, 0.0, 1.0]])).any()


@pytest.mark.parametrize("camera", [FOLDED, FOLDED_ROUND], ids=["opencv", "fisheye"])
def test_pixels_beyond_the_fold_look_at_the_edge(camera):
    fold = 1 / np.sqrt(-3 * float(camera.k1))
    pixels = np.array([[0.5, 0.5], [79.5, 30.5], [40.0, 0.2]])
    for pixel, (x, y, z) in zip(pixels, lines(camera, jnp.asarray(pixels)), strict=True):
        out = np.hypot(x, y) / -z
        out = out if camera is FOLDED else np.arctan(out)
        assert 0.9 * fold < out < 1.001 * fold
        inward = np.array([40.0, 30.0]) - pixel
        assert abs(x * inward[1] + y * inward[0]) < 1e-3 * np.hypot(*inward)


@pytest.mark.parametrize(
    "camera",
    [
        pytest.param(FOLDED, id="opencv"),
        pytest.param(FOLDED_ROUND, id="fisheye", marks=pytest.mark.slow),
    ],
)
def test_pixels_beyond_the_fold_spoil_no_gradient(camera):
    pixels = jnp.array([[0.5, 0.5], [40.0, 30.0], [45.0, 20.0]])

    def total(camera):
        rays = jax.vmap(camera.ray)(pixels)
        return jnp.sum(rays.direction**3) + jnp.sum(rays.d_direction**2)

    for leaf in jax.tree.leaves(jax.jit(jax.grad(total))(camera)):
        assert np.all(np.isfinite(leaf))


# --- Other resolutions


@pytest.mark.parametrize("camera", [*CAMERAS.values(), MOVED], ids=[*CAMERAS, "moved"])
def test_another_resolution_is_the_same_view(camera):
    double = scale_resolution(camera, 2.5)
    assert (double.width, double.height) == (2.5 * camera.width, 2.5 * camera.height)
    assert type(double) is type(camera) and float(double.far) == float(camera.far)
    pixels = jnp.array([[2.5, 4.5], [11.0, 3.0]])
    assert_close(lines(double, 2.5 * pixels), lines(camera, pixels), 2e-6)


def test_a_frozen_focal_length_stays_frozen():
    half = scale_resolution(freeze(CAMERAS["opencv"], "focal"), 0.5)
    assert type(half.focal).__name__ == "Frozen"
    assert_close(half.focal.value, [6.0, 5.5])


class Pointer(AbstractCamera):
    """Sees one line, wherever one looks."""

    near: jax.Array
    far: jax.Array
    width: int = eqx.field(static=True, default=1)
    height: int = eqx.field(static=True, default=1)

    def line(self, pixel):
        return jnp.zeros(3), jnp.ones(3) + 0 * pixel[0]

    def ray(self, pixel):
        return cone(self, pixel)

    def project(self, point):
        return point[:2]


def test_a_camera_without_pixels_cannot_change_them():
    with pytest.raises(TypeError, match="resolution of a Pointer"):
        scale_resolution(Pointer(jnp.array(0.1), jnp.array(1.0)), 2.0)


@pytest.mark.parametrize("kind", [sg.OpenCVCamera, sg.FisheyeCamera])
def test_three_focal_lengths_are_refused(kind):
    with pytest.raises(TypeError, match="focal"):
        kind(POSE, [1.0, 2.0, 3.0], 8, 8)
