"""Occupied steps in one list of fixed length, against a naive loop over rays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.integrators._packed import pack_steps
from scenegraph.numerics import pack_bits


def naive(occupied, length):
    """The steps of each ray that finds space for all of its own, in order; and what is missing."""
    entries, missing, filled = [], [], 0
    for ray, row in enumerate(occupied):
        filled += row.sum()
        missing.append(0 if filled <= length else row.sum())
        if filled <= length:
            entries += [(ray, step) for step in np.flatnonzero(row)]
    return entries, missing


@pytest.mark.parametrize("length", [1, 7, 40, 200])
@pytest.mark.parametrize("steps", [3, 32, 70])
def test_whole_rays_are_packed_in_order(steps, length):
    rng = np.random.default_rng(steps)
    occupied = rng.uniform(size=(9, steps)) < rng.uniform(size=(9, 1))
    words = jax.vmap(pack_bits)(jnp.asarray(occupied))
    packed = jax.jit(pack_steps, static_argnums=(1, 2))(words, steps, length)
    entries, missing = naive(occupied, length)
    packed = jax.tree.map(np.asarray, packed)
    valid = packed.valid
    found = list(zip(packed.ray[valid].tolist(), packed.step[valid].tolist(), strict=True))
    assert found == entries and packed.valid.shape == (length,)
    np.testing.assert_array_equal(packed.missing, missing)
    np.testing.assert_array_equal(packed.requested, occupied.sum(axis=1))
    unused = ~valid
    assert np.all(np.diff(packed.ray) >= 0) and np.all(packed.step[unused] == steps - 1)
