"""The division of samples along many rays into blocks."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Float, PyTree
from ..numerics import choose_block


# Samples in a block, and consecutive ones of one ray among them.
_BLOCK = 1024
_RUN = 16


class SampleBlocks(NamedTuple):
    """The division of `rays samples` into blocks of about `_BLOCK`."""

    rays: int
    samples: int

    @property
    def run(self) -> int:
        """Samples of one ray in a block."""
        return min(_RUN, self.samples)

    @property
    def bundle(self) -> int:
        """Rays in a block."""
        return choose_block(_BLOCK) // self.run

    @property
    def runs(self) -> int:
        """Blocks along a ray."""
        return -(-self.samples // self.run)

    def map(
        self,
        function: Callable[[PyTree, Callable[[Array], PyTree], PyTree], PyTree],
        rays: PyTree,
        samples: PyTree,
        lists: PyTree,
    ) -> PyTree:
        """Maps a function over blocks of rays and samples, and their lists; returns it by sample.

        What rays have is one array for the function, and the function's second argument makes it
        the tree that it was: loops cost by their arrays, in compiling and in running.
        """
        packed, unpack = _pack(rays)
        one_block = lambda block: function(block[:2], unpack, block[2])
        rows = self._of_rays(packed), jax.tree.map(self._of_samples, samples), lists
        return self._restore(jax.lax.map(one_block, rows))

    def _of_rays(self, x: Array) -> Array:
        """Returns what rays have, by blocks: `blocks bundle`."""
        return jnp.repeat(self.bundles(x), self.runs, axis=0)

    def _of_samples(self, x: Array) -> Array:
        """Returns what samples have, by blocks: `blocks bundle run`."""
        # From (bundles, bundle, runs, run) to (bundles, runs, bundle, run), blocks being last.
        x = jnp.swapaxes(self.runs_of(x), 1, 2)
        return x.reshape(-1, self.bundle, self.run, *x.shape[4:])

    def runs_of(self, x: Array) -> Array:
        """Returns what samples have as `bundles bundle runs run`."""
        x = self.bundles(_repeat_last(x, self.runs * self.run, axis=1))
        return x.reshape(*x.shape[:2], self.runs, self.run, *x.shape[3:])

    def _restore(self, tree: PyTree) -> PyTree:
        """Returns what blocks have of samples, by rays and samples."""

        def one(x: Array) -> Array:
            x = x.reshape(-1, self.runs, self.bundle, self.run, *x.shape[3:])
            x = jnp.swapaxes(x, 1, 2)
            x = x.reshape(-1, self.runs * self.run, *x.shape[4:])
            return x[: self.rays, : self.samples]

        return jax.tree.map(one, tree)

    def bundles(self, x: Array) -> Array:
        """Returns what rays have as `bundles bundle`."""
        x = _repeat_last(x, -(-self.rays // self.bundle) * self.bundle, axis=0)
        return x.reshape(-1, self.bundle, *x.shape[1:])


def _pack(tree: PyTree) -> tuple[Float[Array, "rows _"], Callable[[Array], PyTree]]:
    """Joins the arrays of rows into one, and returns a function that undoes it."""
    leaves, structure = jax.tree.flatten(tree)
    looks = [(x.shape[1:], x.dtype) for x in leaves]
    ends = np.cumsum([math.prod(shape) for shape, _ in looks])[:-1]

    def unpack(packed: Array) -> PyTree:
        parts = zip(jnp.split(packed, ends, axis=1), looks, strict=True)
        own = [x.reshape(-1, *shape).astype(dtype) for x, (shape, dtype) in parts]
        return jax.tree.unflatten(structure, own)

    return jnp.concatenate([x.reshape(x.shape[0], -1) for x in leaves], axis=1), unpack


def _repeat_last(x: Array, length: int, axis: int) -> Array:
    """Repeats the last entry along an axis until it is long enough."""
    if x.shape[axis] == length:
        return x
    return jnp.take(x, jnp.minimum(jnp.arange(length), x.shape[axis] - 1), axis=axis)
