"""What is said of a ray besides colour, opacity and mean depth: median depth and normal."""

import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import inverse_cdf, safe_divide, safe_normalise


def median_depth(
    weights: Float[Array, " samples"], edges: Float[Array, " samples+1"], empty: Scalar
) -> Scalar:
    """Where half of a ray's opacity has been met, the weights being spread over their intervals.

    Unlike the mean it does not lie between a thing and what is seen behind its edge.

    **Arguments:**

    - `weights`: of the intervals.
    - `edges`: in `t`.
    - `empty`: the depth of a ray on which nothing is.

    **Returns:**

    A value of `t` between the first and the last edge.
    """
    met = jnp.concatenate([jnp.zeros_like(weights, shape=1), jnp.cumsum(weights)])
    return median_between(met, edges, empty)


def median_between(
    met: Float[Array, " edges"], edges: Float[Array, " edges"], empty: Scalar
) -> Scalar:
    """Where an opacity that grows linearly between bin edges is half of what it comes to.

    **Arguments:**

    - `met`: the opacity of what lies before each bin edge: from zero, not falling.
    - `edges`: the bin edges, sorted.
    - `empty`: the value where the opacity stays zero.

    **Returns:**

    A value of `t`.
    """
    share = safe_divide(met, jnp.broadcast_to(met[-1], met.shape))
    middle = inverse_cdf(edges, share, jnp.full_like(share, 0.5, shape=1))[0]
    return jnp.where(met[-1] > 0, middle, empty)


def median_layer(
    weights: Float[Array, " layers"], t: Float[Array, " layers"], empty: Scalar
) -> Scalar:
    """The layer at which half of a ray's opacity has been met.

    **Arguments:**

    - `weights`: of the layers.
    - `t`: where they are, from near to far.
    - `empty`: the depth of a ray that meets none.

    **Returns:**

    One of `t`, or `empty`.
    """
    met = jnp.concatenate([jnp.zeros_like(weights, shape=1), jnp.cumsum(weights)])
    reached = (met[1:] >= met[-1] / 2) & (met[:-1] < met[-1] / 2)
    return jnp.where(met[-1] > 0, jnp.sum(jnp.where(reached, t, 0)), empty)


def mean_normal(weights: Float[Array, " samples"], normals: Float[Array, "samples 3"]) -> Vector:
    """The direction in which most of what a ray sees is turned.

    **Arguments:**

    - `weights`: of samples or layers.
    - `normals`: of them.

    **Returns:**

    Their weighted sum, made as long as one; zero where nothing is.
    """
    return safe_normalise(jnp.sum(weights[:, None] * normals, axis=0))
