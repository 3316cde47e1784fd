"""What rays share with their bundle."""

import jax
import jax.numpy as jnp
import numpy as np

from scenegraph.visibility._search import _to_rows


def test_what_bundles_have_is_repeated_by_a_broadcast():
    rows, values = (jnp.zeros((12, 3)), jnp.ones(12)), jnp.arange(12.0).reshape(4, 3)
    for x in (values, values[:, 0], values > 5):
        np.testing.assert_array_equal(_to_rows(x, rows), np.repeat(np.asarray(x), 3, axis=0))
    # No look-up, which every turn of a search would do.
    repeated = jax.make_jaxpr(lambda x: _to_rows(x, rows))(values)
    assert {x.primitive.name for x in repeated.jaxpr.eqns} == {"broadcast_in_dim", "reshape"}
