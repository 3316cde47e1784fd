"""What must not change a picture, and rays that meet nothing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.encodings import IntegratedPositional
from scenegraph.fields import ConstantFog, MipNerfMLP
from support.helpers import assert_close


EYE, TARGET, UP = np.array([2.0, -1.5, 1.0]), np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
FEW = sg.Hierarchical((24,))
MAP = sg.Similarity([0.5, -2.0, 1.0], [0.8, 0.1, -0.3, 0.5], 3.7)


def network():
    """Coarse enough (wavelengths above 0.7) that rounding is not amplified."""
    encoding, key = IntegratedPositional(0, 4), jax.random.key(0)
    return MipNerfMLP(8, 2, view_width=8, encoding=encoding, view_degree=2, key=key)


def scene_of(root):
    return sg.Scene(root, background=[0.2, 0.4, 0.6], integrator=FEW)


def root():
    fog = sg.Volume(ConstantFog(0.8, [0.1, 0.9, 0.3]), sg.Box([-0.6] * 3, [0.4, 0.7, 0.8]))
    stretch = sg.Affine([[1.2, 0.3, 0.0], [0.0, 0.8, 0.0], [0.0, 0.1, 0.9]])
    return sg.Group(net=sg.Volume(network()), deep=sg.Group(fog=sg.Transformed(fog, stretch)))


def camera(kind, eye=EYE, target=TARGET, up=UP, scale=1.0):
    """Near, far and what the picture shows grow with `scale`."""
    where = eye.tolist(), target.tolist(), up.tolist()
    cut = {"near": 0.5 * scale, "far": 5.0 * scale}
    if kind == "perspective":
        return sg.PerspectiveCamera.look_at(*where, fov_x=0.8, width=6, height=5, **cut)
    return sg.OrthographicCamera.look_at(*where, extent=2.4 * scale, width=6, height=5, **cut)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["perspective", "orthographic"])
def test_scene_and_camera_moved_and_scaled_together(kind):
    """Density is per unit length of a node's own frame; the camera is placed anew by hand."""
    points = jnp.asarray([EYE, TARGET, EYE + UP], jnp.float32)
    eye, target, above = np.asarray(jax.vmap(MAP.point)(points), np.float64)
    moved = camera(kind, eye, target, above - eye, scale=3.7)
    before = sg.render(scene_of(root()), camera(kind))
    after = sg.render(scene_of(sg.Transformed(root(), MAP)), moved)
    assert np.ptp(before.alpha) > 0.3
    assert_close(after.rgb, before.rgb, 0, 2e-5)
    assert_close(after.alpha, before.alpha, 0, 2e-5)
    # The parameter of a parallel ray is a length, and lengths have grown.
    assert_close(after.depth, before.depth * 3.7, 2e-5)


@pytest.mark.slow
def test_a_camera_in_the_moved_scene():
    """The camera moves along; `t` of its rays keeps its meaning."""
    inside = sg.Group(things=root(), cam=camera("perspective"))
    before = sg.render(scene_of(inside), "cam")
    after = sg.render(scene_of(sg.Group(all=sg.Transformed(inside, MAP))), "all.cam")
    assert_close(after.rgb, before.rgb, 0, 2e-5)
    assert_close(after.depth, before.depth, 2e-5)


@pytest.mark.slow
def test_a_moved_camera_is_the_camera_placed_by_hand():
    rig = sg.Transformed(
        sg.Group(cam=camera("perspective")), sg.Similarity([1.0, 0, 0], [0, 0, 0, 1.0])
    )
    scene = scene_of(sg.Group(rig=sg.Group(turned=rig), **root().children))
    half_turn = np.array([-1.0, -1.0, 1.0])  # about z
    by_hand = camera("perspective", EYE * half_turn + [1, 0, 0], TARGET * half_turn + [1, 0, 0])
    expected, actual = sg.render(scene, by_hand), sg.render(scene, "rig.turned.cam")
    assert_close(actual.rgb, expected.rgb, 0, 2e-5)
    assert_close(actual.depth, expected.depth, 2e-5)


def test_the_order_of_children_does_not_matter():
    children = root().children
    backwards = dict(reversed(children.items()))
    a, b = (
        sg.render(scene_of(sg.Group(**c)), camera("perspective")) for c in (children, backwards)
    )
    assert_close(a.rgb, b.rgb, 1e-6)


# --- Rays that meet nothing

BEHIND = [10.0, 0.0, 0.0]


def beside():
    """What the camera does not see: it lies behind it."""
    box = sg.Box([9.0, -1, -1], [11.0, 1, 1])
    stretched = sg.Transformed(sg.Volume(network()), sg.Affine(np.diag([1.0, 2, 0.5]), BEHIND))
    return sg.Group(
        fog=sg.Volume(ConstantFog(3.0, [1, 0, 0]), box),
        deep=sg.Group(net=stretched),
    )


@pytest.mark.slow
def test_a_ray_that_misses_sees_exactly_the_background():
    """All gradients are finite; only the background has one."""

    def loss(arguments):
        image = sg.render(*arguments)
        return jnp.sum(image.rgb) + jnp.sum(image.alpha), image

    gradient = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))
    (scene, view), image = gradient((scene_of(beside()), camera("perspective")))
    assert np.array_equal(image.rgb, np.broadcast_to(np.float32([0.2, 0.4, 0.6]), (5, 6, 3)))
    assert not np.any(image.alpha)
    assert np.all(np.isfinite(image.depth))
    assert_close(scene.background.shader.color, [30, 30, 30], 1e-6)
    for leaf in jax.tree.leaves((scene.root, view)):
        assert not np.any(leaf), leaf


def test_gradients_where_some_rays_miss_and_some_graze():
    """Rays along a face of the box, along an edge, through a corner, and past it."""
    box = sg.Volume(ConstantFog(2.0, [1, 0, 0]), sg.Box([-1] * 3, [1] * 3))
    parallel = sg.OrthographicCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 3.0, 3, 3, 0.1, 6.0)

    def loss(arguments):
        scene, camera = arguments
        image = sg.render(scene, camera)
        return jnp.sum(image.rgb**2) + jnp.sum(image.depth)

    # Pixel centres at -1, 0 and 1 in both directions: exactly on the faces and edges.
    gradient = eqx.filter_jit(eqx.filter_grad(loss))
    gradients = gradient((scene_of(sg.Group(box=box)), parallel))
    for leaf in jax.tree.leaves(gradients):
        assert np.all(np.isfinite(leaf)), leaf


@pytest.mark.slow
def test_gradients_of_a_camera_inside():
    def loss(camera):
        return jnp.sum(sg.render(scene_of(root()), camera).rgb ** 2)

    gradient = eqx.filter_jit(eqx.filter_grad(loss))(
        camera("perspective", eye=np.array([0.1, -0.2, 0.0]))
    )
    assert np.all(np.isfinite(gradient.pose.delta)) and np.any(gradient.pose.delta)
