"""Several processes of one fit decide alike: one that went on alone would wait for ever."""

import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from .._typing import Array, PyTree
from ._devices import cut_over
from ._layout import Layout


# Between two looks at the clock of the first process.
_SECONDS = 0.5
# Of larger arrays, such as the pictures, only the shape is compared.
_LARGE = 2**24


class Agreement:
    """What processes ask each other; a single one just does as it likes.

    **Arguments:**

    - `layout`: of the fit.
    """

    def __init__(self, layout: Layout):
        self._mesh = layout.mesh if len(layout.processes) > 1 else None
        self.first = layout.is_first()
        self._horizon, self._wish = 0.0, False
        self._next_horizon = self._next_stop = 0

    def least(self, number: float) -> float:
        """The least of what processes have. All must ask.

        **Arguments:**

        - `number`: of this process.

        **Returns:**

        The same in all processes.
        """
        return number if self._mesh is None else float(_gather([number], self._mesh).min())

    def stop(self, wish: bool, number: int, rate: float, *, now: bool) -> bool:
        """Whether any process wishes to stop. All must ask, at the same steps.

        **Arguments:**

        - `wish`: of this process.
        - `number`: of the step.
        - `rate`: steps a second.
        - `now`: whether the answer must be known at this step; else a wish may wait for some
          steps, so that the devices need not wait every time. Keyword only argument.

        **Returns:**

        True for all of them, or for none.
        """
        if self._mesh is None:
            return wish
        self._wish = self._wish or wish
        if not now and number < self._next_stop:
            return False
        rows = _gather([self._wish, max(1.0, rate * _SECONDS)], self._mesh)
        self._next_stop = number + int(rows[0, 1])
        return bool(np.any(rows[:, 0]))

    def horizon(self, horizon: float, number: int, rate: float) -> float:
        """What the first process expects. All must ask, after every step.

        **Arguments:**

        - `horizon`: what this process expects.
        - `number`: of the step.
        - `rate`: steps a second.

        **Returns:**

        The same in all processes. It stays as it is for some steps, as with `stop`.
        """
        if self._mesh is None:
            return horizon
        if number >= self._next_horizon:
            steps = max(1.0, rate * _SECONDS)
            self._horizon, pause = map(float, _gather([horizon, steps], self._mesh)[0])
            self._next_horizon = number + int(pause)
        return self._horizon


def check_alike(layout: Layout, *trees: PyTree) -> None:
    """Makes sure that all processes begin with the same.

    **Arguments:**

    - `layout`: of the fit.
    - `trees`: that should be the same everywhere. Of very large arrays only the shape is looked at.

    **Errors:**

    `ValueError` that names the first process that differs.
    """
    if layout.mesh is None or len(layout.processes) == 1:
        return
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(trees):
        if isinstance(leaf, jax.Array):
            digest.update(_content(leaf))
    rows = _gather(list(digest.digest()), layout.mesh)
    for row, device in zip(rows, layout.mesh.devices.flat, strict=True):
        if np.any(row != rows[0]):
            raise ValueError(
                f"process {device.process_index} begins with other numbers than process "
                f"{layout.processes[0]}: all must have the same data, settings, checkpoint and "
                "versions."
            )


def _content(leaf: Array) -> bytes:
    about = f"{leaf.dtype}{leaf.shape}".encode()
    if leaf.size > _LARGE or not (leaf.is_fully_addressable or leaf.is_fully_replicated):
        return about
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return about + np.asarray(jax.random.key_data(leaf) if is_key else leaf).tobytes()


def _gather(values: Sequence[float], mesh: Mesh) -> np.ndarray:
    """Returns the values that every device's process has, a row a device."""
    mine = np.tile(np.asarray(values, np.float32), (len(mesh.local_devices), 1))
    # Of an array on the fit's own devices: of numbers, all processes of the job would have to ask.
    rows = multihost_utils.host_local_array_to_global_array(mine, mesh, cut_over(mesh).spec)
    return multihost_utils.process_allgather(rows, tiled=True)
