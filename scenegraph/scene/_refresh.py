from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int, PyTree, RandomKey, Scalar, Vector
from ..numerics import choose_block, compact, is_frozen, is_tied, unfreeze
from ..rays import Gaussian
from ._ties import resolve_ties
from ._volume import Volume


# Cells whose densities are computed at a time, so that their features stay in the cache of a CPU.
_BLOCK = 2**12


def refresh_occupancy(scene: PyTree, *, key: RandomKey) -> PyTree:
    """Samples the density of fields anew, in some of the cells that are not marked empty.

    A cell gets `max(decay * old, new)`, with `new` its optical depth at a random place: one thin
    place does not empty it, and dense cells can become empty in time.

    **Arguments:**

    - `scene`: a scene, or any part of one. Volumes that have an occupancy, and are not frozen
      themselves, are changed.
    - `key`: the random key of cells and places. Keyword only argument.

    **Returns:**

    The scene with new occupancies.

    **Source:** Müller et al. 2022, "Instant neural graphics primitives", appendix C.
    """

    def is_node(node: Any) -> bool:
        return is_frozen(node) or is_tied(node) or isinstance(node, Volume)

    nodes, structure = jax.tree.flatten(scene, is_leaf=is_node)
    # With the values of tied leaves: they are read, and stay tied.
    opened = jax.tree.leaves(resolve_ties(scene, scene), is_leaf=is_node)
    keys = jax.random.split(key, len(nodes))
    fresh = [
        _refreshed(node, unfreeze(own), k) if has_occupancy(node) else node
        for node, own, k in zip(nodes, opened, keys, strict=True)
    ]
    return jax.tree.unflatten(structure, fresh)


def has_occupancy(node: Any) -> bool:
    """Returns true for a `Volume` with an occupancy."""
    return isinstance(node, Volume) and node.occupancy is not None


def _refreshed(volume: Volume, opened: Any, key: RandomKey) -> Volume:
    """Returns a volume with another occupancy, from its field without wrappers."""
    shape = opened.occupancy.thickness.shape
    old = opened.occupancy.thickness.reshape(-1)
    pick, place = jax.random.split(key)
    cells, valid = _some_cells(old >= 0, opened.occupancy.part, pick)
    lower, upper = opened.corners()
    edges = (upper - lower) / jnp.asarray(shape)
    corners = jnp.stack(jnp.unravel_index(cells, shape), axis=-1)
    points = lower + (corners + jax.random.uniform(place, corners.shape)) * edges

    def thickness(point: Vector) -> Scalar:
        nothing = jnp.zeros_like(point)
        at_point = Gaussian(point, nothing, nothing[0], nothing[0])
        # tau = sigma times the longest edge of a cell
        return opened.field.density(at_point) * jnp.max(edges)

    seen = jax.lax.map(thickness, points, batch_size=choose_block(_BLOCK))
    new = jnp.where(valid, jnp.maximum(opened.occupancy.decay * old[cells], seen), old[cells])
    # Places without a cell repeat one, and must not overwrite what it gets.
    fresh = old.at[jnp.where(valid, cells, old.size)].set(new, mode="drop").reshape(shape)
    return eqx.tree_at(_thickness, volume, fresh)


def _thickness(volume: Any) -> Array:
    """Returns the thickness array of a volume, frozen or not."""
    known = volume.occupancy
    return (known.value if is_frozen(known) else known).thickness


def _some_cells(
    possible: Bool[Array, " cells"], part: int, key: RandomKey
) -> tuple[Int[Array, " some"], Bool[Array, " some"]]:
    """Returns the next cells that are not marked empty, from a random one on."""
    # In turn from there on, so that the list holds no cell twice.
    start = jax.random.randint(key, (), 0, possible.size)
    found = compact(jnp.roll(possible, -start), max(1, possible.size // part))
    return (found.indices + start) % possible.size, found.valid
