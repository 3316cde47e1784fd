"""Many rows, such as rays, worked on by many devices: each has its own rows."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .._typing import Array, Bool, Device, PyTree


# The one axis of the mesh.
_AXIS = "rays"
_WHOLE, _CUT = PartitionSpec(), PartitionSpec(_AXIS)


def device_mesh(devices: Sequence[Device]) -> Mesh | None:
    """The devices that share the rows of a computation.

    **Arguments:**

    - `devices`: one or more, in any order.

    **Returns:**

    A mesh with one axis, `rays`; `None` for a single device, whose programs need none.

    **Errors:**

    `ValueError` if there are none.
    """
    if not devices:
        raise ValueError("`devices` is empty; at least one is needed, or `None` for all.")
    ordered = sorted(devices, key=lambda device: (device.process_index, device.id))
    return Mesh(np.asarray(ordered), (_AXIS,)) if len(devices) > 1 else None


def mesh_of(tree: PyTree) -> Mesh | None:
    """The devices that are to work with some arrays.

    **Arguments:**

    - `tree`: of arrays that are not being traced.

    **Returns:**

    Those to which arrays were put, such as those of a fit; where none was, all of this process.
    """
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and leaf.committed:
            return device_mesh(list(leaf.sharding.device_set))
    return device_mesh(jax.local_devices())


def sum_over_devices(
    function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree, mesh: Mesh
) -> PyTree:
    """Adds up what a function makes of every device's part of the rows.

    **Arguments:**

    - `function`: called as `function(shared, some_rows)`; returns a tree of arrays, all of which
      are added up.
    - `shared`: what all devices use.
    - `rows`: arrays with one leading axis, which the number of devices divides (see `pad_rows`).
    - `mesh`: of the devices.

    **Returns:**

    The sums.
    """

    def summed(shared: PyTree, rows: PyTree) -> PyTree:
        return jax.lax.psum(function(shared, rows), _AXIS)

    return _on_devices(summed, shared, rows, mesh, _WHOLE)


def map_over_devices(
    function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree, mesh: Mesh | None
) -> PyTree:
    """Computes something for every row, on the device that has it.

    **Arguments:**

    - `function`: called as `function(shared, some_rows)`; returns a tree of arrays with a leading
      axis over its rows.
    - `shared`: what all devices use.
    - `rows`: arrays with one leading axis.
    - `mesh`: of the devices; `None` for one.

    **Returns:**

    What the function returns, for all rows.
    """
    if mesh is None:
        return function(shared, rows)
    count = jax.tree.leaves(rows)[0].shape[0]
    padded, _ = pad_rows(rows, mesh)
    results = _on_devices(function, shared, padded, mesh, _CUT)
    return jax.tree.map(lambda x: x[:count], results)


def _on_devices(
    function: Callable, shared: PyTree, rows: PyTree, mesh: Mesh, out: PartitionSpec
) -> PyTree:
    (shared, static), (rows, rest) = (eqx.partition(x, eqx.is_array) for x in (shared, rows))

    def local(shared: PyTree, rows: PyTree) -> PyTree:
        return function(eqx.combine(shared, static), eqx.combine(rows, rest))

    # Unchecked, because primitives such as that of `map_rows` do not say where results differ.
    everywhere = jax.shard_map(
        local, mesh=mesh, in_specs=(_WHOLE, _CUT), out_specs=out, check_vma=False
    )
    return everywhere(shared, rows)


def pad_rows(rows: PyTree, mesh: Mesh) -> tuple[PyTree, Bool[Array, " rows"] | None]:
    """Repeats the last row until the number of devices divides them.

    **Arguments:**

    - `rows`: arrays with one leading axis.
    - `mesh`: of the devices.

    **Returns:**

    The rows, and which of them are no repetitions; `None` where none is.
    """
    count = jax.tree.leaves(rows)[0].shape[0]
    more = -count % mesh.size
    if not more:
        return rows, None
    place = jnp.minimum(jnp.arange(count + more), count - 1)
    return jax.tree.map(lambda x: x[place], rows), jnp.arange(count + more) < count


def whole_on(mesh: Mesh) -> NamedSharding:
    """For arrays of which every device has all.

    **Arguments:**

    - `mesh`: of the devices.

    **Returns:**

    The sharding.
    """
    return NamedSharding(mesh, _WHOLE)


def cut_over(mesh: Mesh) -> NamedSharding:
    """For arrays of which every device has its own part of the first axis.

    **Arguments:**

    - `mesh`: of the devices.

    **Returns:**

    The sharding.
    """
    return NamedSharding(mesh, _CUT)
