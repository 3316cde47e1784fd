"""Where rays are looked at, with which keys, and what an empty scene looks like."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import AbstractField, ConstantFog
from scenegraph.integrators import choose_integrator, Integrator
from scenegraph.rays import CylinderBeam, Medium
from scenegraph.samplers import Disparity
from support.helpers import assert_close


render_rays = eqx.filter_jit(sg.render_rays)
BACKGROUND = [0.2, 0.4, 0.6]


def fog(extinction=0.7, upper=0.5):
    """A slab in `y`, across the rays."""
    return sg.Volume(
        ConstantFog(extinction, [0.9, 0.2, 0.1]), sg.Box([-9, -0.5, -9], [9, upper, 9])
    )


def scene_of(integrator=None, **children):
    return sg.Scene(sg.Group(**children), background=BACKGROUND, integrator=integrator)


@functools.cache
def camera():
    return sg.OrthographicCamera.look_at(
        [0, -3, 0], [0, 0, 0], [0, 0, 1], 2.0, 3, 2, near=1.0, far=5.0
    )


@functools.cache
def rays():
    pixels = jnp.array([[0.5, 0.5], [1.5, 0.5], [2.5, 1.5]])
    return jax.jit(jax.vmap(camera().ray))(pixels)


# --- Samples


def test_samples_fill_what_may_be_filled():
    """The slab's part of the ray; the second level looks there too."""
    levels = render_rays(scene_of(sg.Hierarchical((4, 8)), fog=fog()), rays())
    assert_close(levels[0].edges[0], [2.5, 2.75, 3, 3.25, 3.5], 1e-6)
    assert levels[1].edges.shape == (3, 9)
    assert_close(levels[1].edges[:, [0, -1]], [[2.5, 3.5]] * 3, 1e-5)


def test_finer_levels_look_where_something_is():
    things = {"air": sg.Volume(ConstantFog(1e-4, BACKGROUND), None), "fog": fog(2.0)}
    levels = render_rays(scene_of(sg.Hierarchical((16, 16, 16)), **things), rays())
    inside = [np.mean((x.edges > 2.4) & (x.edges < 3.6), axis=1).min() for x in levels]
    assert inside[0] < 0.4 and inside[1] > 0.6 and inside[2] > 0.6


def test_padding_keeps_samples_everywhere():
    things = {"air": sg.Volume(ConstantFog(1e-4, BACKGROUND), None), "fog": fog(2.0)}
    last = [
        render_rays(scene_of(sg.Hierarchical((16, 16), padding=padding), **things), rays())[1]
        for padding in (0.0, 10.0)
    ]
    gaps = [np.diff(x.edges, axis=1).max() for x in last]
    assert_close(gaps[1], 0.25, 0.1)
    assert gaps[0] > 0.5


def test_spacing_and_beam_are_used():
    air = sg.Volume(ConstantFog(0.1, BACKGROUND), None)
    (level,) = render_rays(scene_of(sg.Hierarchical((4,), spacing=Disparity()), air=air), rays())
    assert_close(1 / level.edges[0], np.linspace(1, 0.2, 5), 1e-6)
    assert_close(level.weights.sum(1), level.alpha, 1e-6)

    class Width(AbstractField):
        """Its density is the spread of the sample."""

        def __call__(self, gaussian, view, *, key=None):
            return Medium(self.density(gaussian), view)

        def density(self, gaussian):
            return jnp.sum(gaussian.variance())

    wide = scene_of(width=sg.Volume(Width(), None))
    pinhole = sg.PerspectiveCamera(sg.Pose(jnp.eye(4)), 1.0, 1, 1, near=2.0, far=4.0)
    ray = jax.jit(jax.vmap(pinhole.ray))(jnp.array([[0.5, 0.5]]))
    cone, cylinder = (
        render_rays(wide, ray, sg.Hierarchical((1,), **option))[0].alpha
        for option in ({}, {"beam": CylinderBeam()})
    )
    assert_close(cylinder, [1 - np.exp(-2 * (4 / 12 + 2 / 12))], 1e-5)
    assert cone > 1.5 * cylinder


def test_stop_gradient_is_about_positions_only():
    def depth(extinction, stop):
        one = sg.Hierarchical((4, 4), stop_gradient=stop)
        return jnp.sum(render_rays(scene_of(one, fog=fog(extinction)), rays())[-1].depth)

    slopes = [jax.jit(jax.grad(depth), static_argnums=1)(1.5, stop) for stop in (True, False)]
    assert all(np.isfinite(slopes)) and slopes[0] != slopes[1]
    assert_close(slopes[0], slopes[1], 0.5)


# --- Every sample of every ray gets its own view and key


class Witness(AbstractField):
    """Shines with the view; it is denser towards positive `x`."""

    def __call__(self, gaussian, view, *, key=None):
        return Medium(self.density(gaussian), view)

    def density(self, gaussian):
        return jnp.exp(gaussian.mean[0])


