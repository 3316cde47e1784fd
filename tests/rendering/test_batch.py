"""Pictures of many worlds, beside pictures of each; their gradients, and bad input."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from support.helpers import assert_close


PLACE = [0.0, -4.0, 1.6], [0.0, 0.0, 0.3], [0.0, 0.0, 1.0]
CAMERA = sg.PerspectiveCamera.look_at(*PLACE, 0.7, 12, 10)
STATES = jnp.asarray(np.random.default_rng(0).uniform(-0.5, 0.5, (5, 3)), jnp.float32)


def world(state):
    """A ball and a rod over a floor, with shadows."""
    middle = jnp.asarray([0.0, 0.0, 0.5]) + 0.4 * state
    ball = sg.Surface(sg.Sphere(middle, 0.3), sg.Lambert([0.8, 0.4, 0.3]))
    rod = sg.Surface(sg.Capsule(middle, [0.5, 0.2, 0.3], 0.1), sg.Lambert([0.3, 0.5, 0.8]))
    floor = sg.Surface(sg.Plane(), sg.Lambert(sg.Checker(0.4)))
    sun = sg.DirectionalLight([0.3, 0.4, -1.0], [2.0, 2.0, 2.0])
    eye = sg.PerspectiveCamera.look_at(*PLACE, 0.7, 12, 10)
    return sg.Scene(sg.Group(ball=ball, rod=rod, floor=floor, sun=sun, eye=eye))


SCENES = jax.vmap(world)(STATES)
SINGLE = [world(state) for state in STATES]


def each(scenes=SINGLE, camera=CAMERA, **more):
    """Pictures of worlds one by one, stacked."""
    pictures = [sg.render(scene, camera, **more) for scene in scenes]
    return jax.tree.map(lambda *xs: np.stack(xs), *pictures)


def assert_alike(batch, single):
    assert jax.tree.structure(batch) == jax.tree.structure(single)
    for one, other in zip(jax.tree.leaves(batch), jax.tree.leaves(single), strict=True):
        assert_close(one, other, 1e-4)


@pytest.mark.parametrize("chunk", ["auto", 1, 2, 5, 7])
def test_it_is_the_loop(chunk):
    """Chunks that divide the worlds, and others, and one larger than all."""
    batch = sg.render_batch(SCENES, CAMERA, chunk=chunk, outputs=("normal", "surface"))
    assert batch.rgb.shape == (5, 10, 12, 3)
    assert (batch.height, batch.width) == (10, 12)
    assert_alike(batch, each(outputs=("normal", "surface")))


def test_what_is_given():
    """Lists, a path, a camera for every world, and many cameras of one scene."""
    expected = each()
    assert_alike(sg.render_batch(SINGLE, CAMERA), expected)
    assert_alike(sg.render_batch(SCENES, "eye"), expected)
    assert_alike(sg.render_batch(SCENES, [CAMERA] * 5), expected)
    cameras = sg.cameras.orbit(CAMERA, [0.0, 0.0, 0.3], [0.0, 0.0, 1.0], 3)
    seen = sg.render_batch(SINGLE[0], cameras)
    alone = [sg.render(SINGLE[0], camera).rgb for camera in cameras]
    assert_close(seen.rgb, np.stack(alone), 1e-4)


@pytest.mark.parametrize("chunk", [1, 2])
def test_compiled_and_differentiated(chunk):
    """The gradient of a loss of all pictures, beside those of each."""
    weights = jnp.linspace(0.2, 1, 12)[:, None]

    def loss(states):
        pictures = sg.render_batch(jax.vmap(world)(states), CAMERA, chunk=chunk)
        return jnp.sum((pictures.rgb * weights) ** 2)

    def loss_of_one(state):
        return jnp.sum((sg.render(world(state), CAMERA).rgb * weights) ** 2)

    value, slope = jax.jit(jax.value_and_grad(loss))(STATES)
    one = jax.jit(jax.value_and_grad(loss_of_one))
    values, slopes = zip(*map(one, STATES), strict=True)
    assert_close(value, sum(values), 1e-4)
    assert_close(slope, np.stack(slopes), 1e-3)


def test_vmap_has_the_same_gradients():
    """`jax.vmap` of `render`, differentiated outside and inside."""

    def loss(state):
        return jnp.sum(sg.render(world(state), CAMERA).rgb[..., 0] ** 2)

    one = jax.jit(jax.grad(loss))
    expected = np.stack([one(state) for state in STATES[:3]])
    total = lambda states: jnp.sum(jax.vmap(loss)(states))
    assert_close(jax.jit(jax.grad(total))(STATES[:3]), expected, 1e-3)
    assert_close(jax.jit(jax.vmap(jax.grad(loss)))(STATES[:3]), expected, 1e-3)


@pytest.mark.parametrize("chunk", [1, 3])
def test_worlds_that_are_not_finite_harm_no_others(chunk):
    states = STATES.at[1].set(jnp.nan).at[3, 0].set(jnp.inf)
    scenes = jax.vmap(world)(states)
    with pytest.warns(UserWarning, match=r"2 of 5 worlds .*'ball\.shape\.center'.*: 1, 3\."):
        batch = sg.render_batch(scenes, CAMERA, chunk=chunk)
    good = np.array([0, 2, 4])
    assert_close(batch.rgb[good], each().rgb[good], 1e-4)

    def loss(states):
        pictures = sg.render_batch(jax.vmap(world)(states), CAMERA, chunk=chunk)
        return jnp.sum(pictures.rgb[good] ** 2)

    slope, wanted = (jax.jit(jax.grad(loss))(x)[good] for x in (states, STATES))
    assert np.all(np.isfinite(slope))
    assert_close(slope, wanted, 1e-3)


def test_memory_of_a_loss_does_not_grow_with_worlds():
    """What the program needs beside its operands, as XLA says, for 4 worlds and for 32."""

    def loss(states):
        return jnp.sum(sg.render_batch(jax.vmap(world)(states), CAMERA, chunk=1).rgb ** 2)

    def needed(worlds):
        compiled = jax.jit(jax.grad(loss)).lower(jnp.zeros((worlds, 3))).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    few, many = needed(4), needed(32)
    pictures = 32 * 12 * 10 * 16 * 4  # all the pictures' numbers, in bytes
    assert many - few < 3 * pictures


def test_keys_differ_by_world_and_filters_are_applied():
    cloud = sg.Volume(sg.fields.GaussianBlob([0.0] * 3, 0.5, 3.0, [0.9, 0.5, 0.2]))
    scene = sg.Scene(sg.Group(cloud=cloud), integrator=sg.Hierarchical((6,)))
    scenes, key = [scene] * 3, jax.random.key(3)
    seen = sg.render_batch(scenes, CAMERA, key=key, filters=sg.Exposure(1.0))
    keys = [jax.random.fold_in(key, i) for i in range(3)]
    alone = [sg.render(scene, CAMERA, key=k, filters=sg.Exposure(1.0)).rgb for k in keys]
    assert_close(seen.rgb, np.stack(alone), 1e-4)
    assert np.max(np.abs(alone[0] - alone[1])) > 1e-3


def test_scenes_that_overflow_are_drawn_with_more_layers():
    """Twenty thin discs behind each other, more than the layers of a first picture."""

    def tower(shift):
        parts = {
            f"d{i}": sg.Surface(sg.Disk([0.1 * i, 0.0, 0.05 * i + shift], 0.5), [0.5] * 3, 0.2)
            for i in range(20)
        }
        return sg.Scene(sg.Group(**parts))

    camera = sg.PerspectiveCamera.look_at([0.5, 0.1, 5], [0.5, 0, 0], [0, 1, 0], 0.5, 6, 6)
    scenes = [tower(0.0), tower(0.01)]
    batch = sg.render_batch(scenes, camera)
    assert int(jnp.sum(batch.overflow)) == 0
    assert_close(batch.rgb, each(scenes, camera).rgb, 1e-4)


# --- Bad input


def test_no_worlds():
    for scenes in ([], jax.tree.map(lambda x: x[:0], SCENES)):
        with pytest.raises(ValueError, match="no world"):
            sg.render_batch(scenes, CAMERA)


def moved(scene, path, value):
    return eqx.tree_at(path, scene, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: moved(s, lambda x: x["ball"].shape, sg.Box()), r"'ball\.shape'.*Box.*Sphere"),
        (
            lambda s: sg.Scene(
                sg.Group(**{k: v for k, v in s.root.children.items() if k != "rod"})
            ),
            r"'rod': it is not there",
        ),
        (
            lambda s: moved(s, lambda x: x["eye"], sg.PerspectiveCamera.look_at(*PLACE, 0.7, 6, 5)),
            r"'eye': .*settings",
        ),
        (
            lambda s: moved(s, lambda x: x["ball"].shape.center, jnp.zeros((2, 3))),
            r"'ball\.shape\.center': shape \(2, 3\) instead of \(3,\)",
        ),
    ],
)
def test_worlds_of_different_structure_are_refused(change, message):
    scenes = [*SINGLE[:2], change(SINGLE[2])]
    with pytest.raises(ValueError, match=rf"`scenes\[2\]` differs .*{message}"):
        sg.render_batch(scenes, CAMERA)


def test_unlike_numbers_of_worlds_are_refused():
    with pytest.raises(ValueError, match=r"5 worlds.*of `cameras` has 3 worlds"):
        sg.render_batch(SCENES, [CAMERA] * 3)
    with pytest.raises(ValueError, match="neither `scenes` nor `cameras`"):
        sg.render_batch(SINGLE[0], CAMERA)
    with pytest.raises(ValueError, match=re.escape("there is no camera at 'nose'")):
        sg.render_batch(SCENES, "nose")
    with pytest.raises(ValueError, match="`chunk` must be a positive integer"):
        sg.render_batch(SCENES, CAMERA, chunk=0)
