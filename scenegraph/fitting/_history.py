from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, Int, PyTree
from ..numerics import AbstractModule


class History(AbstractModule):
    """The number of each step, the loss before it, and the second result of the loss."""

    steps: Int[Array, " records"]
    loss: Float[Array, " records"]
    extra: PyTree


class Records:
    """A history in the host's memory, collected without waiting for the step at hand."""

    def __init__(self):
        self._numbers: list[int] = []
        self._results: list[Any] = []

    def add(self, number: int, loss: Float[Array, ""], extra: PyTree) -> None:
        """Adds the results of a step, at whose end the one before it is done."""
        self._fetch()
        self._numbers.append(number)
        self._results.append((loss, extra))

    def history(self) -> History:
        """Returns all of it."""
        if not self._results:
            return History(jnp.zeros(0, jnp.int32), jnp.zeros(0), None)
        self._fetch()
        loss, extra = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *self._results)
        return History(jnp.asarray(np.array(self._numbers, np.int32)), loss, extra)

    def _fetch(self) -> None:
        if self._results:
            # A copy: without one, it would keep the device's.
            self._results[-1] = jax.tree.map(np.array, self._results[-1])
