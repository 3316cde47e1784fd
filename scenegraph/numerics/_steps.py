"""Step functions: `edges` are the N+1 sorted bin edges, `weights` the N values between them.

All functions work on one ray; `vmap` them over rays.
"""

import jax.numpy as jnp

from .._typing import Array, Float


def midpoints(edges: Float[Array, " edges"]) -> Float[Array, " edges-1"]:
    """Computes the middle of every interval."""
    return 0.5 * (edges[1:] + edges[:-1])


def max_blur(weights: Float[Array, " samples"]) -> Float[Array, " samples"]:
    """Widens a histogram by the maximum of neighbours, then smooths it by their mean.

    The result is an upper envelope of the weights, so that resampling from it does not miss a
    thin surface beside the interval in which it was seen.

    **Source:** mip-NeRF (Barron et al. 2021), equation 18.
    """
    # w'_k = (max(w_{k-1}, w_k) + max(w_k, w_{k+1})) / 2
    padded = jnp.concatenate([weights[:1], weights, weights[-1:]])
    larger = jnp.maximum(padded[:-1], padded[1:])
    return 0.5 * (larger[:-1] + larger[1:])


def cumulative(weights: Float[Array, " samples"]) -> Float[Array, " samples+1"]:
    """Computes the distribution function of a histogram at its edges, from exactly 0 to exactly 1.

    **Source:** `sorted_piecewise_constant_pdf` of the published mip-NeRF code.
    """
    # p_k = (w_k + missing / n) / (total + missing), F_k = sum_{i<k} p_i
    total = jnp.sum(weights)
    missing = jnp.maximum(0, 1e-5 - total)
    density = (weights + missing / weights.shape[0]) / (total + missing)
    inner = jnp.minimum(1, jnp.cumsum(density[:-1]))
    return jnp.concatenate([jnp.zeros_like(inner, shape=1), inner, jnp.ones_like(inner, shape=1)])


def inverse_cdf(
    edges: Float[Array, " edges"], cdf: Float[Array, " edges"], u: Float[Array, " n"]
) -> Float[Array, " n"]:
    """Inverts a piecewise linear distribution function."""
    # With F(t_k) <= u < F(t_{k+1}): t = t_k + (u - F_k) / (F_{k+1} - F_k) (t_{k+1} - t_k)
    upper = jnp.searchsorted(cdf[1:-1], u, side="right", method="compare_all") + 1
    lower = upper - 1
    width = cdf[upper] - cdf[lower]
    fraction = jnp.where(width > 0, (u - cdf[lower]) / jnp.where(width > 0, width, 1), 0)
    return edges[lower] + jnp.clip(fraction, 0, 1) * (edges[upper] - edges[lower])
