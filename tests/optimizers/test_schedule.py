"""The learning rate."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from scenegraph.optimizers import Linear, LogLinear, mip_nerf_optimizer, scale_by_schedule
from support.helpers import assert_close, golden


@pytest.mark.parametrize(
    "name, schedule",
    [("delay", LogLinear(5e-4, 5e-6, 2500, 0.01)), ("nodelay", LogLinear(5e-4, 5e-6))],
)
def test_published_rates(name, schedule):
    data = golden("mip_math")
    rates = [schedule(step, 1e6) for step in data["lr.steps"].tolist()]
    np.testing.assert_allclose(rates, data[f"lr.{name}"], rtol=2e-6)


def test_rate_is_a_function_of_the_share_that_is_done():
    schedule = LogLinear(1e-2, 1e-4)
    assert_close(schedule(50, 100.0), 1e-3, 1e-6)
    assert_close(schedule(jnp.asarray(500), jnp.asarray(1000.0)), 1e-3, 1e-6)
    assert_close(schedule(2000, 1000.0), 1e-4, 1e-6)


def test_linear_rates_are_those_of_numpy():
    steps, schedule = np.arange(1, 12), Linear(2e-2, 1e-3, delay_steps=4, delay_multiplier=0.1)
    line = np.interp(steps, [0, 10], [2e-2, 1e-3])
    start = 0.1 + 0.9 * np.sin(np.pi / 2 * np.minimum(steps / 4, 1))
    assert_close(np.stack([schedule(int(step), 10.0) for step in steps]), line * start, 1e-5)
    assert_close(Linear(1e-2)(10, 10.0), 0.0, 0, 1e-9)


@pytest.mark.parametrize("kind", [Linear, LogLinear])
def test_rates_must_be_positive(kind):
    with pytest.raises(ValueError, match="must be positive; got 0.0"):
        kind(0.0, 1e-3)


def test_last_link_scales_by_minus_the_rate():
    link = scale_by_schedule(LogLinear(1e-2, 1e-4))
    updates, _ = link.update(jnp.ones(3), link.init(jnp.ones(3)), step=50, horizon=100.0)
    assert_close(updates, -1e-3 * np.ones(3), 1e-6)


def test_optimiser_without_limits_is_adam():
    gradient = jnp.array([1e3, -2.0, 0.0])
    ours, theirs = mip_nerf_optimizer(LogLinear(1e-3, 1e-3)), optax.adam(1e-3)
    step, _ = ours.update(gradient, ours.init(gradient), gradient, step=1, horizon=10.0)
    expected, _ = theirs.update(gradient, theirs.init(gradient), gradient)
    assert_close(step, expected, 1e-6)
