"""Pictures whose samples share room: with too little of it they take longer, and are the same."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import GaussianBlob
from scenegraph.integrators import OccupancyMarch
from scenegraph.rendering import _render
from scenegraph.scene import Occupancy
from support.helpers import assert_close


FULL = OccupancyMarch(16, 16)
# One sample a ray has room; the rays that meet the box ask for about eight.
LITTLE = OccupancyMarch(16, 1)


def camera():
    return sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.6, 9, 7)


def scene(integrator=None, **children):
    empty = np.random.default_rng(0).uniform(size=(4, 4, 4)) < 0.5
    known = Occupancy.everywhere(4).without(jnp.asarray(empty))
    blob = GaussianBlob([0.1, 0.0, 0.2], 0.4, 3.0, (0.9, 0.2, 0.1))
    cloud = sg.Volume(blob, sg.Box([-0.8] * 3, [0.8] * 3), occupancy=known)
    return sg.Scene(
        sg.Group(cloud=cloud, **children), background=(1.0, 1.0, 1.0), integrator=integrator
    )


def assert_same(one, other, tolerance=1e-6):
    for name in ("rgb", "alpha", "depth"):
        assert_close(getattr(one, name), getattr(other, name), 0, tolerance)


@pytest.mark.slow
def test_there_really_is_too_little_room():
    rays = jax.vmap(camera().ray)(jnp.array([[4.5, 3.5]] * 6))
    assert np.all(sg.render_rays(scene(), rays, LITTLE)[-1].overflow[1:] > 0)
    assert not np.any(sg.render_rays(scene(), rays, FULL)[-1].overflow)


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, jax.random.key(1)], ids=["even", "jittered"])
@pytest.mark.parametrize("chunk", ["auto", 10, 63, 1])
def test_picture_does_not_depend_on_budget_or_chunk(chunk, key):
    """And nobody is warned: the picture is rendered again, with more room."""
    expected = sg.render(scene(), camera(), FULL, key=key)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = sg.render(scene(), camera(), LITTLE, key=key, chunk=chunk)
    assert np.ptp(expected.alpha) > 0.3
    assert_same(seen, expected)


def test_space_that_suffices_on_average_suffices_in_every_chunk(monkeypatch):
    """A chunk has pixels from all over the picture, not neighbours that all meet the same thing."""
    requested, every = [], _render.draw_picture

    def draw(*arguments):
        image, missed, mean = every(*arguments)
        requested.append(float(mean))
        return image, missed, mean

    monkeypatch.setattr(_render, "draw_picture", draw)
    large = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.6, 36, 28)
    expected = sg.render(scene(), large, FULL, chunk=126)
    seen = sg.render(scene(), large, OccupancyMarch(16, round(1.3 * requested[0])), chunk=126)
    assert len(requested) == 2 and 1.3 * requested[0] < 0.6 * 16
    assert_same(seen, expected)


@pytest.mark.parametrize("budget", [3, 5, 7])
def test_space_that_suffices_on_average_is_enlarged_where_some_chunks_lack_it(budget):
    """With a ray in each chunk; a quarter more than the mean is then no larger budget."""
    expected = sg.render(scene(), camera(), FULL)
    seen = sg.render(scene(), camera(), OccupancyMarch(16, budget), chunk=1)
    assert not np.any(seen.overflow)
    assert_same(seen, expected)


@pytest.mark.slow
def test_scene_says_how_much_room():
    """And with surfaces about."""
    ball = sg.Surface(sg.Sphere([0.3, 0.0, 0.0], 0.3), [0.1, 0.5, 0.9], 0.5)
    surfaces = sg.Surfaces(3)
    seen, expected = (
        sg.render(scene(sg.Integrator(media, surfaces), ball=ball), camera())
        for media in (LITTLE, FULL)
    )
    assert_same(seen, expected)


@pytest.mark.slow
def test_layers_that_find_no_room_have_it_at_the_second_try():
    """Of surfaces and of samples at once."""
    sheets = {
        f"sheet{n}": sg.Surface(sg.Plane([0.0, y, 0.0], [0.0, 1.0, 0.0]), [0.9, 0.8, 0.1], 0.3)
        for n, y in enumerate((-0.3, 0.0, 0.3))
    }
    seen, expected = (
        sg.render(scene(sg.Integrator(media, sg.Surfaces(layers)), **sheets), camera())
        for media, layers in ((LITTLE, 2), (FULL, 3))
    )
    assert not np.any(seen.overflow)
    assert_same(seen, expected)


def test_pictures_inside_of_jit_have_all_the_room():
    """What is traced cannot be counted."""
    expected = sg.render(scene(), camera(), FULL)
    seen = eqx.filter_jit(lambda s: sg.render(s, camera(), LITTLE))(scene())
    assert_same(seen, expected)


@pytest.mark.slow
def test_gradients_of_a_picture_are_those_with_all_the_room():
    def total(scene, integrator):
        image = sg.render(scene, camera(), integrator)
        return jnp.mean(image.rgb**2) + jnp.mean(image.depth)

    little, full = (eqx.filter_grad(total)(scene(), x) for x in (LITTLE, FULL))
    for a, b in zip(jax.tree.leaves(little), jax.tree.leaves(full), strict=True):
        assert_close(a, b, 1e-4, 1e-7)
    assert np.abs(little.root.children["cloud"].field.center).max() > 1e-4
