"""Fits of fields that are empty in places: their samples share room, and it is looked at again."""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import Batch, RayBatches
from scenegraph.encodings import Grid
from scenegraph.fields import GridField
from scenegraph.fitting import _loss, Deadline, RenderLoss, split_by_purpose, start_state
from scenegraph.fitting._budget import (
    is_worth_compiling,
    needs_refresh,
    OccupancyRefresh,
    shares_budget,
    with_first_budget,
    with_next_budget,
)
from scenegraph.fitting._flat import flatten
from scenegraph.integrators import OccupancyMarch
from scenegraph.losses import LossTerms
from scenegraph.rays import Ray
from scenegraph.runs import Checkpoints, load_state
from scenegraph.scene import Occupancy, refresh_occupancy
from support.helpers import assert_close, requested
from support.toy_fits import cloud, cloud_views, Line


KEY = jax.random.key(0)
CANDIDATES, RAYS = 16, 24
MARCH = OccupancyMarch(CANDIDATES, 4)
EVEN = RenderLoss(integrator=MARCH, jitter=False, chunk=None)


def half_empty(seed=0):
    """Rays ask for different numbers of samples."""
    empty = np.random.default_rng(seed).uniform(size=(4, 4, 4)) < 0.4
    return Occupancy.everywhere(4).without(jnp.asarray(empty))


def grid_scene(integrator=MARCH, occupancy=None):
    grid_key, key = jax.random.split(KEY)
    field = GridField(Grid((4, 8), 2, 2**8, key=grid_key), 8, 4, density_bias=-1.0, key=key)
    known = half_empty() if occupancy is None else occupancy
    volume = sg.Volume(field, sg.Box([-1.0] * 3, [1.0] * 3), occupancy=known)
    scene = sg.Scene(sg.Group(grid=volume), background=(1.0, 1.0, 1.0), integrator=integrator)
    return sg.freeze(scene, "background", "grid.bounds")


def batches(size=RAYS):
    return RayBatches(cloud_views(), size)


class MissFirst(eqx.Module):
    """At step 0 all rays but one look away from the volume, and need no samples."""

    views: RayBatches

    def batch(self, seed, step) -> Batch:
        batch = self.views.batch(seed, step)
        away = (jnp.arange(RAYS) > 0) & (step == 0)
        near = jnp.where(away, batch.rays.far, batch.rays.near)
        return eqx.tree_at(lambda b: b.rays.near, batch, near)


def without_room(scene, rays: Ray, budget: int) -> np.ndarray:
    """Which rays are left out: a naive count. One that asks for nothing needs no room."""
    asked = requested(MARCH, scene, rays)
    return (np.cumsum(asked) > budget * len(asked)) & (asked > 0)


def fit_grid(steps=6, data=None, **changes):
    settings = {"optimizer": optax.adam(0.01), "loss": EVEN, "steps": steps, "key": KEY}
    scene = changes.pop("scene", None) or grid_scene()
    return sg.fit(scene, data or MissFirst(batches()), **{**settings, **changes})


def occupancy_of(scene) -> np.ndarray:
    return np.asarray(sg.scene.thaw(scene).root.children["grid"].occupancy.thickness)


def bits(tree):
    leaves = [jax.random.key_data(x) if is_key(x) else x for x in jax.tree.leaves(tree)]
    return [(x.dtype, x.shape, np.asarray(x).tobytes()) for x in leaves]


def is_key(leaf):
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


# --- A batch that has too little room


@pytest.mark.slow
def test_rays_without_room_count_nowhere():
    """Value, terms and gradient are those of a batch without them."""
    scene, batch = grid_scene(), batches().batch(0, 0)
    gone = without_room(scene, batch.rays, 4)
    assert len(np.unique(requested(MARCH, scene, batch.rays))) > 5
    assert 2 < gone.sum() < RAYS - 2
    rest = jax.tree.map(lambda x: x[~gone], batch)
    loss = eqx.filter_jit(
        eqx.filter_value_and_grad(lambda *a: a[1](a[0], None, *a[2:]), has_aux=True)
    )
    (value, terms), slope = loss(scene, EVEN, batch, KEY)
    full = dataclasses.replace(EVEN, integrator=MARCH.with_budget(CANDIDATES))
    (expected, kept), expected_slope = loss(scene, full, rest, KEY)
    assert float(terms.left_out) == gone.sum() and float(kept.left_out) == 0
    assert_close(value, expected, 1e-5)
    assert_close(terms.mse, kept.mse, 1e-5)
    for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(expected_slope), strict=True):
        assert_close(a, b, 1e-5, 1e-8)
    assert np.any(slope.root.children["grid"].field.encoding.table)
    # With them, the value is another.
    (with_all, terms), _ = loss(scene, full, batch, KEY)
    assert float(terms.left_out) == 0 and abs(with_all - value) > 1e-4 * value
    assert_close(terms.requested, np.mean(requested(MARCH, scene, batch.rays)), 1e-6)