def test_views_are_those_of_the_rays():
    """And the densities those of the samples."""
    view = sg.PerspectiveCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 0.9, 3, 2, 1.0, 5.0)
    cones = jax.jit(jax.vmap(view.ray))(jnp.array([[0.5, 0.5], [1.5, 1.5], [2.5, 0.5], [2.5, 1.5]]))
    centred = sg.Hierarchical((5, 7), beam=CylinderBeam())
    scene = scene_of(centred, witness=sg.Volume(Witness(), None))
    for level in render_rays(scene, cones, background=jnp.zeros((4, 3))):
        assert_close(level.rgb, level.alpha[:, None] * cones.view, 1e-6)
        middle = (level.edges[:, 1:] + level.edges[:, :-1]) / 2
        length = np.diff(level.edges) * np.linalg.norm(cones.direction, axis=1)[:, None]
        depths = length * np.exp(cones.direction[:, :1] * middle)
        left = np.exp(-np.cumsum(depths, 1))
        assert_close(level.weights, -np.diff(left, axis=1, prepend=1), 1e-5)


class Noise(AbstractField):
    """A density that is nothing but chance."""

    rgb: jax.Array

    def __call__(self, gaussian, view, *, key=None):
        return Medium(jnp.ones(()) if key is None else jax.random.uniform(key), self.rgb)

    def density(self, gaussian):
        return jnp.ones(())


def test_noise_is_independent():
    """Of the ray, the sample, the level and the medium."""
    red, green = (sg.Volume(Noise(color), None) for color in jnp.eye(3)[:2])
    scene = scene_of(sg.Hierarchical((4, 4)), red=red, green=green)
    noisy = render_rays(scene, rays(), key=jax.random.key(0), background=jnp.zeros((3, 3)))
    densities = []
    for level in noisy:
        left = 1 - np.cumsum(level.weights, axis=1)
        depths = -np.diff(np.log(left), axis=1, prepend=0)
        densities.extend(np.ravel(depths / np.diff(level.edges)))
        # One key for both media would make them equally dense everywhere.
        assert np.all(np.abs(level.rgb[:, 0] - level.rgb[:, 1]) > 1e-3)
    assert len(np.unique(np.round(densities, 4))) == 2 * 3 * 4
    plain = render_rays(scene, rays(), background=jnp.zeros((3, 3)))[0]
    assert_close(plain.rgb[:, 0], plain.rgb[:, 1], 1e-6)


# --- Nothing


EMPTY = {
    "nothing at all": {},
    "a camera": {"cam": camera()},
    "an empty group": {"deep": sg.Group(), "cam": sg.Transformed(camera(), sg.Similarity())},
}


@pytest.mark.parametrize("case", EMPTY)
def test_an_empty_scene_is_its_background(case):
    for integrator, key in ((None, None), (sg.Hierarchical((4, 4)), jax.random.key(0))):
        image = sg.render(scene_of(**EMPTY[case]), camera(), integrator, key=key)
        assert np.array_equal(image.rgb, np.broadcast_to(np.float32(BACKGROUND), (2, 3, 3)))
        assert not np.any(image.alpha)
        assert np.all(np.isfinite(image.depth))


def test_a_bare_node_as_root():
    bare = sg.Scene(fog(), background=BACKGROUND)
    grouped = scene_of(fog=fog())
    a, b = (sg.render(scene, camera(), sg.Hierarchical((4,))) for scene in (bare, grouped))
    assert_close(a.rgb, b.rgb, 1e-6)
    assert np.all(a.alpha > 0.4)


# --- The choice


def test_the_choice():
    mine = sg.Hierarchical((3,))
    assert choose_integrator(scene_of(mine, fog=fog())) == Integrator(mine)
    assert choose_integrator(scene_of(fog=fog()), mine) == Integrator(mine)
    assert choose_integrator(scene_of(fog=fog())) == Integrator(sg.Hierarchical((64, 64)))
    assert choose_integrator(scene_of(deep=sg.Group(x=fog()))) == Integrator(sg.Hierarchical())
    assert choose_integrator(scene_of(cam=camera())) == Integrator()


@pytest.mark.parametrize("samples", [(), (0,), (4, -1)])
def test_every_level_needs_samples(samples):
    with pytest.raises(ValueError, match="at least one sample"):
        sg.Hierarchical(samples)


# --- Proposals


@pytest.mark.slow
def test_proposals_say_where_to_look():
    """Weights are those of the proposal's density; the last level is asked where they are."""
    turn = sg.Similarity([0.1, 0.0, 0.0], [1.0, 0.2, 0.1, 0.0], 1.2)
    there, elsewhere = (sg.fields.GaussianBlob([0, 0, z], 0.2, 3.0, [1, 1, 1]) for z in (0.4, -0.4))
    box = sg.Box([-1.0] * 3, [1.0] * 3)
    one = sg.Scene(sg.Group(a=sg.Transformed(sg.Volume(there, box, proposal=elsewhere), turn)))
    other = sg.Scene(sg.Group(a=sg.Transformed(sg.Volume(elsewhere, box), turn)))
    view = sg.PerspectiveCamera.look_at([3.0, 1.0, 0.2], [0.0] * 3, [0.0, 0.0, 1.0], 0.5, 6, 6)
    rays = sg.data.pixel_rays(view)
    proposed, last = sg.render_rays(one, rays, sg.Hierarchical((32, 16), proposals=True))
    asked, same_places = sg.render_rays(other, rays, sg.Hierarchical((32, 16)))
    assert_close(proposed.weights, asked.weights, 1e-6)
    assert_close(last.edges, same_places.edges, 1e-6)
    assert np.abs(np.asarray(last.weights) - np.asarray(same_places.weights)).max() > 1e-3
