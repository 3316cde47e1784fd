"""Batches for one step after the other: made on the devices, or read by a thread of the host."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Int, Integer, PyTree, RandomKey
from ..data import Drawn, Loader, PixelReader, RayBatches
from ..io import MappedArray
from ..numerics import AbstractModule
from ._layout import Layout
from ._state import FitState


class Feed:
    """Where the batches of a fit come from.

    **Arguments:**

    - `batches`: with a method `batch(seed, step)`, where `Layout.copy` put them.
    - `layout`: of the fit.
    - `key`: of the fit.
    """

    def __init__(self, batches: Any, layout: Layout, key: RandomKey):
        self._batches, self._layout, self._loader = batches, layout, None
        if reads_file(batches):
            reader, seed = PixelReader(batches), int(_seed(key))
            self._loader = Loader(lambda number: _send(reader, seed, number, layout))

    def __call__(self, state: FitState, number: int) -> PyTree:
        """The batch of one step.

        **Arguments:**

        - `state`: before it.
        - `number`: how many steps have been taken, which the host knows.

        **Returns:**

        What the loss compares with.
        """
        if self._loader is None:
            return _batch(self._batches, state.key, state.step, self._layout)
        drawn = self._loader(number)
        return _assemble(self._batches, drawn, state.key, state.step, self._layout)

    def close(self) -> None:
        """Ends the thread, if there is one."""
        if self._loader is not None:
            self._loader.close()


# Apart from the step, which is compiled anew when the room for its samples changes.
@eqx.filter_jit
def _batch(batches: Any, key: RandomKey, number: Int[Array, ""], layout: Layout) -> Any:
    return layout.cut(batches.batch(_seed(key), number))


@eqx.filter_jit
def _assemble(
    batches: RayBatches, drawn: Drawn, key: RandomKey, number: Int[Array, ""], layout: Layout
) -> Any:
    return layout.cut(batches.assemble(drawn, _seed(key), number))


def _seed(key: RandomKey) -> Integer[Array, ""]:
    return jax.random.bits(jax.random.fold_in(key, 0), dtype=jnp.uint32)


def _send(reader: PixelReader, seed: int, number: int, layout: Layout) -> Drawn:
    """Reads the pixels of one step, each process its own, and sends them to the devices."""
    frame, place, rows = reader.draw(seed, number)
    shape = (*rows.shape, reader.file.shape[1])
    return Drawn(
        layout.send(frame.shape, lambda part: frame[part]),
        layout.send(place.shape, lambda part: place[part]),
        layout.send(shape, lambda part: reader.file.take(rows[part])),
    )


def reads_file(batches: Any) -> bool:
    """Whether pixels are in a file, which only the host can read.

    **Arguments:**

    - `batches`: of a fit.

    **Returns:**

    True for `RayBatches` of such `Views`.
    """
    return isinstance(batches, RayBatches) and isinstance(batches.views.pixels, MappedArray)


class Always(AbstractModule):
    """One batch at all steps.

    **Arguments:**

    - `known`: the batch.
    """

    known: PyTree

    def batch(self, seed: Any, step: Any) -> PyTree:
        """The batch.

        **Arguments:**

        - `seed`, `step`: of no account.

        **Returns:**

        Always the same.
        """
        del seed, step
        return self.known


def traceable(batches: Any) -> Any:
    """Batches of which compiled functions may make the first.

    **Arguments:**

    - `batches`: of a fit.

    **Returns:**

    The same; where pixels are in a file, the first batch alone.
    """
    return Always(batches.batch(0, 0)) if reads_file(batches) else batches