@pytest.mark.slow
def test_weights_of_rays_without_room_do_not_count_either():
    scene, batch = grid_scene(), batches().batch(0, 0)
    gone = without_room(scene, batch.rays, 4)
    value = eqx.filter_jit(lambda batch: EVEN(scene, None, batch, KEY)[0])
    weights = np.random.default_rng(0).uniform(0.5, 1.5, RAYS).astype(np.float32)
    heavy = np.where(gone, 100.0, weights).astype(np.float32)
    light, heavy = (dataclasses.replace(batch, lossmult=jnp.asarray(x)) for x in (weights, heavy))
    assert_close(value(heavy), value(light), 1e-6)


# --- A sum over rays, which takes as many lists as it needs


@pytest.mark.parametrize("longest", [pytest.param(2**7, marks=pytest.mark.slow), 2**9])
def test_no_ray_of_a_sum_over_rays_is_left_out(monkeypatch, longest):
    """Value, terms and gradient are those of the batch at once, with space for all samples."""
    monkeypatch.setattr(_loss, "_LIST", longest)
    scene, batch = grid_scene(), batches(150).batch(0, 0)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 150).astype(np.float32)
    batch = dataclasses.replace(batch, lossmult=jnp.asarray(weights))
    loss = eqx.filter_jit(
        eqx.filter_value_and_grad(lambda *a: a[1](a[0], None, *a[2:]), has_aux=True)
    )
    whole = RenderLoss(integrator=MARCH.with_budget(CANDIDATES), chunk=None)
    (value, terms), gradient = loss(scene, RenderLoss(), batch, KEY)
    (expected, others), expected_gradient = loss(scene, whole, batch, KEY)
    assert float(terms.left_out) == 0
    assert_close(value, expected, 1e-5)
    assert_close(terms.mse, others.mse, 1e-5)
    assert_close(terms.requested, others.requested, 1e-6)
    for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected_gradient), strict=True):
        assert_close(a, b, 1e-5, 1e-8)
    assert np.any(gradient.root.children["grid"].field.encoding.table)


# --- A fit that begins with too little room


@pytest.mark.slow
def test_fit_finds_the_room_that_it_needs():
    """Rays are left out once, counted exactly, until the next budget is there."""
    views = batches()
    first = with_first_budget(
        EVEN, start_state(grid_scene(), optax.sgd(0.1), key=KEY), MissFirst(views)
    )
    assert first.integrator.budget == 4
    result = fit_grid()
    left_out = np.asarray(result.history.extra.left_out)
    seed = split_by_purpose(KEY).seed()
    expected = [
        without_room(grid_scene(), MissFirst(views).batch(seed, step).rays, 4).sum()
        for step in range(6)
    ]
    assert expected[0] == 0 and min(expected[1:]) > 2
    # It is known after a step that it had too little room; the next one is under way by then.
    assert left_out.tolist() == [0, expected[1], expected[2], 0, 0, 0]


@pytest.mark.slow
def test_fit_begins_with_room_for_its_first_batch():
    state = start_state(grid_scene(), optax.sgd(0.1), key=KEY)
    loss = with_first_budget(EVEN, state, batches())
    first = batches().batch(state.keys.seed(), 0)
    asked = np.mean(requested(MARCH, state.model, first.rays))
    budget = loss.integrator.budget
    assert 4 < 1.15 * asked <= budget <= CANDIDATES
    assert not np.any(fit_grid(3, batches()).history.extra.left_out)


