"""Hessian-vector products of pictures, beside differences of the gradient, in double precision."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import scenegraph as sg
from scenegraph.numerics import is_frozen
from scenegraph.rays import Ray
from scenegraph.rowwise import _lower
from support.contract_table import LIGHTS, SHADERS, SHAPES


EYE, TARGET, UP = [0.2, -3.1, 1.3], [0.0, 0.0, 0.1], [0.0, 0.0, 1.0]
POSE = sg.Pose.look_at(EYE, TARGET, UP)
CAMERAS = {
    "perspective": sg.PerspectiveCamera.look_at(EYE, TARGET, UP, 1.1, 5, 4),
    "orthographic": sg.OrthographicCamera.look_at(EYE, TARGET, UP, 3.0, 5, 4),
    "opencv": sg.OpenCVCamera(POSE, [4.0, 5.0], 5, 4, k1=0.1, p1=0.01, k4=-0.02),
    "fisheye": sg.FisheyeCamera(POSE, [3.0, 3.5], 5, 4, k1=0.1, k2=-0.02),
    "panorama": sg.PanoramaCamera(POSE, 8, 4),
}
NAMES = [type(shape).__name__ for shape in SHAPES]
SINGULAR = [sg.Plane(), sg.Box([-0.5, -0.4, 0], [0.5, 0.3, 0.6]), sg.Rectangle(), sg.Disk()]
SINGULAR += [sg.Sphere([0, 0, 0.5], 0.5), sg.Cylinder(), sg.Capsule()]
# Not level: one of the five directions of the environment is, and grazing light has a kink.
FLOOR = sg.Surface(sg.Plane([0.0, 0.0, -1.1], [0.05, 0.1, 1.0]), sg.Lambert([0.7, 0.6, 0.5]))


@pytest.fixture(autouse=True)
def in_double_precision(x64, monkeypatch):
    # One `jax.vmap` compiles in seconds, not in minutes.
    monkeypatch.setattr(_lower, "_MOST_SCALARS", 0)


def assert_hessian(scene, camera, integrator=None, seed=0):
    as_double = lambda x: jnp.asarray(x, float) if eqx.is_inexact_array(x) else x
    trees = jax.tree.map(as_double, (scene, camera))
    params, static = eqx.partition(trees, eqx.is_inexact_array, is_leaf=is_frozen)
    flat, unravel = ravel_pytree(params)
    draw = np.random.default_rng(seed)
    weights = jnp.asarray(draw.normal(size=(camera.height, camera.width, 3)))
    along = jnp.asarray(draw.normal(size=flat.shape))

    def loss(numbers):
        scene, camera = eqx.combine(unravel(numbers), static)
        return jnp.sum(weights * sg.render(scene, camera, integrator).rgb)

    # One program for both: each takes minutes to compile.
    both = jax.jit(lambda x: jax.jvp(jax.grad(loss), (x,), (along,)))
    product = both(flat)[1]
    assert jnp.all(jnp.isfinite(product))
    # Second derivatives have steps, where an edge passes a pixel's corner: not in so small a step.
    step = 1e-7
    expected = (both(flat + step * along)[0] - both(flat - step * along)[0]) / (2 * step)
    scale = float(jnp.max(jnp.abs(expected)))
    assert scale > 0
    np.testing.assert_allclose(product, expected, atol=1e-4 * scale)


def lit(**surfaces):
    lamps = {f"light{i}": light for i, light in enumerate(LIGHTS)}
    return sg.Scene(sg.Group(floor=FLOOR, **surfaces, **lamps))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_of_shapes_under_all_lights(shape):
    scene = lit(thing=sg.Surface(shape, sg.Lambert([0.5, 0.6, 0.7]), 0.9))
    assert_hessian(scene, CAMERAS["perspective"], sg.Surfaces(4, lists=False))


@pytest.mark.slow
@pytest.mark.parametrize("shader", SHADERS, ids=lambda shader: type(shader).__name__)
def test_of_shaders_under_all_lights(shader):
    scene = lit(ball=sg.Surface(sg.Sphere([0.1, 0.0, 0.1], 0.8), shader))
    assert_hessian(scene, CAMERAS["perspective"], sg.Surfaces(4, lists=False))


@pytest.mark.slow
@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_of_shapes_in_all_cameras(camera, shape):
    scene = sg.Scene(sg.Group(thing=sg.Surface(shape, [0.5, 0.6, 0.7]), floor=FLOOR))
    assert_hessian(scene, CAMERAS[camera], sg.Surfaces(4, lists=False))


# A shadow ray that begins on the shape, one along it, one through a corner, one that misses.
RAYS = [([0.1, 0.2, 0.0], [0, 0.3, 1]), ([0.1, 0.2, 0.0], [0, 0.3, 0]), ([0, 0, 1], [0, 0, -1])]
RAYS += [([0.1, 0.2, 0.6], [1, 0, 0]), ([0, 0, 0], [0, 0, 1]), ([0.5, 0.5, 1.0], [0, 0, -1])]


@pytest.mark.parametrize("width", [0.0, 0.1])
@pytest.mark.parametrize("shape", SINGULAR, ids=lambda shape: type(shape).__name__)
def test_of_coverage_is_finite_where_edges_vanish(shape, width):
    sides = width * jnp.eye(3)[:2]
    ray = lambda o, d: Ray(*jnp.asarray([o, d, d], float), sides, -sides, *jnp.asarray([1e-4, 1]))
    rays = jax.tree.map(lambda *x: jnp.stack(x), *(ray(*row) for row in RAYS))
    flat, unravel = ravel_pytree(jax.tree.map(lambda x: x[0], rays))
    rows = jax.vmap(lambda ray: ravel_pytree(ray)[0])(rays)
    slope = jax.grad(lambda numbers: shape.coverage(unravel(numbers)))
    along = jnp.asarray(np.random.default_rng(0).normal(size=flat.shape))
    second = jax.jit(jax.vmap(lambda row: jax.jvp(slope, (row,), (along,))[1]))(rows)
    assert jnp.all(jnp.isfinite(second))


@pytest.mark.slow
def test_through_candidate_lists():
    balls = {
        f"ball{i}": sg.Surface(sg.Sphere([0.6 * i - 1.2, 0.1 * i, 0.1], 0.4), [0.1 * i] * 3)
        for i in range(5)
    }
    assert_hessian(lit(**balls), CAMERAS["perspective"], sg.Surfaces(4, lists=True))
