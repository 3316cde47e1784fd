"""Outlines of shapes given by functions: bounds of a distance, thin things, tight bounds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 2.2], [0, 0, 0], [0, 0, 1], 0.6, 40, 40)
CLOSE = sg.PerspectiveCamera.look_at([0, -4, 2.2], [0, 0, 0], [0, 0, 1], 0.12, 40, 40)
ALONG = np.array([-0.1, -1.2, 0.66])
BOUNDS = sg.Box([-1.5] * 3, [1.5] * 3)


class Torus(eqx.Module):
    """A part of the distance to a torus: a bound of it."""

    radius: jax.Array
    part: float = eqx.field(static=True, default=1.0)

    def __call__(self, point):
        across = jnp.linalg.norm(point[:2]) - 0.7
        return self.part * (jnp.linalg.norm(jnp.stack([across, point[2]])) - self.radius)


class Rod(eqx.Module):
    """A capsule as a signed distance."""

    start: jax.Array
    end: jax.Array
    radius: jax.Array

    def __call__(self, point):
        axis = self.end - self.start
        part = jnp.clip((point - self.start) @ axis / (axis @ axis), 0, 1)
        return jnp.linalg.norm(point - self.start - part * axis) - self.radius


def alpha(shape, camera=CAMERA, cones=1):
    scene = sg.Scene(sg.Group(thing=sg.Surface(shape, sg.Constant([1.0, 1.0, 1.0]))))
    return sg.render(scene, camera, samples_per_pixel=cones).alpha


def rms(x):
    return float(jnp.sqrt(jnp.mean(x**2)))


@pytest.mark.slow
def test_outline_of_a_torus_is_that_of_many_cones():
    """Root mean square 0.0043: the hole is small, and its far rim lies behind the near one."""
    ours, half = (
        alpha(sg.SignedDistance(Torus(jnp.array(0.25), part), BOUNDS)) for part in (1.0, 0.5)
    )
    truth = alpha(sg.SignedDistance(Torus(jnp.array(0.25)), BOUNDS), cones=64)
    assert float(jnp.max(truth)) == 1
    assert float(jnp.min(truth)) == 0
    assert rms(ours - truth) < 0.005
    # A function that is only a bound of the distance takes more steps to the same outline.
    assert rms(half - ours) < 1e-4


@pytest.mark.parametrize("start, end", [([-0.9, -0.4, -0.3], [0.9, 0.3, 0.4]), (ALONG, -ALONG)])
def test_rods_thinner_than_a_step_are_whole(start, end):
    """Steps are 0.1 long, and the rod is 0.04 thick; the second is seen nearly along its axis."""
    ends = jnp.array(start), jnp.array(end)
    ours = alpha(sg.SignedDistance(Rod(*ends, jnp.array(0.02)), BOUNDS, steps=24), CLOSE)
    truth = alpha(sg.Capsule(*ends, 0.02), CLOSE, cones=16)
    assert rms(ours - truth) < 0.02 * rms(truth)


def test_a_ball_that_touches_its_bounds_is_whole():
    center, radius = jnp.zeros(3), jnp.array(1.0)
    ours = alpha(sg.SignedDistance(Rod(center, center + 1e-6, radius), sg.Box([-1] * 3, [1] * 3)))
    assert rms(ours - alpha(sg.Sphere(center, radius))) < 0.002


def test_a_grid_cut_by_its_bounds_is_seen_from_outside():
    """What lies in the bounds is seen; rays that enter through the cut see no surface there."""
    half = alpha(sg.SignedDistance(Torus(jnp.array(0.25)), sg.Box([-1.5, -1.5, 0], [1.5] * 3)))
    whole = alpha(sg.SignedDistance(Torus(jnp.array(0.25)), BOUNDS))
    assert float(jnp.max(half - whole)) < 0.05
    assert 0.5 < float(jnp.sum(half) / jnp.sum(whole)) < 1


@pytest.mark.slow
def test_gradients_reach_what_a_function_closes_over():
    """A function in Python that uses a traced number has the gradient of a Module's leaf."""
    small = sg.PerspectiveCamera.look_at([0, -4, 2.2], [0, 0, 0], [0, 0, 1], 0.6, 16, 16)

    def area(radius, make):
        return jnp.mean(alpha(sg.SignedDistance(make(radius), BOUNDS), small))

    slope = lambda make: jax.jit(jax.grad(lambda radius: area(radius, make)))(0.25)
    torus = lambda radius: lambda point: Torus(radius)(point)
    ours, leaf = slope(torus), slope(Torus)
    step = 0.01
    difference = (area(0.25 + step, Torus) - area(0.25 - step, Torus)) / (2 * step)
    assert_close(ours, leaf, 1e-5)
    assert_close(leaf, difference, 0.02)
    assert np.isfinite(float(ours))
