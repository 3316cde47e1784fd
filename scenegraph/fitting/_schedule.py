import equinox as eqx
import jax.numpy as jnp
import optax

from .._typing import Array, Float, Int, PyTree, Scalar
from ..numerics import AbstractModule


class LogLinear(AbstractModule):
    """mip-NeRF's learning rate: falls along a straight line in its logarithm, after a soft start.

    **Arguments:**

    - `initial`, `final`: at the first and the last step; positive.
    - `delay_steps`: for this many steps the rate is lowered; 0 for no delay.
    - `delay_multiplier`: by this factor at first; it rises to one like a sine.

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
        """The learning rate of one step.

        **Arguments:**

        - `step`: its number, from one.
        - `horizon`: the number of the last step.

        **Returns:**

        The rate.
        """
        progress = jnp.clip(step / horizon, 0, 1)
        rate = jnp.exp(jnp.log(self.initial) * (1 - progress) + jnp.log(self.final) * progress)
        return rate * self._delay(step)

    def _delay(self, step) -> Scalar | float:
        if self.delay_steps <= 0:
            return 1.0
        rise = jnp.sin(0.5 * jnp.pi * jnp.clip(step / self.delay_steps, 0, 1))
        return self.delay_multiplier + (1 - self.delay_multiplier) * rise


def scale_by_schedule(schedule: LogLinear) -> optax.GradientTransformationExtraArgs:
    """The last link of an optimiser: minus the learning rate of the step at hand.

    Unlike `optax.scale_by_schedule` it reads the horizon from the fit's state, so that a fit with
    a time limit can plan how far it will come.

    **Arguments:**

    - `schedule`: called with `step` and `horizon`.

    **Returns:**

    An optax transformation that needs the extra arguments which `step` gives.
    """

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
    schedule: LogLinear,
    *,
    max_value: float = 0.0,
    max_norm: float = 0.0,
    b2: float = 0.999,
    epsilon: float = 1e-8,
) -> optax.GradientTransformationExtraArgs:
    """Adam as mip-NeRF uses it: clipped by value, then by norm, then scheduled.

    **Arguments:**

    - `schedule`: the learning rate.
    - `max_value`: largest allowed gradient entry; 0 for no limit. Keyword only argument.
    - `max_norm`: largest allowed gradient length; 0 for no limit. Keyword only argument.
    - `b2`, `epsilon`: of Adam. Keyword only arguments.

    **Returns:**

    An optax transformation.

    **Source:** `train_step` of the published mip-NeRF code.
    """
    links = [optax.clip(max_value)] if max_value > 0 else []
    links += [optax.clip_by_global_norm(max_norm)] if max_norm > 0 else []
    return optax.chain(*links, optax.scale_by_adam(b2=b2, eps=epsilon), scale_by_schedule(schedule))
