"""`render` and `render_rays`: compiled once, whatever the chunk; filters, keys, errors."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.fields import ConstantFog, GaussianBlob
from scenegraph.filters import AbstractFilter
from scenegraph.numerics import Frozen
from support.helpers import assert_close


FEW, ONE_LEVEL = sg.Hierarchical((6, 8)), sg.Hierarchical((8,))
render_rays = eqx.filter_jit(sg.render_rays)


def camera(width=5, height=3, **moved):
    where = {"eye": [2.0, -1.5, 1.0], "target": [0.0, 0.0, 0.0], "up": [0.0, 0.0, 1.0], **moved}
    return sg.PerspectiveCamera.look_at(**where, fov_x=0.8, width=width, height=height)


def scene(extinction=2.0):
    blob = sg.Volume(GaussianBlob([0.2, -0.1, 0.0], 0.4, extinction, [0.9, 0.3, 0.2]))
    return sg.Scene(sg.Group(blob=blob), background=[0.2, 0.5, 0.7], integrator=ONE_LEVEL)


def all_of(image):
    return np.concatenate([image.rgb, image.alpha[..., None], image.depth[..., None]], axis=-1)


def rays_of(camera):
    rows, columns = jnp.divmod(jnp.arange(camera.width * camera.height), camera.width)
    return jax.vmap(camera.ray)(jnp.stack([columns, rows], axis=-1) + 0.5)


# --- One picture


def test_shapes_and_ranges():
    image = sg.render(scene(), camera())
    assert image.rgb.shape == (3, 5, 3)
    assert image.alpha.shape == image.depth.shape == (3, 5)
    assert np.all((image.alpha >= 0) & (image.alpha <= 1)) and np.ptp(image.alpha) > 0.1


@pytest.mark.slow
def test_compiled_and_eager():
    compiled = sg.render(scene(), camera(2, 1), ONE_LEVEL)
    with jax.disable_jit():
        eager = sg.render(scene(), camera(2, 1), ONE_LEVEL)
    assert_close(all_of(compiled), all_of(eager), 1e-6)


@pytest.mark.slow
def test_it_is_its_rays():
    """Row by row, y down; the last level, over the background; keys by the pixel's index."""
    key = jax.random.key(3)
    image = sg.render(scene(), camera(), FEW, key=key)
    levels = render_rays(scene(), rays_of(camera()), FEW, key=key)
    assert [level.weights.shape for level in levels] == [(15, 6), (15, 8)]
    assert [level.edges.shape for level in levels] == [(15, 7), (15, 9)]
    assert_close(image.rgb.reshape(-1, 3), levels[-1].rgb, 1e-6)
    assert_close(image.alpha.reshape(-1), levels[-1].alpha, 1e-6)
    assert_close(image.depth.reshape(-1), levels[-1].depth, 1e-6)


def test_a_background_of_ones_own_for_every_ray():
    rays, black = rays_of(camera()), jnp.zeros((15, 3))
    mine = jnp.linspace(0, 1, 45).reshape(15, 3)
    over, bare = (render_rays(scene(), rays, background=b)[-1] for b in (mine, black))
    assert_close(over.rgb, bare.rgb + (1 - bare.alpha[:, None]) * mine, 1e-6)
    assert_close(over.alpha, bare.alpha, 0)


@pytest.mark.parametrize("key", [None, jax.random.key(3)])
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_the_chunk_does_not_matter(key, chunk):
    expected = sg.render(scene(), camera(), key=key)
    actual = sg.render(scene(), camera(), key=key, chunk=chunk)
    assert_close(all_of(actual), all_of(expected), 1e-6)


def test_the_integrator_of_the_call_goes_before_that_of_the_scene():
    other = sg.Hierarchical((3,))
    actual = sg.render(scene(), camera(), other)
    carried = eqx.tree_at(lambda s: s.integrator, scene(), other)
    assert np.array_equal(all_of(actual), all_of(sg.render(carried, camera())))
    assert not np.array_equal(all_of(actual), all_of(sg.render(scene(), camera())))


# --- Randomness


@pytest.mark.slow
def test_every_ray_has_its_own_jitter():
    """Parallel rays through fog: without jitter all their edges are the same."""
    fog = sg.Scene(sg.Group(fog=sg.Volume(ConstantFog(0.5, [1, 0, 0]), None)), integrator=FEW)
    view = sg.OrthographicCamera.look_at([0, -3, 0], [0, 0, 0], [0, 0, 1], 2.0, 4, 2)
    same = render_rays(fog, rays_of(view))
    jittered = render_rays(fog, rays_of(view), key=jax.random.key(0))
    for level, plain in zip(jittered, same, strict=True):
        assert len(np.unique(np.round(plain.edges, 3), axis=0)) == 1
        assert len(np.unique(np.round(level.edges, 3), axis=0)) == 8
        assert np.all(np.diff(level.edges) >= 0)


