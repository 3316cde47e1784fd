"""Volumes whose bounds are as far as their field reaches."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import ConstantFog, GaussianBlob
from support.helpers import assert_close


def blob(at, radius=0.4):
    return sg.Volume(GaussianBlob(at, radius, 5.0, [0.8, 0.3, 0.1]))


def opacity(volume, x, **options):
    eye, target = [x, -3.5, 1.6], [x, 0, 0.4]
    view = sg.PerspectiveCamera.look_at(eye, target, [0, 0, 1], 0.7, 16, 12)
    scene = sg.Scene(sg.Group(b=volume), integrator=sg.Hierarchical((32,)))
    return sg.render(scene, view, **options).alpha.mean()


@pytest.mark.parametrize("x", [1.0, 3.0, -40.0])
def test_a_cloud_is_seen_wherever_it_is(x):
    assert_close(opacity(blob([x, 0, 0.4]), x), opacity(blob([0.0, 0, 0.4]), 0.0), 1e-4)


def test_a_cloud_that_a_fit_moves_away_takes_its_bounds_along():
    moved = sg.replace(sg.Group(b=blob([0.0, 0, 0.4])), {"b.field.center": [5.0, 0, 0.4]})["b"]
    assert_close(opacity(moved, 5.0), opacity(blob([0.0, 0, 0.4]), 0.0), 1e-4)
    assert_close(moved.box().lower, [3.0, -2.0, -1.6], 1e-3)


def test_a_cloud_smaller_than_a_pixel_is_seen_beside_its_middle_too():
    """The sum over pixels of optical depth times area is extinction (2 pi)^(3/2) r^3."""
    radius = 0.01
    volume = sg.Volume(GaussianBlob([0.03, 0.02, 0.0], radius, 1.0, [1.0, 1.0, 1.0]))
    camera = sg.OrthographicCamera.look_at([0, 0, 2], [0, 0, 0], [0, 1, 0], 1.6, 16, 16)
    scene = sg.Scene(sg.Group(b=volume), integrator=sg.Hierarchical((64, 64)))
    depth = -jnp.log1p(-sg.render(scene, camera).alpha)
    exact = (2 * np.pi) ** 1.5 * radius**3
    assert_close(jnp.sum(depth) * 0.1**2 / exact, 1.0, 0.1)


def test_bounds_mean_what_they_say():
    """A box cuts, `None` does not, and fields that do not say how far they reach have a box."""
    fog = ConstantFog(1.0, (1.0, 1.0, 1.0))
    default = sg.Volume(fog)
    assert_close(default.bounds.lower, [-1.5] * 3, 0)
    assert sg.Volume(fog, None).box() is None
    half = sg.Volume(GaussianBlob([0.0, 0, 0], 0.4, 5.0, [1.0] * 3), sg.Box([0, -2, -2], [2, 2, 2]))
    axis = jnp.array([[1.0, 0, 0]])
    line = sg.rays.Ray(
        -4 * axis, axis, axis, *jnp.zeros((2, 1, 2, 3)), jnp.zeros(1), jnp.ones(1) * 9
    )
    through = [
        sg.render_rays(sg.Scene(sg.Group(b=x)), line, sg.Hierarchical((256,)))[-1].alpha[0]
        for x in (half, dataclasses.replace(half, bounds="auto"))
    ]
    # Half of the optical depth 5 * 0.4 sqrt(2 pi), and all of it.
    depth = 5 * 0.4 * np.sqrt(2 * np.pi)
    assert_close(jnp.stack(through), 1 - np.exp(-np.array([depth / 2, depth])), 2e-3)
    with pytest.raises(TypeError, match="`bounds` of `Volume`"):
        sg.Volume(fog, "all")


def test_derivative_by_the_place_of_a_cloud_is_that_of_differences():
    def seen(x):
        field = GaussianBlob([0.2, 0.0, 0.4], 0.3, 2.0, [1.0] * 3)
        node = sg.replace(
            sg.Group(b=sg.Volume(field)), {"b.field.center": jnp.stack([x, 0 * x, 0.4 + 0 * x])}
        )
        view = sg.PerspectiveCamera.look_at([0, -3, 0.4], [0, 0, 0.4], [0, 0, 1], 0.4, 8, 6)
        weights = jnp.linspace(0, 1, 8)
        return jnp.sum(
            weights * sg.render(sg.Scene(node, integrator=sg.Hierarchical((96,))), view).alpha
        )

    with jax.enable_x64(True):
        h = 1e-4
        differences = (seen(jnp.asarray(0.2 + h)) - seen(jnp.asarray(0.2 - h))) / (2 * h)
        assert_close(jax.grad(seen)(jnp.asarray(0.2)), differences, 2e-3)


def test_a_field_of_ones_own_says_how_far_it_reaches():
    class Slab(sg.fields.AbstractBoundedField):
        def bounding_box(self):
            return sg.Box([-1.0, 4.0, -1.0], [1.0, 5.0, 1.0])

        def density(self, gaussian):
            return jnp.ones(())

        def __call__(self, gaussian, view, *, key=None):
            return sg.rays.Medium(self.density(gaussian), jnp.ones(3))

    volume = sg.Volume(Slab())
    assert_close(volume.box().upper, [1.0, 5.0, 1.0], 0)
    line = sg.PerspectiveCamera.look_at([0, 0, 0], [0, 1, 0], [0, 0, 1], 0.01, 1, 1)
    alpha = sg.render(sg.Scene(sg.Group(a=volume)), line).alpha[0, 0]
    assert_close(alpha, 1 - np.exp(-1.0), 1e-3)


def test_bounds_are_saved_as_they_are(tmp_path):
    sg.save(sg.Group(a=blob([4.0, 0, 0])), tmp_path / "x.sg")
    assert_close(sg.load(tmp_path / "x.sg")["a"].box().lower, [2.0, -2.0, -2.0], 1e-3)
