"""Hessian-vector products of pictures, beside differences of the gradient, in double precision."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import scenegraph as sg
from scenegraph.numerics import is_frozen
from scenegraph.rays import Ray
from support.contract_table import LIGHTS, SHADERS, SHAPES, TABLE


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
SINGULAR += [sg.Sphere([0, 0, 0.5], 0.5), sg.Cylinder()]
# Not level: one of the five directions of the environment is, and grazing light has a kink.
FLOOR = sg.Surface(sg.Plane([0.0, 0.0, -1.1], [0.05, 0.1, 1.0]), sg.Lambert([0.7, 0.6, 0.5]))


pytestmark = pytest.mark.usefixtures("x64")


def assert_hessian(scene, camera, integrator=None, seed=0):
    trees = as_double((scene, camera))
    params, static = eqx.partition(trees, eqx.is_inexact_array, is_leaf=is_frozen)
    flat, unravel = ravel_pytree(params)
    draw = np.random.default_rng(seed)
    weights = draw.normal(size=(camera.height, camera.width, 3))

    def loss(numbers):
        scene, camera = eqx.combine(unravel(numbers), static)
        return jnp.sum(weights * sg.render(scene, camera, integrator).rgb)

    assert_second_derivatives(loss, flat, draw)


def as_double(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, float) if eqx.is_inexact_array(x) else x, tree)


def assert_second_derivatives(loss, flat, draw, least=0.0):
    """A product with the Hessian is the difference of gradients."""
    along = jnp.asarray(draw.normal(size=flat.shape))
    # One program for both.
    both = jax.jit(lambda x: jax.jvp(jax.grad(loss), (x,), (along,)))
    product = both(flat)[1]
    assert jnp.all(jnp.isfinite(product))
    # Second derivatives have steps, where an edge passes a pixel's corner: not in so small a step.
    step = 1e-7
    expected = (both(flat + step * along)[0] - both(flat - step * along)[0]) / (2 * step)
    scale = max(float(jnp.max(jnp.abs(expected))), least)
    assert scale > 0
    np.testing.assert_allclose(product, expected, atol=1e-4 * scale)


# --- Each class alone, as the table asks it


ALONE = [
    (TABLE[parent], instance)
    for parent in (
        sg.shapes.AbstractShape,
        sg.shaders.AbstractShader,
        sg.lights.AbstractLight,
        sg.cameras.AbstractCamera,
    )
    for instance in TABLE[parent].instances
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contract", "instance"), ALONE, ids=[type(instance).__name__ for _, instance in ALONE]
)
def test_of_every_class(contract, instance):
    trees = as_double((instance, contract.inputs))
    params, static = eqx.partition(trees, eqx.is_inexact_array, is_leaf=is_frozen)
    flat, unravel = ravel_pytree(params)

    def values(numbers):
        instance, inputs = eqx.combine(unravel(numbers), static)
        found = jax.vmap(lambda *inputs: contract.call(instance, *inputs))(*inputs)
        numbers = ravel_pytree(eqx.filter(found, eqx.is_inexact_array))[0]
        # Distances of misses are infinite.
        return jnp.where(jnp.isfinite(numbers), numbers, 0)

    draw = np.random.default_rng(0)
    # Away from the table's own places: normals are along the views there, where edges vanish.
    flat = flat + 0.02 * draw.normal(size=flat.shape)
    weights = draw.normal(size=jax.eval_shape(values, flat).shape)
    # Of some the numbers are linear.
    assert_second_derivatives(lambda x: jnp.sum(weights * values(x)), flat, draw, least=1e-3)


def lit(**surfaces):
    lamps = {f"light{i}": light for i, light in enumerate(LIGHTS)}
    return sg.Scene(sg.Group(floor=FLOOR, **surfaces, **lamps))


# --- Pictures, of which each takes minutes to compile


# Every shape and every camera.
PAIRS = list(zip(SHAPES, itertools.cycle(CAMERAS)))


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "camera"), PAIRS, ids=NAMES)
def test_of_shapes_in_cameras(shape, camera):
    scene = sg.Scene(sg.Group(thing=sg.Surface(shape, [0.5, 0.6, 0.7]), floor=FLOOR))
    assert_hessian(scene, CAMERAS[camera], sg.Surfaces(4, lists=False))


@pytest.mark.slow
def test_of_a_glossy_ball_under_all_lights():
    scene = lit(ball=sg.Surface(sg.Sphere([0.1, 0.0, 0.1], 0.8), SHADERS[-1]))
    assert_hessian(scene, CAMERAS["perspective"], sg.Surfaces(4, lists=False))


# A shadow ray that begins on the shape, one along it, one through a corner, one that misses.
RAYS = [([0.1, 0.2, 0.0], [0, 0.3, 1]), ([0.1, 0.2, 0.0], [0, 0.3, 0]), ([0, 0, 1], [0, 0, -1])]
RAYS += [([0.1, 0.2, 0.6], [1, 0, 0]), ([0, 0, 0], [0, 0, 1]), ([0.5, 0.5, 1.0], [0, 0, -1])]


@pytest.mark.parametrize(
    "shape",
    [*SINGULAR, pytest.param(sg.Capsule(), marks=pytest.mark.slow)],
    ids=lambda shape: type(shape).__name__,
)
def test_of_coverage_is_finite_where_edges_vanish(shape):
    """With a footprint, and without one."""
    ray = lambda o, d, sides: Ray(*np.array([o, d, d], float), sides, -sides, *np.array([1e-4, 1]))
    rays = [ray(*row, width * np.eye(3)[:2]) for row in RAYS for width in (0.0, 0.1)]
    flat, unravel = ravel_pytree(rays[0])
    rows = np.stack([np.concatenate(list(map(np.ravel, jax.tree.leaves(x)))) for x in rays])
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
    # No floor, far away on which a pixel is larger than a ball: where a shadow ray of such a pixel
    # begins changes with its size, which derivatives leave out.
    lamps = {f"light{i}": light for i, light in enumerate(LIGHTS)}
    scene = sg.Scene(sg.Group(**balls, **lamps))
    assert_hessian(scene, CAMERAS["perspective"], sg.Surfaces(4, lists=True))