def test_a_key_repeats_and_another_differs():
    a, b, c = (sg.render(scene(), camera(), key=jax.random.key(i)).rgb for i in (0, 0, 1))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert_close(a, sg.render(scene(), camera()).rgb, 0, 0.2)


# --- Compilation


class Count(AbstractFilter):
    """Does nothing, and remembers how often it was traced."""

    traces: ClassVar[list[int]] = []

    def __call__(self, image):
        self.traces.append(image.width)
        return image


@pytest.mark.slow
def test_cameras_and_scenes_of_one_size_compile_once():
    """Pictures as an optimiser or a turntable makes them; then one of a new size."""
    for index in range(3):
        view = camera(7, 2, eye=[2.0, -1.5 + index, 1.0])
        sg.render(scene(1.0 + index), view, ONE_LEVEL, filters=(Count(),))
    sg.render(scene(), camera(2, 7), ONE_LEVEL, filters=(Count(),))
    assert Count.traces == [7, 2]


@pytest.mark.slow
def test_frozen_parts_look_the_same():
    """Whole nodes, single leaves, and the camera; also where the integrator is to be chosen."""
    plain = sg.Scene(sg.Group(cam=camera(2, 2), **scene().root.children))
    children = {name: Frozen(child) for name, child in plain.root.children.items()}
    expected = sg.render(plain, "cam")
    for frozen in (sg.Scene(sg.Group(**children)), sg.freeze(plain), sg.Scene(Frozen(plain.root))):
        assert_close(sg.render(frozen, "cam").rgb, expected.rgb, 1e-6)


# --- Filters


def test_inverting():
    plain, negative, twice = (
        sg.render(scene(), camera(), filters=(sg.Invert(),) * count) for count in range(3)
    )
    assert_close(negative.rgb, 1 - plain.rgb, 1e-6)
    assert np.array_equal(negative.alpha, plain.alpha)
    assert np.array_equal(negative.depth, plain.depth)
    assert_close(twice.rgb, plain.rgb, 1e-6)


# --- Errors


@pytest.mark.parametrize("chunk", [0, -3, 2.5])
def test_a_chunk_is_a_positive_number(chunk):
    with pytest.raises((ValueError, TypeError), match="chunk"):
        sg.render(scene(), camera(), chunk=chunk)


def test_an_unknown_camera_lists_those_known():
    cameras = sg.Group(left=camera(), rig=sg.Transformed(sg.Group(right=camera()), sg.Similarity()))
    with pytest.raises(ValueError, match=r"no camera at 'middle'.*left, rig\.right"):
        sg.render(sg.Scene(cameras), "middle")
    with pytest.raises(ValueError, match="cameras in the scene: none"):
        sg.render(scene(), "cam")


# --- Scenes and cameras as values of functions


@pytest.mark.slow
def test_scenes_built_inside_a_differentiated_function(x64):
    def make(radius):
        blob = GaussianBlob(center=[0, 0, 0], radius=radius, extinction=2, rgb=[1, 0.5, 0.2])
        thing = sg.Volume(blob, sg.Box([-1, -1, -radius], [1, 1, 1]))
        return sg.Scene(sg.Group(thing=thing), background=[0, 0, radius], integrator=ONE_LEVEL)

    view = camera(2, 2)
    loss = jax.jit(lambda r: jnp.sum(sg.render(make(r), view).rgb ** 2))
    slope = (loss(0.5 + 1e-6) - loss(0.5 - 1e-6)) / 2e-6
    assert_close(jax.jit(jax.grad(lambda r: loss(r)))(0.5), slope, 1e-6)


