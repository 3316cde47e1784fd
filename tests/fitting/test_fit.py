"""`fit` on scenes and on any Module."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg
from scenegraph.data import RayBatches
from scenegraph.fitting import FitError, split_by_purpose, start_state
from scenegraph.optimizers import LogLinear, mip_nerf_optimizer
from scenegraph.scene import named_leaves
from support.helpers import assert_close
from support.toy_fits import AllPoints, closed_form, cloud, cloud_views, Line, Points, squared_error


KEY = jax.random.key(0)


def fit_line(**changes):
    settings = {
        "trainable": None,
        "optimizer": optax.adam(0.1),
        "loss": squared_error,
        "steps": 5,
        "key": KEY,
    }
    return sg.fit(Line.start(), Points(0.1), **{**settings, **changes})


def leaves(tree) -> dict[str, np.ndarray]:
    return {path: np.asarray(leaf) for path, leaf, _ in named_leaves(tree)}


# --- Scenes


def test_colour_of_a_cloud_is_found_again():
    start = cloud(rgb=(0.5, 0.5, 0.5))
    optimizer = mip_nerf_optimizer(LogLinear(0.05, 0.005))
    result = sg.fit(
        start,
        cloud_views(),
        trainable=["blob.field.rgb"],
        optimizer=optimizer,
        steps=60,
        key=KEY,
    )
    assert result.history.loss[-1] < 1e-5 < 1e-3 < result.history.loss[0]
    assert result.history.extra.psnr[-1, -1] > 45
    found, before, truth = leaves(result.scene), leaves(start), leaves(cloud())
    assert_close(found["blob.field.rgb"], truth["blob.field.rgb"], 0, 0.01)
    for path in before.keys() - {"blob.field.rgb"}:
        np.testing.assert_array_equal(found[path], before[path], err_msg=path)


def test_frozen_leaves_keep_every_bit():
    frozen = ("background", "blob.field.center")
    start = sg.freeze(cloud(rgb=(0.5, 0.5, 0.5)), *frozen)
    result = sg.fit(start, cloud_views(), optimizer=optax.adam(0.01), steps=2, key=KEY)
    found, before = leaves(result.scene), leaves(start)
    moved = {path for path in before if not np.array_equal(found[path], before[path])}
    assert moved == {"blob.field.radius", "blob.field.extinction", "blob.field.rgb"}


def test_a_path_that_matches_nothing_is_an_error():
    with pytest.raises(ValueError, match="'blob.field.color'.*blob.field"):
        sg.fit(
            cloud(),
            cloud_views(),
            trainable="blob.field.color",
            optimizer=optax.adam(0.1),
            steps=1,
            key=KEY,
        )


@pytest.mark.slow
def test_random_backdrops_reach_the_renderer():
    views, scene = cloud_views(), cloud()
    rgba = jnp.concatenate([views.pixels, jnp.zeros((64, 1))], axis=1)
    invisible = eqx.tree_at(lambda v: (v.pixels, v.backdrop), views, (rgba, sg.data.Random()))
    empty = eqx.tree_at(lambda s: s.root.children["blob"].field.extinction, scene, jnp.array(0.0))
    batches, rule = RayBatches(invisible, 16), optax.sgd(0.0)
    result = sg.fit(empty, batches, trainable="blob.field", optimizer=rule, steps=1, key=KEY)
    assert result.history.loss[0] < 1e-10


# --- Any Module


def test_line_reaches_the_closed_form():
    x = np.linspace(-1, 1, 20).astype(np.float32)
    y = (2 * x + 1 + 0.3 * np.sin(20 * x)).astype(np.float32)
    result = fit_line_through(x, y)
    slope, offset = closed_form(x, y)
    assert_close(result.scene.slope, slope, 1e-4)
    assert_close(result.scene.offset, offset, 1e-4)
    # The state that the loss returns is the one it receives in the next step.
    assert int(result.state.extra) == int(result.state.step) == 100
    assert int(result.scene.count) == 3
    np.testing.assert_array_equal(result.history.extra, result.history.steps)


def fit_line_through(x, y):
    points = AllPoints(jnp.asarray(x), jnp.asarray(y))
    return sg.fit(
        Line.start(), points, optimizer=optax.sgd(0.3), loss=squared_error, steps=100, key=KEY
    )


def test_trainable_may_be_a_tree_of_booleans():
    chosen = sg.select(Line.start(), where=lambda line: line.offset)
    result = fit_line(trainable=chosen)
    assert result.scene.slope == 0 and result.scene.offset != 0


def test_same_key_same_fit_and_another_key_another():
    first, again, other = (fit_line(key=jax.random.key(n)) for n in (0, 0, 1))
    np.testing.assert_array_equal(first.history.loss, again.history.loss)
    assert first.scene.slope == again.scene.slope != other.scene.slope


def test_history_holds_every_step_of_a_short_fit():
    history = fit_line(steps=7).history
    assert history.steps.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert history.loss.shape == history.extra.shape == (7,)


def test_no_steps_change_nothing():
    result = fit_line(steps=0)
    assert result.scene.slope == 0 and result.history.loss.shape == (0,)


def test_all_steps_share_one_compilation():
    once = eqx.debug.assert_max_traces(max_traces=1)(squared_error)
    optimizer = optax.adam(0.1)
    state = start_state(Line.start(), optimizer, extra=jnp.array(0), steps=20, key=KEY)
    result = fit_line(loss=once, optimizer=optimizer, steps=20, state=state)
    assert int(result.state.step) == int(result.state.extra) == 20


def test_a_fit_that_explodes_keeps_its_last_finite_model():
    """A huge rate overflows at once: ten steps fail, none changes anything."""
    with pytest.raises(
        FitError, match="10 in a row have failed, and the gradient of slope.*, since step "
    ) as e:
        fit_line(optimizer=optax.sgd(1e38), steps=50)
    model = e.value.state.model
    assert jnp.isfinite(model.slope) and jnp.isfinite(model.offset)


def test_error_when_only_the_loss_is_not_finite():
    def infinite(line, state, batch, key):
        return jnp.inf + 0 * line.slope, jnp.array(0)

    with pytest.raises(FitError, match="loss is inf after 1 steps.*all gradients are finite"):
        fit_line(loss=infinite, optimizer=optax.sgd(0.0), steps=1)


class Spoilt(eqx.Module):
    """Points that are not numbers in step four."""

    points: Points

    def batch(self, seed, step):
        x, y = self.points.batch(seed, step)
        return jnp.where(step == 4, jnp.nan, x), y


def test_a_single_bad_step_changes_nothing():
    """The fit is that of the nine others."""
    optimizer, points = optax.sgd(0.1), Points(0.1)
    settings = {"optimizer": optimizer, "loss": squared_error, "steps": 10, "key": KEY}
    fitted = sg.fit(Line.start(), Spoilt(points), **settings)
    assert int(fitted.state.extra) == 9 and int(fitted.state.failures) == 0
    state = start_state(Line.start(), optimizer, extra=jnp.array(0), steps=10, key=KEY)
    seed = split_by_purpose(KEY).seed()
    for number in range(10):
        if number != 4:
            batch = points.batch(seed, number)
            state, _ = sg.step(state, batch, loss=squared_error, optimizer=optimizer)
    assert_close(fitted.scene.slope, state.model.slope)
    assert_close(fitted.scene.offset, state.model.offset)
