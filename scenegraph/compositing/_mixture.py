"""Several media in one place."""

import jax
import jax.numpy as jnp

from .._typing import Array, Float
from ..numerics import safe_normalise
from ..rays import Medium


# The least density of each medium in a mixture of colours: where there is next to nothing, the
# mixture is even, and its derivative stays far from overflow.
_TRACE = 1e-12


def mix_media(media: Medium) -> Medium:
    """Sums media in one place, given along a leading axis.

    Densities and normals add; colours mix in proportion to density:
    `rgb = sum(d_i rgb_i) / sum(d_i)`.
    """
    if media.density.shape[0] == 1:
        return jax.tree.map(lambda x: x.reshape(x.shape[1:]), media)
    return mixture(jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(amounts)(media)))


def amounts(medium: Medium) -> tuple[Float[Array, "*samples"], Medium]:
    """Returns what adds up where media mix: `d + e`, `d`, `(d + e) rgb` and the normal."""
    amount = medium.density + _TRACE
    return amount, Medium(medium.density, amount[..., None] * medium.rgb, medium.normal)


def mixture(sums: tuple[Float[Array, "*samples"], Medium]) -> Medium:
    """Returns the medium whose `amounts` are given."""
    amount, medium = sums
    # Where no medium was queried, there is none.
    rgb = medium.rgb / jnp.maximum(amount, _TRACE)[..., None]
    return Medium(medium.density, rgb, medium.normal)


def with_unit_normals(medium: Medium) -> Medium:
    """Returns a medium whose normal, if it has one, has length one, or zero."""
    if medium.normal is None:
        return medium
    return Medium(medium.density, medium.rgb, safe_normalise(medium.normal))
