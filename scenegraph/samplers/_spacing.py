import abc

import jax
import jax.numpy as jnp

from .._typing import Array, Float, RandomKey, Scalar
from ..numerics import AbstractModule, midpoints


class AbstractSpacing(AbstractModule):
    """The spacing of a ray's first samples between its ends."""

    @abc.abstractmethod
    def __call__(self, near: Scalar, far: Scalar, count: int) -> Float[Array, " edges"]:
        """Computes the bin edges of `count` intervals.

        **Arguments:**

        - `near`, `far`: the ends, in `t`.
        - `count`: the number of intervals; static.

        **Returns:**

        The edges in `t`, sorted, `count + 1` of them.
        """


class Uniform(AbstractSpacing):
    """Intervals of equal length."""

    def __call__(self, near: Scalar, far: Scalar, count: int) -> Float[Array, " edges"]:
        # t_i = (1 - i / n) near + i / n far
        s = jnp.linspace(0, 1, count + 1, dtype=jnp.result_type(near))
        return near * (1 - s) + far * s


class Disparity(AbstractSpacing):
    """Intervals of equal length in `1 / t`; `near` must be positive."""

    def __call__(self, near: Scalar, far: Scalar, count: int) -> Float[Array, " edges"]:
        s = jnp.linspace(0, 1, count + 1, dtype=jnp.result_type(near))
        # 1/t is linear between 1/near and 1/far
        return 1 / (1 / near * (1 - s) + 1 / far * s)


def stratify(edges: Float[Array, " edges"], u: Float[Array, " edges"]) -> Float[Array, " edges"]:
    """Moves every bin edge to a random place between the middles of its neighbours."""
    # t_i = lower_i + (upper_i - lower_i) u_i, as `sample_along_rays` of the published mip-NeRF code
    middles = midpoints(edges)
    upper = jnp.concatenate([middles, edges[-1:]])
    lower = jnp.concatenate([edges[:1], middles])
    return lower + (upper - lower) * u


def sample_edges(
    spacing: AbstractSpacing, near: Scalar, far: Scalar, count: int, *, key: RandomKey | None = None
) -> Float[Array, " edges"]:
    """Places the edges of a ray's first intervals: regular, or jittered if a key is given."""
    edges = spacing(near, far, count)
    if key is None:
        return edges
    return stratify(edges, jax.random.uniform(key, edges.shape, edges.dtype))
