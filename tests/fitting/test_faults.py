"""Numbers that are not finite: in one leaf, one ray, one picture."""

import dataclasses
import functools
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.fitting import Every, FitError, JsonLines, RenderLoss, split_by_purpose
from scenegraph.losses import MultiLevelLoss
from scenegraph.runs import Checkpoints
from scenegraph.scene import named_leaves
from support.toy_fits import cloud, cloud_views


KEY = jax.random.key(0)
START = cloud(rgb=(0.5, 0.5, 0.5))
RULE = optax.adam(0.02)
BAD = 4


def fit_cloud(steps, batches=None, loss=None, **settings):
    return sg.fit(
        START,
        batches or RayBatches(cloud_views(), 32),
        optimizer=RULE,
        loss=loss or RenderLoss(),
        steps=steps,
        key=KEY,
        **settings,
    )


def leaves(scene):
    return {path: np.asarray(leaf) for path, leaf, _ in named_leaves(scene)}


def all_finite(state):
    return all(np.isfinite(x).all() for x in leaves(state.model).values())


class Numbered(eqx.Module):
    """Batches that know the number of their step."""

    batches: RayBatches

    def batch(self, seed, step):
        return self.batches.batch(seed, step), step


class SpoiltLeaf(eqx.Module):
    """The gradient of one leaf is not a number at some steps; the loss is what it was."""

    first: int = eqx.field(static=True)
    last: int = eqx.field(static=True)
    loss: RenderLoss = RenderLoss(MultiLevelLoss())

    def __call__(self, scene, terms, batch, key):
        batch, step = batch
        value, terms = self.loss(scene, terms, batch, key)
        radius = scene.root.children["blob"].field.radius
        bad = (self.first <= step) & (step <= self.last)
        nothing = jnp.where(bad, radius - jax.lax.stop_gradient(radius), 1.0)
        return value + 0.0 * jnp.sqrt(nothing), terms


@functools.cache
def numbered() -> Numbered:
    return Numbered(RayBatches(cloud_views(), 32))


# --- One leaf


@pytest.mark.slow
def test_a_leaf_whose_gradient_is_no_number_at_one_step(tmp_path):
    """That step changes nothing, and is counted; the loss was fine."""
    log = JsonLines(tmp_path / "log", every=1)
    seen = []
    see = Every(1, lambda progress: seen.append(progress.info.finite.tolist()))
    result = fit_cloud(6, numbered(), SpoiltLeaf(2, 2), callbacks=[log, see])
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["skipped"] for line in lines] == [0, 0, 1, 1, 1, 1]
    assert all(np.isfinite(line["loss"]) for line in lines) and all_finite(result.state)
    paths = [path for path in leaves(START)]
    bad = [[path for path, ok in zip(paths, step, strict=True) if not ok] for step in seen]
    assert bad == [[], [], ["blob.field.radius"], [], [], []]
    two, three = (fit_cloud(n, numbered(), SpoiltLeaf(2, 2)).scene for n in (2, 3))
    for path, leaf in leaves(two).items():
        np.testing.assert_array_equal(leaves(three)[path], leaf, err_msg=path)
    assert not np.array_equal(*(leaves(x)["blob.field.radius"] for x in (result.scene, two)))


def test_a_leaf_whose_gradient_is_never_a_number_is_named(tmp_path):
    told = "10 in a row have failed, and the gradient of blob.field.radius is not finite"
    with pytest.raises(FitError, match=told) as caught:
        fit_cloud(50, numbered(), SpoiltLeaf(2, 99))
    last = caught.value.state
    assert int(last.step) in (12, 13)  # one more is under way by then
    assert all_finite(last) and int(last.failures) >= 10
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(last)
    good = leaves(fit_cloud(2, numbered(), SpoiltLeaf(2, 99)).scene)
    for path, leaf in leaves(checkpoints.restore(last).model).items():
        np.testing.assert_array_equal(leaf, good[path], err_msg=path)


# --- One ray


class SpoiltRay(eqx.Module):
    """One ray of one batch begins nowhere."""

    batches: RayBatches

    def batch(self, seed, step):
        batch = self.batches.batch(seed, step)
        origin = batch.rays.origin
        spoilt = origin.at[7, 1].set(jnp.where(step == BAD, jnp.nan, origin[7, 1]))
        return eqx.tree_at(lambda b: b.rays.origin, batch, spoilt)


@pytest.mark.slow
def test_one_ray_that_is_no_number_costs_one_step():
    result = fit_cloud(8, SpoiltRay(RayBatches(cloud_views(), 32)))
    assert int(result.state.skipped) == 1 and int(result.state.failures) == 0
    assert int(result.state.step) == 8 and all_finite(result.state)
    losses = np.asarray(result.history.loss)
    assert np.flatnonzero(~np.isfinite(losses)).tolist() == [BAD]
    before = fit_cloud(BAD)
    after = fit_cloud(BAD + 1, SpoiltRay(RayBatches(cloud_views(), 32)))
    for path, leaf in leaves(before.scene).items():
        np.testing.assert_array_equal(leaves(after.scene)[path], leaf, err_msg=path)


# --- One picture


def two_views(bad):
    """The cloud's picture twice; of the second, so many pixels are not numbers."""
    views = cloud_views()
    spoilt = views.pixels.at[:bad].set(jnp.nan)
    cameras = jax.tree.map(lambda x: jnp.concatenate([x, x]), views.cameras)
    twice = [jnp.concatenate([x, x]) for x in (views.widths, views.heights, views.lossmult)]
    return dataclasses.replace(
        views,
        pixels=jnp.concatenate([views.pixels, spoilt]),
        cameras=cameras,
        widths=twice[0],
        heights=twice[1],
        lossmult=twice[2],
        names=("good", "bad"),
    )


@pytest.mark.slow
def test_a_picture_with_a_bad_pixel_costs_the_steps_that_meet_it():
    batches = RayBatches(two_views(1), 32)
    seed = split_by_purpose(KEY).seed()
    met = [not np.isfinite(batches.batch(seed, step).rgb).all() for step in range(20)]
    assert 0 < sum(met) < 10
    result = fit_cloud(20, batches)
    assert int(result.state.skipped) == sum(met) and all_finite(result.state)
    assert (~np.isfinite(np.asarray(result.history.loss))).tolist() == met


@pytest.mark.slow
def test_a_picture_that_is_all_bad_ends_the_fit_with_the_last_good_state():
    with pytest.raises(FitError, match="the loss is nan after 1[01] steps, 10 in a row") as caught:
        fit_cloud(50, RayBatches(two_views(64), 32))
    for path, leaf in leaves(START).items():
        np.testing.assert_array_equal(leaves(caught.value.state.model)[path], leaf, err_msg=path)
