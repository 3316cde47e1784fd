"""Pixels in a file: drawn as those in memory are, and read on the host."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from .._typing import Array, Int, PyTree
from ..io import MappedArray


class PixelRows(NamedTuple):
    """Pixels that are still to be read: their pictures, columns and rows, and rows of the file."""

    frame: Int[np.ndarray, " rays"]
    place: Int[np.ndarray, "rays 2"]
    rows: Int[np.ndarray, "rays *window"]


class PixelReader:
    """Draws the pixels of `RayBatches` whose pixels are in a file, as in memory, bit for bit."""

    def __init__(self, batches: Any):
        def here(leaf: Any) -> Any:
            return jax.device_put(np.asarray(leaf), self._cpu) if eqx.is_array(leaf) else leaf

        self._cpu = jax.local_devices(backend="cpu")[0]
        self._batches = jax.tree.map(here, batches)
        self._annealing = batches.annealing
        self.file: MappedArray = batches.views.pixels
        sizes = [np.asarray(x) for x in (batches.views.widths, batches.views.heights)]
        self._sizes = np.stack(sizes, axis=-1).astype(np.int64)
        pixels = self._sizes.prod(axis=1)
        self._starts = np.cumsum(pixels) - pixels

    def draw(self, seed: int, step: int) -> PixelRows:
        """Draws the pixels of one step, whose arguments are those of `RayBatches.batch`."""
        # JAX draws on the host's CPU, in 64 bits where the file has more pixels than 32 can count.
        with jax.default_device(self._cpu), jax.enable_x64(len(self.file) >= 2**31):
            drawn = _indices(self._batches, np.asarray(seed, np.uint32), np.asarray(step, np.int32))
        indices = np.asarray(drawn).astype(np.int64)
        # The same as `Views.locate`, in 64 bits.
        frame = np.searchsorted(self._starts, indices, side="right") - 1
        starts, sizes = self._starts[frame], self._sizes[frame]
        row, column = np.divmod(indices - starts, sizes[:, 0])
        place = np.stack([column, row], axis=-1)
        rows = indices
        if self._annealing is not None:
            rows = self._annealing.windows(starts, sizes, place)
        return PixelRows(frame.astype(np.int32), place.astype(np.int32), rows)


@eqx.filter_jit
def _indices(batches: Any, seed: Any, step: Any) -> Array:
    return batches.indices(seed, step)


class Prefetcher:
    """A thread that prepares up to `ahead` steps while the devices work on the present one."""

    def __init__(self, prepare: Callable[[int], PyTree], ahead: int = 3):
        self._prepare, self._ahead = prepare, ahead
        self._pool = ThreadPoolExecutor(1, "scenegraph-loader")
        self._coming: dict[int, Future] = {}

    def __call__(self, number: int) -> PyTree:
        """Waits for what `prepare` returns for a step; raises what it raised."""
        # Steps come in order; what has been submitted before is on its way already.
        for coming in range(number, number + self._ahead + 1):
            if coming not in self._coming:
                self._coming[coming] = self._pool.submit(self._prepare, coming)
        return self._coming.pop(number).result()

    def close(self) -> None:
        """Ends the thread."""
        self._pool.shutdown(cancel_futures=True)
