"""Shapes given by a function against the same shapes in closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


class Ball(eqx.Module):
    """A sphere as a signed distance."""

    center: jax.Array
    radius: jax.Array

    def __call__(self, point):
        return jnp.linalg.norm(point - self.center) - self.radius


CENTER, RADIUS = jnp.array([0.1, 0.0, 0.6]), jnp.array(0.5)
CAMERA = sg.PerspectiveCamera.look_at(
    [0.0, -4.0, 2.0], [0.0, 0.0, 0.4], [0.0, 0.0, 1.0], 0.6, 40, 40
)


def scene(shape):
    return sg.Scene(
        sg.Group(
            floor=sg.Surface(sg.Plane(), sg.Lambert([0.8, 0.8, 0.8])),
            ball=sg.Surface(shape, sg.Lambert([0.7, 0.4, 0.2])),
            lamp=sg.PointLight([1.5, -2.0, 4.0], [30.0, 30.0, 30.0]),
        )
    )


def traced(center, radius):
    return scene(sg.SignedDistance(Ball(center, radius), sg.Box([-1.5] * 3, [1.5] * 3), steps=32))


def closed(center, radius):
    return scene(sg.Sphere(center, radius))


@pytest.mark.slow
def test_picture_and_gradients_are_those_of_the_sphere():
    """Shadow and outline included; a derivative within 3 per cent of the largest."""
    target = sg.render(closed(CENTER + jnp.array([0.05, 0.03, 0.04]), 0.52), CAMERA).rgb

    def loss(center, radius, make):
        rgb = sg.render(make(center, radius), CAMERA).rgb
        return jnp.mean((rgb - target) ** 2), rgb

    slope = eqx.filter_jit(jax.grad(loss, (0, 1), has_aux=True))
    (ours, picture), (right, truth) = (slope(CENTER, RADIUS, make) for make in (traced, closed))
    assert np.sqrt(np.mean((picture - truth) ** 2)) < 0.01
    assert_close(jnp.append(*ours), jnp.append(*right), 0.03)


@pytest.mark.slow
def test_samples_on_a_grid_have_right_gradients():
    grid = np.linalg.norm(np.mgrid[-1:1:9j, -1:1:9j, -1:1:9j], axis=0) - 0.6
    shape = sg.SignedDistance.from_grid(grid, [-1.0] * 3, [1.0] * 3, steps=32)
    checks = sg.check_gradients(scene(shape), CAMERA, where=["ball.shape.**"], pixels=64)
    assert {check.verdict for check in checks} <= {"right", "zero"}, checks


@pytest.mark.slow
def test_hits_are_those_of_the_sphere():
    """Coverage everywhere, distance away from the outline; and their derivatives by the radius."""
    rays = jax.vmap(CAMERA.ray)(jnp.array([[x, 17.3] for x in np.linspace(12.3, 28.9, 30)]))
    bounds = sg.Box([-1.5] * 3, [1.5] * 3)

    def hits(make):
        def seen(radius):
            found = jax.vmap(make(radius).intersect)(rays)
            return found.coverage, found.t[8:22]

        return jax.jit(lambda r: jax.jvp(seen, (r,), (jnp.ones_like(r),)))(RADIUS)

    ours = hits(lambda r: sg.SignedDistance(Ball(CENTER, r), bounds, steps=32))
    right = hits(lambda r: sg.Sphere(CENTER, r))
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(right), strict=True):
        assert_close(one, other, 0.02)


@pytest.mark.slow
def test_a_plain_function_among_many_things():
    """Its ball is seen among so many others that they are looked for in lists."""
    plain = sg.SignedDistance(lambda p: jnp.linalg.norm(p) - 0.5, sg.Box([-1.0] * 3, [1.0] * 3))
    camera = sg.PerspectiveCamera.look_at([0.0, -4.0, 0.0], [0.0] * 3, [0.0, 0.0, 1.0], 0.7, 16, 16)

    def picture(shape):
        balls = {
            f"ball{i}": sg.Surface(sg.Sphere([i - 6.0, 3.0, 0.0], 0.4), [0.2, 0.3, 0.4])
            for i in range(12)
        }
        return sg.render(
            sg.Scene(sg.Group(middle=sg.Surface(shape, [0.8, 0.2, 0.1]), **balls)), camera
        )

    found, wanted = picture(plain), picture(sg.Sphere([0.0, 0.0, 0.0], 0.5))
    assert_close(found.rgb, wanted.rgb, 0, 2e-3)
