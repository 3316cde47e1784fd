"""Several processes of one fit decide alike: one that went on alone would wait for ever."""

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh

from ..numerics import cut_over, whole_on
from ._layout import Layout, move


# Between two looks at the clock of the first process.
_SECONDS = 0.5


class Agreement:
    """What processes ask each other; a single one just does as it likes.

    **Arguments:**

    - `layout`: of the fit.
    """

    def __init__(self, layout: Layout):
        self._mesh = layout.mesh if len(layout.processes) > 1 else None
        self._horizon = 0.0
        self._next = 0

    def stop(self, wish: bool) -> bool:
        """Whether any process wishes to stop. All must ask.

        **Arguments:**

        - `wish`: of this process.

        **Returns:**

        True for all of them, or for none.
        """
        return wish if self._mesh is None else bool(np.any(_gather([wish], self._mesh)))

    def horizon(self, horizon: float, number: int, rate: float) -> float:
        """What the first process expects. All must ask, after every step.

        **Arguments:**

        - `horizon`: what this process expects.
        - `number`: of the step.
        - `rate`: steps a second.

        **Returns:**

        Every process's own only where it is alone. Some steps long the answer stays the same, so
        that the devices need not wait for it every time.
        """
        if self._mesh is None:
            return horizon
        if number >= self._next:
            steps = max(1.0, rate * _SECONDS)
            self._horizon, pause = map(float, _gather([horizon, steps], self._mesh)[0])
            self._next = number + int(pause)
        return self._horizon


def _gather(values: Sequence[float], mesh: Mesh) -> np.ndarray:
    """What every device's process says, a row a device."""
    mine = np.tile(np.asarray(values, np.float32), (mesh.size, 1))
    rows = jax.make_array_from_callback(mine.shape, cut_over(mesh), lambda index: mine[index])
    return np.asarray(move(rows, whole_on(mesh)))
