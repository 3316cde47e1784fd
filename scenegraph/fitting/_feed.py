"""The batches of a fit: made on the devices, or read by a thread of the host."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, Integer, PyTree
from ..data import Batch, RayBatches
from ..io import MappedArray
from ..numerics import AbstractModule
from ..parallel import Layout
from ..pixels import DrawnPixels, PixelReader, Prefetcher
from ._flat import Flat, flatten
from ._state import FitState


class Feed:
    """The batches of a fit, from `batch(seed, step)` of what `Layout.copy` has put somewhere."""

    def __init__(self, batches: Any, layout: Layout, seed: Integer[Array, ""]):
        self.layout, self._loader = layout, None
        self._parts = flatten((batches, seed, layout))
        if reads_file(batches):
            reader, known = PixelReader(batches), int(seed)
            self._loader = Prefetcher(lambda number: _send(reader, known, number, layout))

    def __call__(self, state: Flat, number: int) -> Flat:
        """Makes the batch of the step after `state`, whose number the host knows too."""
        if self._loader is None:
            return _batch(self._parts, state)
        return _assemble(self._parts, state, flatten(self._loader(number)))

    def first(self, state: FitState) -> "First":
        """Returns the first batch of all, which is made when it is first needed."""
        return First(self, flatten(dataclasses.replace(state, step=jnp.zeros_like(state.step))))

    def shapes(self, state: Flat, number: int) -> Flat:
        """Returns the shapes of a batch; where several devices have parts of it, also those."""
        make, given = _batch, (self._parts, state)
        if self._loader is not None:
            make, given = _assemble, (*given, flatten(self._loader(number)))
        shapes = jax.eval_shape(make, *given)
        if self.layout.mesh is None:
            return shapes
        where = make.lower(*given).compile().output_shardings
        whole = zip(shapes.arrays, where.arrays, strict=True)
        parts = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=part) for x, part in whole]
        return Flat(tuple(parts), shapes.rest)

    def close(self) -> None:
        """Ends the thread, if there is one."""
        if self._loader is not None:
            self._loader.close()


# Apart from the step, which is compiled anew when its sample budget changes.
@jax.jit
def _batch(parts: Flat, state: Flat) -> Flat:
    batches, seed, layout = parts.tree
    when = seed, state.tree.step
    # Other data do not know of a fit's end.
    when = (*when, state.tree.horizon) if isinstance(batches, RayBatches) else when
    return flatten(layout.cut(batches.batch(*when)))


@jax.jit
def _assemble(parts: Flat, state: Flat, drawn: Flat) -> Flat:
    batches, seed, layout = parts.tree
    now: FitState = state.tree
    return flatten(layout.cut(batches.assemble(drawn.tree, seed, now.step, now.horizon)))


def _send(reader: PixelReader, seed: int, number: int, layout: Layout) -> DrawnPixels:
    """Reads the pixels of one step, each process its own, and sends them to the devices."""
    frame, place, rows = reader.draw(seed, number)
    shape = (*rows.shape, reader.file.shape[1])
    return DrawnPixels(
        layout.send(frame.shape, lambda part: frame[part]),
        layout.send(place.shape, lambda part: place[part]),
        layout.send(shape, lambda part: reader.file.take(rows[part])),
    )


def reads_file(batches: Any) -> bool:
    """Returns true if the pixels are in a file, which only the host can read."""
    return isinstance(batches, RayBatches) and isinstance(batches.views.pixels, MappedArray)


@dataclasses.dataclass(frozen=True)
class First:
    """The first batch of a feed, whatever the step."""

    feed: Feed
    state: Flat

    def batch(self, seed: Any, step: Any) -> Batch:
        """Returns the batch."""
        del seed, step
        return self.feed(self.state, 0).tree


class Always(AbstractModule):
    """One batch, the same at all steps."""

    known: PyTree

    def batch(self, seed: Any, step: Any) -> PyTree:
        """Returns the batch."""
        del seed, step
        return self.known


def traceable(batches: Any, seed: Integer[Array, ""] | int) -> Any:
    """Returns batches that compiled functions can make; from pixels in a file, the first alone."""
    return Always(batches.batch(seed, 0)) if reads_file(batches) else batches
