from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int, PyTree
from ..numerics import AbstractModule


class History(AbstractModule):
    """How a fit went, at up to a thousand of its steps.

    **Arguments:**

    - `steps`: their numbers.
    - `loss`: before each of them.
    - `extra`: what the loss returned beside its value: for scenes, `LossTerms` with a leading
      axis.
    """

    steps: Int[Array, " records"]
    loss: Float[Array, " records"]
    extra: PyTree


class Records:
    """Collects a history in the host's memory, without waiting for the step at hand."""

    def __init__(self):
        self._numbers: list[int] = []
        self._told: list[Any] = []

    def add(self, number: int, loss: Float[Array, ""], extra: PyTree) -> None:
        """Remembers a step.

        **Arguments:**

        - `number`: of the step, after which the one before it is done.
        - `loss`, `extra`: what it told.
        """
        self._fetch()
        self._numbers.append(number)
        self._told.append((loss, extra))

    def history(self) -> History:
        """All of it.

        **Returns:**

        The history.
        """
        if not self._told:
            return History(jnp.zeros(0, jnp.int32), jnp.zeros(0), None)
        self._fetch()
        loss, extra = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *self._told)
        return History(jnp.asarray(np.array(self._numbers, np.int32)), loss, extra)

    def _fetch(self) -> None:
        if self._told:
            # A copy: without one, it would keep the device's.
            self._told[-1] = jax.tree.map(np.array, self._told[-1])
