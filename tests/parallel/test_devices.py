"""Rows and the devices that share them, on one device; `fit/test_devices.py` has several."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from scenegraph.parallel import device_mesh, map_over_devices, mesh_of, pad_rows, sum_over_devices


ROWS = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def of_one() -> Mesh:
    """What `device_mesh` makes of more."""
    return Mesh(np.asarray(jax.devices()[:1]), ("rays",))


def test_a_single_device_needs_no_mesh():
    assert device_mesh(jax.devices()[:1]) is None
    assert mesh_of((jnp.ones(3), np.ones(2), "text")) is None
    assert mesh_of(jax.device_put(jnp.ones(3), jax.devices()[0])) is None


def test_no_devices_are_an_error():
    with pytest.raises(ValueError, match="`devices` is empty"):
        device_mesh([])


def test_rows_are_summed_and_mapped():
    weigh = lambda shared, rows: shared["factor"] * rows.sum(axis=1)
    shared = {"factor": jnp.array(2.0), "name": "not an array"}
    total = sum_over_devices(lambda s, r: weigh(s, r).sum(), shared, jnp.asarray(ROWS), of_one())
    assert total == 2 * ROWS.sum()
    for mesh in (None, of_one()):
        mapped = map_over_devices(weigh, shared, jnp.asarray(ROWS), mesh)
        np.testing.assert_array_equal(mapped, 2 * ROWS.sum(axis=1))


def test_gradient_of_a_sum():
    def loss(factor):
        return sum_over_devices(lambda s, r: jnp.sum(s * r**2), factor, jnp.asarray(ROWS), of_one())

    assert jax.grad(loss)(jnp.array(3.0)) == np.sum(ROWS**2)


def test_rows_that_fit_are_not_padded():
    rows, real = pad_rows(jnp.asarray(ROWS), of_one())
    assert real is None and rows.shape == ROWS.shape
