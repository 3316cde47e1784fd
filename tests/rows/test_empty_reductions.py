"""Reductions of nothing, natively: what `jax.vmap` makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from scenegraph.rows import map_rows


REDUCTIONS = {
    "sum": lambda x: jnp.sum(x, axis=0),
    "product": lambda x: jnp.prod(x, axis=0),
    "all": lambda x: jnp.all(x > 0, axis=0),
    "any": lambda x: jnp.any(x > 0, axis=0),
}


@pytest.mark.parametrize("name", [*REDUCTIONS, "largest", "least"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_nothing_is_reduced_as_elsewhere(name, dtype):
    if name in ("largest", "least"):
        reduce = {"largest": np.maximum, "least": np.minimum}[name]
        ends = np.iinfo(dtype) if dtype is np.int32 else None
        number = {"largest": -np.inf, "least": np.inf}[name]
        expected = number if ends is None else {"largest": ends.min, "least": ends.max}[name]
        one = lambda _, x: jax.lax.reduce(
            x[:0, None] * jnp.ones(3, dtype),
            jnp.asarray(expected, dtype),
            {"largest": lax.max, "least": lax.min}[name],
            (0,),
        )
        assert reduce(dtype(3), np.asarray(expected, dtype)) == 3
    else:
        one = lambda _, x: REDUCTIONS[name](x[:0, None] * jnp.ones(3, dtype))
    rows = jnp.arange(8, dtype=dtype).reshape(4, 2)
    found = jax.jit(lambda x: map_rows(one, None, x))(rows)
    expected = jax.vmap(lambda x: one(None, x))(rows)
    np.testing.assert_array_equal(found, expected)
    text = jax.jit(lambda x: map_rows(one, None, x)).lower(rows).as_text()
    assert "custom_call" in text
