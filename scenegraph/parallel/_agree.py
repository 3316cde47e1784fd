"""Decisions that the processes of a fit take alike: one that went on alone would wait for ever."""

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


# Time between two exchanges.
_SECONDS = 0.5
# Size from which on only the shapes of arrays, such as pictures, are compared.
_LARGE = 2**24


class Agreement:
    """Collectives of a fit's processes, which all must call; a single one keeps its own values."""

    def __init__(self, layout: Layout):
        self._mesh = layout.mesh if len(layout.processes) > 1 else None
        self.first = layout.is_first()
        self._horizon, self._wanted = 0.0, False
        self._next_horizon = self._next_stop = 0

    def least(self, number: float) -> float:
        """Returns the smallest of all processes' numbers."""
        return number if self._mesh is None else float(_gather([number], self._mesh).min())

    def stop(self, wanted: bool, number: int, rate: float, *, now: bool) -> bool:
        """Returns true if any process wants to stop; unless `now`, it may do so some steps late."""
        if self._mesh is None:
            return wanted
        self._wanted = self._wanted or wanted
        if not now and number < self._next_stop:
            return False
        rows = _gather([self._wanted, max(1.0, rate * _SECONDS)], self._mesh)
        self._next_stop = number + int(rows[0, 1])
        return bool(np.any(rows[:, 0]))

    def horizon(self, horizon: float, number: int, rate: float) -> float:
        """Returns the first process's horizon, which stays the same for some steps."""
        if self._mesh is None:
            return horizon
        if number >= self._next_horizon:
            # Both of the first process: the horizon, and after how many steps to agree again.
            steps = max(1.0, rate * _SECONDS)
            self._horizon, pause = map(float, _gather([horizon, steps], self._mesh)[0])
            self._next_horizon = number + int(pause)
        return self._horizon


def check_alike(layout: Layout, *trees: PyTree) -> None:
    """Raises `ValueError` if a process has other arrays, or large ones of other shapes."""
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
    # Of an array on the fit's own devices: of numbers, all processes of the job would take part.
    rows = multihost_utils.host_local_array_to_global_array(mine, mesh, cut_over(mesh).spec)
    return multihost_utils.process_allgather(rows, tiled=True)
