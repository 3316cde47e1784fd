"""Rows, such as rays, shared by devices: each works on its own."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from .._typing import Array, Bool, Device, PyTree


# The one axis of the mesh.
_AXIS = "rays"
_WHOLE, _CUT = PartitionSpec(), PartitionSpec(_AXIS)


def device_mesh(devices: Sequence[Device]) -> Mesh | None:
    """Makes a mesh with one axis, `rays`; `None` for a single device, whose programs need none."""
    if not devices:
        raise ValueError("`devices` is empty; at least one is needed, or `None` for all.")
    ordered = sorted(devices, key=lambda device: (device.process_index, device.id))
    return Mesh(np.asarray(ordered), (_AXIS,)) if len(devices) > 1 else None


def mesh_of(tree: PyTree) -> Mesh | None:
    """Returns the devices to which arrays were put, such as by a fit, or all of this process."""
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array) and leaf.committed:
            return device_mesh(list(leaf.sharding.device_set))
    return device_mesh(jax.local_devices())


def sum_over_devices(
    function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree, mesh: Mesh
) -> PyTree:
    """Adds up `function(shared, part)` over the devices' parts of rows (see `pad_rows`)."""

    def summed(shared: PyTree, rows: PyTree) -> PyTree:
        return jax.lax.psum(function(shared, rows), _AXIS)

    return _on_devices(summed, shared, rows, mesh, _WHOLE)


def map_over_devices(
    function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree, mesh: Mesh | None
) -> PyTree:
    """Computes `function(shared, rows)`, row by row, on the devices that have the rows."""
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
    """Repeats the last row until devices divide them; marks the others, or returns `None`."""
    count = jax.tree.leaves(rows)[0].shape[0]
    more = -count % mesh.size
    if not more:
        return rows, None
    place = jnp.minimum(jnp.arange(count + more), count - 1)
    return jax.tree.map(lambda x: x[place], rows), jnp.arange(count + more) < count


def with_automatic_axes(function: Callable[[Any], PyTree], tree: PyTree) -> PyTree:
    """Calls a function of traced arrays; where they lie explicitly on a mesh, JAX lays out others.

    Inside of the function the mesh is one whose axes are automatic. What it returns is whole on
    every device, but for an axis that `jax.vmap` took and that is cut over devices.
    """
    leaves, structure = jax.tree.flatten(tree)
    places = [i for i, x in enumerate(leaves) if _lies_explicitly(x)]
    if not places:
        return function(tree)

    def of_these(*arrays: Array) -> PyTree:
        every = dict(zip(places, arrays, strict=True))
        filled = [every.get(i, x) for i, x in enumerate(leaves)]
        return function(jax.tree.unflatten(structure, filled))

    mesh = jax.typeof(leaves[places[0]]).sharding.mesh
    with jax.sharding.use_abstract_mesh(mesh):
        call = jax.sharding.auto_axes(of_these, out_sharding=_WHOLE)
        return call(*(leaves[i] for i in places))


def _lies_explicitly(x: Any) -> bool:
    """Returns true for a traced array on a mesh with explicit axes."""
    return isinstance(x, Tracer) and AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types


def is_on_explicit_mesh(tree: PyTree) -> bool:
    """Returns true if arrays were put on a mesh with explicit axes."""
    meshes = (getattr(x.sharding, "mesh", None) for x in jax.tree.leaves(tree) if _is_array(x))
    return any(AxisType.Explicit in mesh.axis_types for mesh in meshes if mesh is not None)


def _is_array(x: Any) -> bool:
    return isinstance(x, jax.Array) and not isinstance(x, Tracer)


def whole_on(mesh: Mesh) -> NamedSharding:
    """Returns the sharding of arrays of which every device has all."""
    return NamedSharding(mesh, _WHOLE)


def cut_over(mesh: Mesh) -> NamedSharding:
    """Returns the sharding of arrays of which every device has a part of the first axis."""
    return NamedSharding(mesh, _CUT)
