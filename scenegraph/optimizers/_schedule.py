import abc

import equinox as eqx
import jax.numpy as jnp
import optax

from .._typing import Array, Float, Int, PyTree, Scalar
from ..numerics import AbstractModule


class AbstractSchedule(AbstractModule):
    """The learning rate of every step, for a last step that may move."""

    @abc.abstractmethod
    def __call__(
        self, step: Int[Array, ""] | Float[Array, ""] | int, horizon: Float[Array, ""] | float
    ) -> Scalar:
        """Computes the learning rate of a step.

        **Arguments:**

        - `step`: the number of the step, counted from one.
        - `horizon`: the number of the last step.

        **Returns:**

        The learning rate.
        """


class LogLinear(AbstractSchedule):
    """mip-NeRF's learning rate: its logarithm falls along a straight line, after a soft start.

    **Arguments:**

    - `initial`, `final`: the rates at the first and the last step; positive.
    - `delay_steps`: the number of steps for which the rate is lowered; 0 for no delay.
    - `delay_multiplier`: the factor of the rate at first, which rises to one like a sine.

    **Source:** `learning_rate_decay` of the published mip-NeRF code.
    """

    initial: float = eqx.field(static=True, default=5e-4)
    final: float = eqx.field(static=True, default=5e-6)
    delay_steps: int = eqx.field(static=True, default=0)
    delay_multiplier: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not 0 < self.final or not 0 < self.initial:
            raise ValueError(f"learning rates must be positive; got {self.initial}, {self.final}.")

    def __call__(
        self, step: Int[Array, ""] | Float[Array, ""] | int, horizon: Float[Array, ""] | float
    ) -> Scalar:
        progress = jnp.clip(step / horizon, 0, 1)
        # initial^(1 - p) final^p
        rate = jnp.exp(jnp.log(self.initial) * (1 - progress) + jnp.log(self.final) * progress)
        return rate * _soft_start(step, self.delay_steps, self.delay_multiplier)


class Linear(AbstractSchedule):
    """A learning rate that falls along a straight line, after a soft start.

    It stays high for longer than `LogLinear`, and ends lower: fits of few steps end better.

    **Arguments:**

    - `initial`, `final`: the rates at the first and the last step; `final` may be 0.
    - `delay_steps`: the number of steps for which the rate is lowered; 0 for no delay.
    - `delay_multiplier`: the factor of the rate at first, which rises to one like a sine.
    """

    initial: float = eqx.field(static=True, default=1e-2)
    final: float = eqx.field(static=True, default=0.0)
    delay_steps: int = eqx.field(static=True, default=0)
    delay_multiplier: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not 0 <= self.final or not 0 < self.initial:
            raise ValueError(f"learning rates must be positive; got {self.initial}, {self.final}.")

    def __call__(
        self, step: Int[Array, ""] | Float[Array, ""] | int, horizon: Float[Array, ""] | float
    ) -> Scalar:
        progress = jnp.clip(step / horizon, 0, 1)
        # initial (1 - p) + final p
        rate = self.initial * (1 - progress) + self.final * progress
        return rate * _soft_start(step, self.delay_steps, self.delay_multiplier)


def _soft_start(step: Array | int, delay_steps: int, multiplier: float) -> Scalar | float:
    """Returns the factor of the learning rate in the first steps."""
    if delay_steps <= 0:
        return 1.0
    # m + (1 - m) sin(pi/2 min(step / delay_steps, 1))
    rise = jnp.sin(0.5 * jnp.pi * jnp.clip(step / delay_steps, 0, 1))
    return multiplier + (1 - multiplier) * rise


class Until(AbstractSchedule):
    """A learning rate that is zero from some part of the fit on."""

    rate: AbstractSchedule
    part: float = eqx.field(static=True)

    def __call__(
        self, step: Int[Array, ""] | Float[Array, ""] | int, horizon: Float[Array, ""] | float
    ) -> Scalar:
        # The horizon may move, so the end is a share of it.
        return jnp.where(step <= self.part * horizon, self.rate(step, horizon), 0.0)


def scale_by_schedule(schedule: AbstractSchedule) -> optax.GradientTransformationExtraArgs:
    """Multiplies by minus the learning rate, for the horizon that the fit's state has."""

    def init(params: PyTree) -> optax.EmptyState:
        del params
        return optax.EmptyState()

    def update(updates, state, params=None, *, step, horizon, **others):
        del params, others
        rate = -schedule(step, horizon)
        return optax.tree.scale(rate, updates), state

    # optax's own type leaves out the extra arguments that this class exists for.
    return optax.GradientTransformationExtraArgs(init, update)  # pyright: ignore[reportArgumentType]


def mip_nerf_optimizer(
    schedule: AbstractSchedule,
    *,
    max_value: float = 0.0,
    max_norm: float = 0.0,
    b2: float = 0.999,
    epsilon: float = 1e-8,
) -> optax.GradientTransformationExtraArgs:
    """Adam as mip-NeRF uses it: clipped by value, then by norm, then scheduled.

    **Arguments:**

    - `schedule`: the learning rate.
    - `max_value`: largest allowed gradient entry; 0 for no limit. Keyword only, as is all that
      follows.
    - `max_norm`: largest allowed gradient length; 0 for no limit.
    - `b2`, `epsilon`: Adam's decay of squared gradients, and its smallest denominator.

    **Returns:**

    An optax transformation.

    **Source:** `train_step` of the published mip-NeRF code.
    """
    links = [optax.clip(max_value)] if max_value > 0 else []
    links += [optax.clip_by_global_norm(max_norm)] if max_norm > 0 else []
    return optax.chain(*links, optax.scale_by_adam(b2=b2, eps=epsilon), scale_by_schedule(schedule))
