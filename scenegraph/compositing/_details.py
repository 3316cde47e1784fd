"""Median depth and mean normal of a ray, which are computed only where they are requested."""

import jax.numpy as jnp

from .._typing import Array, Float, Scalar, Vector
from ..numerics import inverse_cdf, safe_divide, safe_normalise


def median_depth(
    weights: Float[Array, " samples"], edges: Float[Array, " samples+1"], empty: Scalar
) -> Scalar:
    """Finds the `t` at which half of a ray's opacity is reached; `empty` without opacity."""
    # Unlike the mean it does not lie between a thing and what is seen behind its edge.
    opacity = jnp.concatenate([jnp.zeros_like(weights, shape=1), jnp.cumsum(weights)])
    return median_between(opacity, edges, empty)


def median_between(
    opacity: Float[Array, " edges"], edges: Float[Array, " edges"], empty: Scalar
) -> Scalar:
    """Finds where an opacity that grows linearly between bin edges is half of its last value."""
    # F(t) = opacity(t) / opacity(end) = 1/2
    share = safe_divide(opacity, jnp.broadcast_to(opacity[-1], opacity.shape))
    middle = inverse_cdf(edges, share, jnp.full_like(share, 0.5, shape=1))[0]
    return jnp.where(opacity[-1] > 0, middle, empty)


def median_layer(
    weights: Float[Array, " layers"], t: Float[Array, " layers"], empty: Scalar
) -> Scalar:
    """Finds the `t` of the layer at which half of a ray's opacity is reached."""
    opacity = jnp.concatenate([jnp.zeros_like(weights, shape=1), jnp.cumsum(weights)])
    # The j with sum_{i<j} w_i < half <= sum_{i<=j} w_i.
    half = opacity[-1] / 2
    reached = (opacity[1:] >= half) & (opacity[:-1] < half)
    return jnp.where(opacity[-1] > 0, jnp.sum(jnp.where(reached, t, 0)), empty)


def mean_normal(weights: Float[Array, " samples"], normals: Float[Array, "samples 3"]) -> Vector:
    """Computes `sum(w n) / |sum(w n)|`; zero where nothing is."""
    return safe_normalise(jnp.sum(weights[:, None] * normals, axis=0))