@pytest.mark.slow
def test_same_key_same_bits():
    """Also while the budget changes and the occupancy is refreshed."""
    one, other = (fit_grid(18, loss=RenderLoss(integrator=MARCH, chunk=None)) for _ in range(2))
    assert np.any(one.history.extra.left_out)
    assert bits(one.state) == bits(other.state)
    another = fit_grid(18, loss=RenderLoss(integrator=MARCH, chunk=None), key=jax.random.key(1))
    assert bits(one.state) != bits(another.state)


@pytest.mark.slow
def test_resumed_from_any_step_is_the_same_as_never_stopped(tmp_path):
    """The budget, which the fit has found by then, comes back with the state."""
    loss = RenderLoss(integrator=MARCH, chunk=None)
    with Checkpoints(tmp_path, 1, keep=99) as checkpoints:
        whole = fit_grid(18, loss=loss, callbacks=[checkpoints])
    rooms = []
    for step in (1, 2, 3, 4, 15, 16, 17):
        state = load_state(tmp_path / f"{step:08d}.sg", whole.state)
        rooms.append(int(state.budget))
        assert bits(fit_grid(18, loss=loss, state=state).state) == bits(whole.state)
    assert rooms[0] == 4 < rooms[-1] == int(whole.state.budget)
    # Had the state forgotten, the first batch would have decided anew.
    forgetful = dataclasses.replace(whole.state, budget=0)
    assert with_first_budget(loss, forgetful, MissFirst(batches())).integrator.budget == 4


@pytest.mark.slow
def test_scene_may_say_how_it_is_integrated():
    """The budget that the scene begins with is not the fit's; the scene keeps it."""
    result = fit_grid(4, loss=RenderLoss(jitter=False, chunk=None))
    assert np.any(result.history.extra.left_out) and not result.history.extra.left_out[-1]
    assert result.scene.integrator == MARCH


def test_grid_is_fitted():
    grid = fit_grid(
        80, batches(48), loss=RenderLoss(integrator=MARCH, chunk=None), optimizer=optax.adam(0.03)
    )
    assert grid.history.loss[-1] < 0.1 * grid.history.loss[0]


# --- When room is changed


def after(left_out, asked, step):
    """A state after a step that said this."""
    terms = LossTerms(jnp.zeros(1), jnp.zeros(1), left_out, asked)
    state = start_state(grid_scene(), optax.sgd(0.1), extra=terms, key=KEY)
    return dataclasses.replace(state, step=jnp.asarray(step))


def loss_with(budget):
    return RenderLoss(integrator=OccupancyMarch(100, budget), chunk=None)


def next_budget(loss, state):
    return with_next_budget(loss, state.extra, int(state.step), rays=2000)


@pytest.mark.parametrize("step", [1, 7, 256])
@pytest.mark.parametrize(
    "now, asked, budget",
    [(4, 4.1, 6), (4, 10.0, 14), (4, 70.0, 100), (4, 90.0, 100), (8, 7.9, 12), (8, 2.0, 12)],
)
def test_more_room_at_once(step, now, asked, budget):
    """Two fifths more than was asked for, or than there was, even if the mean would fit."""
    assert next_budget(loss_with(now), after(21, asked, step)).integrator.budget == budget


@pytest.mark.parametrize("step", [1, 256])
def test_a_hundredth_of_a_batch_may_be_left_out(step):
    """Whatever is compiled for the sake of so few rays, costs a fit more than they are worth."""
    loss = loss_with(20)
    assert next_budget(loss, after(20, 17.2, step)) is loss


@pytest.mark.parametrize(
    "now, asked, step, budget",
    [
        (48, 5.0, 255, 48),
        (48, 5.0, 256, 6),
        (48, 19.0, 512, 24),
        (48, 21.0, 512, 28),
        (32, 19.0, 512, 24),
        (28, 19.0, 512, 28),
        (48, 45.0, 256, 56),
        (48, 39.0, 256, 48),
        (48, 5.0, 0, 48),
    ],
)
def test_less_room_seldom(now, asked, step, budget):
    """At few steps, and only where eight tenths of it or less would do."""
    loss = loss_with(now)
    other = next_budget(loss, after(0, asked, step))
    assert other.integrator.budget == budget
    assert (other is loss) == (budget == now)


