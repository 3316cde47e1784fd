"""Many volumes: what blocks of samples ask equals asking everything, everywhere."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.encodings import Grid
from scenegraph.fields import ConstantFog, GaussianBlob, GridField
from scenegraph.integrators import _media
from scenegraph.scene import Occupancy
from support.helpers import assert_close


EYE = sg.PerspectiveCamera.look_at(
    [0.4, -6, 2.5], [0, 0, 0], [0, 0, 1], 0.7, 14, 11, near=1.0, far=12.0
)


def blobs(count, seed=0):
    """Blobs in boxes of their own, some in nested scaled frames."""
    draw = np.random.default_rng(seed)
    things = {}
    for i in range(count):
        at, r = draw.uniform(-1.5, 1.5, 3), draw.uniform(0.2, 0.6)
        blob = GaussianBlob(at, r / 2, draw.uniform(2, 9), draw.uniform(0.1, 0.9, 3))
        things[f"blob{i}"] = sg.Volume(blob, sg.Box(at - r, at + r))
    moved = {
        k: sg.Transformed(v, sg.Similarity([0.2, 0, 0.1], scale=1.3)) for k, v in things.items()
    }
    squeezed = sg.Affine([[1.2, 0.2, 0], [0, 0.6, 0.1], [0, 0, 0.9]], [0.0, 0.3, 0.1])
    return {"flat": sg.Group(**things), "deep": sg.Transformed(sg.Group(**moved), squeezed)}


def fitted(count):
    """Copies of one field of many numbers, with an occupancy."""
    grid = Grid((3, 7), 2, 2**8, key=jax.random.key(1))
    grid = eqx.tree_at(lambda g: g.table, grid, 10 * grid.table)
    field = GridField(grid, 8, 4, density_bias=0.3, key=jax.random.key(2))
    places = jnp.asarray(np.random.default_rng(3).uniform(-1.5, 1.5, (count, 3)))
    volume = sg.Volume(field, sg.Box([-0.5] * 3, [0.5] * 3), occupancy=Occupancy.everywhere(4))
    return sg.Instances(volume, jax.vmap(lambda at: sg.Similarity(at, scale=0.7))(places))


def mixed():
    """Many of two kinds, fog in all of space, a ball and a lamp."""
    fog = sg.Volume(ConstantFog(0.05, [0.5, 0.6, 0.7]), None)
    ball = sg.Surface(sg.Sphere([0.3, 0.2, 0.0], 0.6), sg.Lambert([0.2, 0.7, 0.3]))
    lamp = sg.PointLight([2.0, -3.0, 4.0], [30.0] * 3)
    return sg.Group(**blobs(4), copies=fitted(6), fog=fog, ball=ball, lamp=lamp)


SCENES = {
    "blobs": lambda: sg.Group(**blobs(6)),
    "copies": lambda: sg.Group(copies=fitted(9)),
    "mixed": mixed,
}
INTEGRATORS = {
    "hierarchical": sg.Hierarchical((18, 10)),
    "proposals": sg.Hierarchical((16, 8), proposals=True),
    "march": sg.integrators.OccupancyMarch(24, 24),
}


@pytest.mark.slow
def test_pictures_are_those_of_asking_everything(monkeypatch):
    scene = sg.Scene(SCENES["blobs"](), integrator=INTEGRATORS["hierarchical"])

    def draw():
        jax.clear_caches()
        image = sg.render(scene, EYE, key=jax.random.key(0))
        return image.rgb, image.depth

    listed = draw()
    monkeypatch.setattr(_media, "_FEW", 10**9)
    assert float(jnp.max(listed[0])) > 0.1
    for found, truth in zip(listed, draw(), strict=True):
        assert_close(found, truth, 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_pictures_and_gradients_are_those_of_asking_everything(integrator, scene, monkeypatch):
    scene = sg.Scene(SCENES[scene](), integrator=INTEGRATORS[integrator])

    def loss(scene):
        image = sg.render(scene, EYE, key=jax.random.key(0), outputs=["normal"])
        return jnp.mean(image.rgb**2), (image.rgb, image.normal, image.depth)

    def both():
        jax.clear_caches()
        return eqx.filter_value_and_grad(loss, has_aux=True)(scene)

    (_, listed), slopes = both()
    monkeypatch.setattr(_media, "_FEW", 10**9)
    (_, everything), expected = both()
    assert float(jnp.max(listed[0])) > 0.1
    for found, truth in zip(listed, everything, strict=True):
        assert_close(found, truth, 2e-5)
    for found, truth in zip(jax.tree.leaves(slopes), jax.tree.leaves(expected), strict=True):
        assert_close(found, truth, 1e-4, 1e-7)


def test_a_batch_of_scenes_has_the_gradients_of_each(x64):
    # In single precision, a batch is summed in another order.
    as_double = lambda x: x.astype(float) if eqx.is_inexact_array(x) else x
    scene, eye = sg.Scene(sg.Group(**blobs(4)), integrator=sg.Hierarchical((16,))), EYE
    scene, eye = jax.tree.map(as_double, (scene, eye))

    def loss(shift):
        moved = sg.Scene(
            sg.Transformed(scene.root, sg.Similarity(shift)), integrator=scene.integrator
        )
        return jnp.mean(sg.render(moved, eye).rgb ** 2)

    shifts = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)) * 0.2)
    together = jax.jit(jax.grad(lambda x: jnp.sum(jax.vmap(loss)(x))))(shifts)
    one = jax.jit(jax.grad(loss))
    alone = np.stack([one(x) for x in shifts])
    assert_close(together, alone, 1e-12)


def test_only_volumes_that_are_met_are_asked():
    """A volume that no ray meets may be anything, without a trace."""

    @jax.jit
    def draw(extinction):
        blob = GaussianBlob([50.0, 0, 0], 0.1, extinction, [0.5, 0.5, 0.5])
        away = sg.Volume(blob, sg.Box([49, -1, -1], [51, 1, 1]))
        scene = sg.Scene(sg.Group(**blobs(6), away=away), integrator=sg.Hierarchical((16,)))
        return sg.render(scene, EYE).rgb

    image = draw(jnp.asarray(jnp.nan))
    assert jnp.max(image) > 0.1
    assert_close(image, draw(jnp.asarray(1.0)), 0)


def test_no_rays_and_no_volumes():
    rays = jax.jit(jax.vmap(EYE.ray))(jnp.ones((0, 2)))
    scene = sg.Scene(sg.Group(**blobs(3)), integrator=sg.Hierarchical((16,)))
    assert sg.render_rays(scene, rays)[-1].rgb.shape == (0, 3)
