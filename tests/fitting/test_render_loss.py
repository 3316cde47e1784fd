"""`RenderLoss`, a few rays at a time."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scenegraph as sg
from scenegraph.data import Batch
from scenegraph.fitting import RenderLoss
from scenegraph.losses import AbstractLoss, AbstractRayLoss, LossTerms, MultiLevelLoss
from support.helpers import assert_close


CAMERA = sg.PerspectiveCamera.look_at([0, -4, 1], [0, 0, 0], [0, 0, 1], 0.7, 8, 8)
FIELD = sg.fields.MipNerfMLP(8, 2, view_width=4, key=jax.random.key(0))
SCENE = sg.Scene(
    sg.Group(thing=sg.Volume(FIELD)), background=[1.0, 1.0, 1.0], integrator=sg.Hierarchical((4, 4))
)


class Worst(AbstractLoss):
    """The largest error of any ray: not a mean over rays."""

    def __call__(self, levels, batch, scene):
        del scene
        errors = jnp.sum((levels[-1].rgb - batch.rgb) ** 2, axis=1)
        return jnp.max(errors), LossTerms(jnp.zeros(1), jnp.zeros(1))


class Absolute(AbstractRayLoss):
    def ray(self, levels, target):
        return jnp.stack([jnp.sum(jnp.abs(level.rgb - target)) for level in levels])

    def level_weights(self, count):
        return [1.0] * count


def batch(count=11):
    rng = np.random.default_rng(0)
    rays = jax.vmap(CAMERA.ray)(jnp.asarray(rng.uniform(1, 7, (count, 2)), jnp.float32))
    weights = rng.choice([0.0, 1.0, 4.0, 16.0], count)
    return Batch(rays, rng.uniform(size=(count, 3)), weights)


def both(loss, scene=SCENE, **options):
    def value(scene):
        return RenderLoss(loss, **options)(scene, None, batch(), jax.random.key(1))

    return eqx.filter_jit(eqx.filter_value_and_grad(value, has_aux=True))(scene)


CASES = [
    (MultiLevelLoss(), 1),
    (MultiLevelLoss(0.3, sum_channels=True), 4),
    (Absolute(), 4),
]


@pytest.mark.slow
@pytest.mark.parametrize("loss, chunk", CASES)
def test_chunks_change_nothing(loss, chunk):
    """Jitter goes by the ray's number, the weights by the whole batch."""
    (value, terms), slope = both(loss, chunk=chunk, weight_decay=0.1)
    (expected, whole), expected_slope = both(loss, chunk=None, weight_decay=0.1)
    assert_close(value, expected)
    jax.tree.map(assert_close, terms, whole)
    jax.tree.map(lambda a, b: assert_close(a, b, 1e-5, 1e-6), slope, expected_slope)


@pytest.mark.slow
def test_a_block_without_weight():
    """All its rays count nothing; the rest is unharmed."""
    nothing = dataclasses.replace(batch(), lossmult=jnp.zeros(11).at[9].set(2.0))
    loss = RenderLoss(chunk=3, jitter=False)
    value, _ = loss(SCENE, None, nothing, jax.random.key(0))
    level = sg.render_rays(SCENE, nothing.rays)
    errors = [jnp.mean((one.rgb[9] - nothing.rgb[9]) ** 2) for one in level]
    assert_close(value, errors[1] + 0.1 * errors[0])


@pytest.mark.slow
def test_other_losses_see_the_whole_batch():
    (value, _), _ = both(Worst(), chunk=2, jitter=False)
    rgb = sg.render_rays(SCENE, batch().rays)[-1].rgb
    assert_close(value, jnp.max(jnp.sum((rgb - batch().rgb) ** 2, axis=1)))


@pytest.mark.slow
def test_gradients_reach_the_rays():
    """The camera may be what is fitted."""

    def value(distance, chunk):
        moved = dataclasses.replace(batch().rays, origin=batch().rays.origin * distance)
        data = dataclasses.replace(batch(), rays=moved)
        loss = RenderLoss(chunk=chunk, jitter=False)
        return loss(SCENE, None, data, jax.random.key(0))[0]

    slopes = [jax.jit(jax.grad(value), static_argnums=1)(1.0, chunk) for chunk in (3, None)]
    assert slopes[0] != 0
    assert_close(slopes[0], slopes[1])


@pytest.mark.parametrize("chunk", [0, -2, 1.5, "all"])
def test_chunk_that_makes_no_sense(chunk):
    with pytest.raises(Exception, match="chunk"):
        RenderLoss(chunk=chunk)(SCENE, None, batch(), jax.random.key(0))