@pytest.mark.parametrize(
    ("now", "other", "left", "worth"),
    [
        # More room, in a fit that has twice its compilation left, or has not.
        (4, 6, 21.0, True),
        (4, 6, 19.0, False),
        # More layers, where samples share no budget.
        (0, 0, 21.0, True),
        (0, 0, 19.0, False),
        # Half the samples save 35 % of the time: 30 s save 10.5 s, more than 10 s of compiling.
        (8, 4, 30.0, True),
        (8, 4, 28.0, False),
    ],
)
def test_other_budgets_are_compiled_if_the_time_left_is_worth_it(now, other, left, worth):
    assert is_worth_compiling(now, other, 10.0, left) is worth


def test_fits_whose_samples_share_nothing_are_left_alone():
    dense = RenderLoss(integrator=sg.Hierarchical((4,)))
    state = after(3, 50.0, 256)
    assert next_budget(dense, state) is dense and not shares_budget(dense, state.model)
    assert with_first_budget(dense, state, None) is dense
    assert not shares_budget(EVEN, Line.start()) and shares_budget(EVEN, state.model)
    whole, by_rays = RenderLoss(chunk=None), RenderLoss()
    assert not shares_budget(whole, cloud()) and shares_budget(whole, state.model)
    # Sums over rays take as many lists of samples as there are, and need no budget.
    assert not shares_budget(by_rays, state.model)


# --- Occupancy


@pytest.mark.slow
def test_occupancy_is_looked_at_every_sixteen_steps():
    before, short, long = (
        occupancy_of(scene) for scene in (grid_scene(), fit_grid(15).scene, fit_grid(16).scene)
    )
    np.testing.assert_array_equal(short, before)
    # An eighth of all cells has become thinner: there was nothing of that kind before.
    assert np.sum(long != before) == 8 and np.all(long <= before) and np.all(long[before < 0] < 0)
    assert_close(long[long != before], 0.9 * before[long != before], 1e-6)


@pytest.mark.slow
def test_looking_again_is_the_public_refresh():
    state = after(0, 1.0, 32)
    flat = flatten(state)
    refresh = OccupancyRefresh()
    assert refresh(flat, 33) is flat and needs_refresh(state.model)
    seen = refresh(flat, 32).tree
    key = jax.random.fold_in(state.keys.occupancy, 32)
    expected = refresh_occupancy(state.model, key=key)
    assert bits(seen.model) == bits(expected) != bits(state.model)
    assert not needs_refresh(cloud()) and not needs_refresh(Line.start())


@pytest.mark.slow
def test_occupancy_is_no_weight():
    """It moves by looking alone: an optimiser that moves all weights by one leaves it."""
    pushed = fit_grid(2, optimizer=optax.sgd(1.0), data=batches())
    np.testing.assert_array_equal(occupancy_of(pushed.scene), occupancy_of(grid_scene()))


@pytest.mark.slow
def test_saved_scene_shows_the_same_picture(tmp_path):
    """With its occupancy, part of which is empty."""
    known = half_empty(3)
    scene = fit_grid(16, scene=grid_scene(occupancy=known)).scene
    sg.save(scene, tmp_path / "scene.sg")
    loaded = sg.load(tmp_path / "scene.sg")
    assert bits(loaded) == bits(scene) and np.any(occupancy_of(loaded) != known.thickness)
    camera = cloud_views().camera(0)
    pictures = [sg.render(x, camera).rgb for x in (scene, loaded, grid_scene())]
    np.testing.assert_array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[0], pictures[2])


@pytest.mark.parametrize(
    "deadline", [None, pytest.param(Deadline(at=math.inf), marks=pytest.mark.slow)]
)
def test_rays_left_out_for_want_of_layers_get_more(deadline):
    """Three panes, one behind the other, seen through two layers: the next steps have four."""
    panes = {
        f"p{i}": sg.Surface(sg.Rectangle([0, 0, -i], [9, 9]), [0.2 * i] * 3, 0.5) for i in range(3)
    }
    scene = sg.Scene(sg.Group(**panes))
    camera = sg.PerspectiveCamera.look_at([0, 0, 3], [0, 0, 0], [0, 1, 0], 0.3, 4, 4)
    views = sg.views(camera, sg.render(scene, camera))
    result = sg.fit(
        scene,
        views,
        trainable="p2.shader.**",
        optimizer=optax.sgd(1e-3),
        integrator=sg.Surfaces(2),
        steps=6,
        deadline=deadline,
        key=jax.random.key(0),
    )
    assert float(result.state.extra.left_out) == 0