@pytest.mark.slow
def test_cameras_built_inside_a_differentiated_function(x64):
    def loss(fov):
        view = sg.PerspectiveCamera.look_at([2, -1, 1], [0, 0, 0], [0, 0, 1], fov, 2, 2)
        return jnp.sum(sg.render(scene(), view, ONE_LEVEL).rgb ** 2)

    value = jax.jit(loss)
    slope = (value(0.7 + 1e-6) - value(0.7 - 1e-6)) / 2e-6
    assert_close(jax.jit(jax.grad(loss))(0.7), slope, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eye", "target", "up"])
def test_places_of_cameras_built_inside_a_differentiated_function(x64, name):
    """A pose's base is frozen, but not what it was computed from."""
    where = {"eye": [2.0, -1.5, 1.0], "target": [0.1, 0.0, -0.1], "up": [0.1, 0.2, 1.0]}
    way = jnp.array([0.3, -0.5, 0.4])

    def loss(shift):
        moved = {**where, name: jnp.array(where[name]) + shift * way}
        view = sg.PerspectiveCamera.look_at(**moved, fov_x=0.7, width=3, height=2)
        return jnp.sum(sg.render(scene(), view, ONE_LEVEL).rgb ** 2)

    value = jax.jit(loss)
    slope = (value(1e-5) - value(-1e-5)) / 2e-5
    assert abs(slope) > 1e-4
    assert_close(jax.jit(jax.grad(loss))(0.0), slope, 1e-6)


def test_a_stack_of_scenes():
    many = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(scene, (0.5, 2.0, 8.0)))
    together = eqx.filter_vmap(lambda s: sg.render(s, camera()).rgb)(many)
    one_by_one = np.stack([sg.render(scene(x), camera()).rgb for x in (0.5, 2.0, 8.0)])
    assert_close(together, one_by_one, 1e-6)
    assert np.ptp(one_by_one, axis=0).max() > 0.1


def test_a_stack_of_cameras():
    views = [camera(eye=[2.0, -1.5, z]) for z in (0.0, 1.0)]
    many = jax.tree.map(lambda *leaves: jnp.stack(leaves), *views)
    together = eqx.filter_vmap(lambda c: sg.render(scene(), c).rgb)(many)
    assert_close(together, np.stack([sg.render(scene(), c).rgb for c in views]), 1e-6)


@pytest.mark.slow
def test_large_chunks_are_as_good_as_small_ones():
    """Tens of thousands of samples at once, in a loop: some compilers lost a part of them."""
    turn = sg.Similarity([0.1, 0.2, 0.0], [1.0, 0.2, 0.1, 0.0], 1.3)
    moved = sg.Scene(sg.Group(cloud=sg.Transformed(scene().root, turn)), background=[1, 1, 1])
    levels, view = sg.Hierarchical((32, 32)), camera(48, 48)
    expected = sg.render(moved, view, levels, chunk=48)
    for chunk in (512, 1000, 2048):
        assert_close(all_of(sg.render(moved, view, levels, chunk=chunk)), all_of(expected), 1e-5)


# --- Memory


@pytest.mark.slow
@pytest.mark.parametrize("differentiate", [False, True])
def test_memory_does_not_grow_with_the_picture(differentiate):
    """Four chunks or sixty-four: what is set aside beyond the pixels themselves is the same."""

    def needed(size):
        def brightness(scene):
            return jnp.sum(sg.render(scene, camera(size, size), FEW, chunk=64).rgb)

        function = eqx.filter_grad(brightness) if differentiate else brightness
        compiled = eqx.filter_jit(function).lower(scene()).compile()
        return compiled.compiled.memory_analysis().temp_size_in_bytes

    # Colour, opacity and depth of every pixel, once more for what flows back, and their indices.
    assert needed(64) - needed(16) < (64**2 - 16**2) * 4 * (5 + 5 + 1) * 1.5


def test_rays_that_miss_a_mesh_see_what_is_beside_it():
    """Many rays of a block meet no face: each has what it saw before, and no shadow."""
    corners = [[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]
    cards = (
        sg.TriangleMesh(corners, [[0, 1, 2], [0, 2, 3]], smooth=False),
        sg.Rectangle([0.0, 0, 0], [2.0, 2.0]),
    )
    floor = sg.Surface(sg.Rectangle([0.0, 0, -1], [6.0, 6.0]), sg.Lambert([0.8] * 3))
    lamp = sg.DirectionalLight([0.3, 0.0, -1.0], [3.0] * 3)
    camera = sg.PerspectiveCamera.look_at([0.0, -4, 4], [0.0, 0, 0], [0.0, 0, 1], 0.8, 24, 24)
    mesh, rectangle = (
        sg.render(
            sg.Scene(sg.Group(card=sg.Surface(card, [1.0, 0, 0]), floor=floor, lamp=lamp)), camera
        )
        for card in cards
    )
    np.testing.assert_allclose(mesh.rgb, rectangle.rgb, atol=0.02)
    whole = (rectangle.alpha == 1) & (mesh.alpha == 1)
    assert whole.sum() > 300
    np.testing.assert_allclose(mesh.depth[whole], rectangle.depth[whole], rtol=0.1)
