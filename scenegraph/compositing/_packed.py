"""Compositing of samples in one packed list, ray after ray, instead of a row for every ray."""

import dataclasses

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int
from ..numerics import safe_divide, safe_normalise, segment_prefix_sums
from ..rays import Medium, Radiance, Span


def composite_packed(
    medium: Medium,
    optical_depth: Float[Array, " packed"],
    t: Float[Array, " packed"],
    ray: Int[Array, " packed"],
    spans: Span,
    *,
    most: int,
) -> Radiance:
    """Composites samples sorted by ray and `t`; no ray has more than `most`."""
    # rgb, alpha and the depth's numerator are sums of w_i (rgb_i, 1, t_i) over a ray's samples.
    weights = packed_weights(optical_depth, ray, most)
    parts = jnp.concatenate([medium.rgb, jnp.ones_like(medium.rgb[:, :1]), t[:, None]], axis=1)
    sums = jax.ops.segment_sum(
        weights[:, None] * parts, ray, spans.near.shape[0], indices_are_sorted=True
    )
    alpha = sums[:, 3]
    mean = jnp.where(alpha > 0, jax.vmap(safe_divide)(sums[:, 4], alpha), spans.far)
    # Losses see one interval a ray: the whole span.
    return Radiance(
        rgb=sums[:, :3],
        alpha=alpha,
        depth=jnp.clip(mean, spans.near, spans.far),
        weights=alpha[:, None],
        edges=jnp.stack([spans.near, spans.far], axis=1),
    )


def packed_details(
    radiance: Radiance,
    normals: Float[Array, "packed 3"],
    optical_depth: Float[Array, " packed"],
    parts: Span,
    ray: Int[Array, " packed"],
    *,
    most: int,
) -> Radiance:
    """Adds normals and median depths to the result of `composite_packed`."""
    weights, rays = packed_weights(optical_depth, ray, most), radiance.alpha.shape[0]
    mean = jax.ops.segment_sum(weights[:, None] * normals, ray, rays, indices_are_sorted=True)
    # The opacity that is missing to half of the ray's is reached in the sample whose weight exceeds
    # it, at that share of the sample's interval: the last place before the half that is reached.
    missing = radiance.alpha[ray] / 2 - segment_prefix_sums(weights, ray, most)
    share = jnp.clip(jax.vmap(safe_divide)(missing, weights), 0, 1)
    reached = parts.near + share * (parts.far - parts.near)
    reached = jnp.where((weights > 0) & (missing > 0), reached, -jnp.inf)
    median = jax.ops.segment_max(reached, ray, rays, indices_are_sorted=True)
    median = jnp.where(radiance.alpha > 0, median, radiance.edges[:, 1])
    return dataclasses.replace(radiance, normal=safe_normalise(mean), median_depth=median)


def packed_weights(
    optical_depth: Float[Array, " packed"], ray: Int[Array, " packed"], most: int
) -> Float[Array, " packed"]:
    """Computes `interval_weights` ray by ray."""
    # w_i = (1 - exp(-tau_i)) exp(-sum_{j<i} tau_j)
    return -jnp.expm1(-optical_depth) * jnp.exp(-segment_prefix_sums(optical_depth, ray, most))
