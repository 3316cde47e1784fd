"""Maps over rows that share an operand as large as a picture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scenegraph.rows import _lower, map_rows
from support.helpers import assert_close


def read(texels, place):
    """A row's own value of a large table, and a function of it that is not linear."""
    at = (place * texels.shape[0]).astype(int) % texels.shape[0]
    return jnp.sin(texels[at]) * place + texels[-1 - at] ** 2


@pytest.mark.parametrize("rows", [7, 1024])
def test_derivatives_are_those_of_vmap(rows, monkeypatch):
    # Several blocks, so that their cotangents are added.
    monkeypatch.setattr(_lower, "_VMAP_NUMBERS", 2**8)
    draw = np.random.default_rng(0)
    texels = jnp.asarray(draw.normal(size=2000), jnp.float32)
    places = jnp.asarray(draw.uniform(size=rows), jnp.float32)
    mapped = lambda t, p: jnp.sum(jnp.cos(map_rows(read, t, p)))
    expected = lambda t, p: jnp.sum(jnp.cos(jax.vmap(read, (None, 0))(t, p)))
    both = [jax.grad(f, (0, 1))(texels, places) for f in (mapped, expected)]
    for ours, theirs in zip(*both, strict=True):
        assert_close(ours, theirs, 1e-6)
    along = jnp.asarray(draw.normal(size=2000), jnp.float32)
    slope = lambda f: jax.grad(lambda t: f(t, places))
    second = [jax.jvp(slope(f), (texels,), (along,))[1] for f in (mapped, expected)]
    assert_close(*second, 1e-5)
