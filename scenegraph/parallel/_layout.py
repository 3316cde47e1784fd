"""The arrays of a fit, laid out over devices."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, Sharding, SingleDeviceSharding

from .._typing import Array, Device, PyTree
from ._devices import cut_over, device_mesh, whole_on


# 64 MiB, and as much again for each of Adam's moments.
_CUT_FROM = 2**24


@dataclasses.dataclass(frozen=True)
class Layout:
    """The layout of a fit's arrays: each device has its own rays, and all of the scene.

    Only arrays of the scene that are very large, such as a grid's table, are cut along their first
    axis, and so are the optimiser's moments of them; each step then gathers the scene's.

    **Arguments:**

    - `devices`: the devices that share the work; `None` for all of all processes.
    - `cut_from`: the size from which on arrays are cut, if the number of devices divides their
      first axis.
    """

    devices: tuple[Device, ...] | None = None
    cut_from: int = _CUT_FROM

    @property
    def mesh(self) -> Mesh | None:
        """The devices as a mesh; `None` for one."""
        return device_mesh(jax.devices() if self.devices is None else self.devices)

    @property
    def processes(self) -> tuple[int, ...]:
        """The processes that take part, in order."""
        if self.mesh is None:
            return (jax.process_index(),)
        return tuple(sorted({device.process_index for device in self.mesh.devices.flat}))

    def is_first(self) -> bool:
        """Returns true in the first of the processes."""
        return jax.process_index() == self.processes[0]

    def sharers(self) -> int:
        """Counts the devices that share one memory: one, unless they are parts of the host."""
        local = () if self.mesh is None else self.mesh.local_devices
        return max(1, sum(device.platform == "cpu" for device in local))

    def place(self, state: PyTree) -> PyTree:
        """Puts the state of a fit, the same in all processes, on its devices.

        With one device that nobody has chosen, nothing is moved.
        """
        return self._put(state, self._sharding)

    def copy(self, data: PyTree) -> PyTree:
        """Puts all of some data, the same in all processes, on every device."""
        return self._put(data, lambda leaf: self._whole())

    def keep(self, state: PyTree) -> PyTree:
        """Keeps the state as `place` put it, inside a compiled function."""
        return state if self.mesh is None else _constrain(state, self._sharding)

    def cut(self, batch: PyTree) -> PyTree:
        """Lets every device make its own part of a batch, inside a compiled function.

        Arrays whose first axis the number of devices does not divide are made by all.
        """
        mesh = self.mesh
        if mesh is None:
            return batch
        return _constrain(batch, lambda x: cut_over(mesh) if _divides(mesh, x) else whole_on(mesh))

    def send(self, shape: tuple[int, ...], read: Callable[[slice], np.ndarray]) -> Array:
        """Sends an array that `read` reads by parts of the first axis to the devices.

        Each gets its own part if that can be; a process reads only the parts of its own devices.
        """
        mesh = self.mesh
        if mesh is None:
            where = None if self.devices is None else self._whole()
            return jax.device_put(read(slice(None)), where)
        known = functools.cache(lambda start, stop: read(slice(start, stop)))
        where = cut_over(mesh) if shape[0] % mesh.size == 0 else whole_on(mesh)
        part = lambda index: known(index[0].start, index[0].stop)
        return jax.make_array_from_callback(shape, where, part)

    def _whole(self) -> Sharding:
        if self.mesh is not None:
            return whole_on(self.mesh)
        return SingleDeviceSharding((self.devices or jax.devices())[0])

    def _sharding(self, leaf: Array) -> Sharding:
        mesh = self.mesh
        if mesh is not None and leaf.size >= self.cut_from and _divides(mesh, leaf):
            return cut_over(mesh)
        return self._whole()

    def _put(self, tree: PyTree, sharding) -> PyTree:
        if self.mesh is None and self.devices is None:
            return tree
        return jax.tree.map(lambda x: _put(x, sharding(x)) if _is_placed(x) else x, tree)


def as_layout(devices: Sequence[Device] | Layout | None) -> Layout:
    """Returns the layout over some devices, or over all; a layout stays as it is."""
    if isinstance(devices, Layout):
        return devices
    return Layout(None if devices is None else tuple(devices))


def gather_whole(tree: PyTree) -> PyTree:
    """Gathers all of every array in every process: for files. All processes must call it.

    **Arguments:**

    - `tree`: any tree, such as the state of a fit of several processes.

    **Returns:**

    The tree; arrays that this process can read already stay as they are.
    """

    def gather(leaf):
        if not _is_placed(leaf) or leaf.is_fully_addressable or leaf.is_fully_replicated:
            return leaf
        return _move(leaf, whole_on(leaf.sharding.mesh))

    return jax.tree.map(gather, tree)


def _is_placed(leaf) -> bool:
    return isinstance(leaf, jax.Array)


def _divides(mesh: Mesh, leaf: Array) -> bool:
    return leaf.ndim > 0 and leaf.shape[0] > 0 and leaf.shape[0] % mesh.size == 0


def _constrain(tree: PyTree, sharding) -> PyTree:
    def constrain(leaf):
        return jax.lax.with_sharding_constraint(leaf, sharding(leaf)) if _is_placed(leaf) else leaf

    return jax.tree.map(constrain, tree)


def _move(leaf: Array, sharding: Sharding) -> Array:
    """Moves an array between the devices of several processes, all of which must call this."""
    return jax.jit(_same, out_shardings=sharding)(leaf)


# Not a lambda, which would be compiled anew every time.
def _same(leaf: Array) -> Array:
    return leaf


def _put(leaf: Array, sharding: Sharding) -> Array:
    if leaf.committed and leaf.sharding == sharding:
        return leaf
    if not leaf.is_fully_addressable:
        return _move(leaf, sharding)
    if sharding.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = _put(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    known = np.asarray(leaf)
    return jax.make_array_from_callback(known.shape, sharding, lambda index: known[index])
