"""Optax's transformations that want more than the gradient: given it, or refused by name."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import scenegraph as sg


TARGET = np.array([1.0, -2.0, 0.5], np.float32)
CURVE = np.array([1.0, 4.0, 9.0], np.float32)


class Place(eqx.Module):
    x: jax.Array
    fixed: jax.Array


class Nothing:
    """Data without any."""

    def batch(self, seed, step):
        del seed
        return {"step": step}


def bowl(model, state, batch, key):
    """Half a weighted square, whose least value is 0 at the target."""
    del state, batch, key
    return 0.5 * jnp.sum(CURVE * (model.x - TARGET) ** 2) + 0 * jnp.sum(model.fixed), None


def run(optimizer, steps=150):
    place = Place(jnp.zeros(3), jnp.ones(2))
    result = sg.fit(
        place,
        Nothing(),
        trainable=Place(True, False),
        optimizer=optimizer,
        loss=bowl,
        steps=steps,
        key=jax.random.key(0),
    )
    return np.asarray(result.scene.x)


@pytest.mark.parametrize(
    ("optimizer", "error"),
    [
        (optax.lbfgs(), 1e-4),
        (optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(20)), 1e-2),
        (optax.polyak_sgd(max_learning_rate=1.0), 1e-2),
        (optax.chain(optax.adam(0.2), optax.contrib.reduce_on_plateau(patience=50)), 0.02),
        (sg.optimizers.by_path({"x": optax.polyak_sgd(max_learning_rate=1.0)}), 1e-2),
    ],
    ids=["lbfgs", "backtracking", "polyak_sgd", "reduce_on_plateau", "by_path"],
)
def test_they_find_the_minimum(optimizer, error):
    assert np.max(np.abs(run(optimizer) - TARGET)) < error


def test_the_loss_is_what_is_passed():
    """A transformation that writes down what it gets: the value, and that of other leaves."""

    def update(updates, state, params=None, *, value, grad, value_fn, **others):
        assert {"step", "horizon"} <= others.keys()
        other = value_fn(jax.tree.map(jnp.zeros_like, params))
        length = jnp.sum(grad.x**2)
        moved = jax.tree.map(lambda x: 0 * x, updates)
        return moved, jnp.stack([value, other, length])

    spy = optax.GradientTransformationExtraArgs(lambda params: jnp.zeros(3), update)
    state = sg.fit(
        Place(jnp.asarray(2 * TARGET), jnp.ones(2)),
        Nothing(),
        trainable=Place(True, False),
        optimizer=spy,
        loss=bowl,
        steps=1,
        key=jax.random.key(0),
    ).state
    half = 0.5 * np.sum(CURVE * TARGET**2)
    np.testing.assert_allclose(
        state.moments, [half, half, np.sum((CURVE * TARGET) ** 2)], rtol=1e-6
    )


def test_a_schedule_of_the_plateau_is_obeyed():
    """A loss that does not change: the factor falls by a half after every three steps."""
    plateau = optax.contrib.reduce_on_plateau(factor=0.5, patience=3, atol=1e-3)
    state = sg.fit(
        Place(jnp.asarray(TARGET), jnp.ones(2)),
        Nothing(),
        trainable=Place(True, False),
        optimizer=plateau,
        loss=bowl,
        steps=13,
        key=jax.random.key(0),
    ).state
    assert float(state.moments.scale) == pytest.approx(0.5 ** (12 // 3))


@pytest.mark.parametrize("opaque", [False, True])
@pytest.mark.parametrize("chained", [False, True])
def test_sam_is_refused_by_name(monkeypatch, opaque, chained):
    """Before anything is compiled."""
    sam = optax.contrib.sam(optax.adam(0.1), optax.sgd(0.05), opaque_mode=opaque)
    monkeypatch.setattr("scenegraph.fitting._fit._step", None)
    with pytest.raises(TypeError, match="`optimizer` of `fit`: `sam` cannot be used"):
        run(optax.chain(sam, optax.scale(1.0)) if chained else sam)


def test_an_argument_that_nobody_passes():
    def update(updates, state, params=None, *, hessian, **others):
        del params, hessian, others
        return updates, state

    odd = optax.GradientTransformationExtraArgs(lambda params: (), update)
    with pytest.raises(TypeError, match="`optimizer` of `fit`.*hessian"):
        run(odd)
