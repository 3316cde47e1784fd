"""Reductions of nothing, natively: what `jax.vmap` makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rows import map_rows


REDUCTIONS = {
    "sum": lambda x: jnp.sum(x, axis=0),
    "product": lambda x: jnp.prod(x, axis=0),
    "all": lambda x: jnp.all(x > 0, axis=0),
    "any": lambda x: jnp.any(x > 0, axis=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_nothing_is_reduced_as_elsewhere(name, dtype):
    one = lambda _, x: REDUCTIONS[name](x[:0, None] * jnp.ones(3, dtype))
    rows = jnp.arange(8, dtype=dtype).reshape(4, 2)
    found = jax.jit(lambda x: map_rows(one, None, x))(rows)
    expected = jax.vmap(lambda x: one(None, x))(rows)
    np.testing.assert_array_equal(found, expected)
    text = jax.jit(lambda x: map_rows(one, None, x)).lower(rows).as_text()
    assert "custom_call" in text
