"""Compositing of samples in one list, ray after ray, instead of a row for every ray."""

import dataclasses

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int
from ..numerics import safe_divide, safe_normalise, sums_before
from ..rays import Medium, Radiance, Span


def composite_listed(
    medium: Medium,
    optical_depth: Float[Array, " listed"],
    t: Float[Array, " listed"],
    ray: Int[Array, " listed"],
    spans: Span,
    *,
    most: int,
) -> Radiance:
    """What many rays see of a medium, before any background.

    **Arguments:**

    - `medium`: density and colour of all samples, sorted by ray, and along each ray.
    - `optical_depth`: of the samples; zero for those that do not count.
    - `t`: the samples' middles.
    - `ray`: to which each sample belongs.
    - `spans`: of the rays.
    - `most`: no ray has more samples; static. Keyword only argument.

    **Returns:**

    The radiance; its colour is premultiplied by opacity, and its one interval is the whole span.
    """
    weights = listed_weights(optical_depth, ray, most)
    parts = jnp.concatenate([medium.rgb, jnp.ones_like(medium.rgb[:, :1]), t[:, None]], axis=1)
    sums = jax.ops.segment_sum(
        weights[:, None] * parts, ray, spans.near.shape[0], indices_are_sorted=True
    )
    alpha = sums[:, 3]
    mean = jnp.where(alpha > 0, jax.vmap(safe_divide)(sums[:, 4], alpha), spans.far)
    return Radiance(
        rgb=sums[:, :3],
        alpha=alpha,
        depth=jnp.clip(mean, spans.near, spans.far),
        weights=alpha[:, None],
        edges=jnp.stack([spans.near, spans.far], axis=1),
    )


def listed_details(
    seen: Radiance,
    normals: Float[Array, "listed 3"],
    optical_depth: Float[Array, " listed"],
    parts: Span,
    ray: Int[Array, " listed"],
    *,
    most: int,
) -> Radiance:
    """Adds normal and median depth to what `composite_listed` found.

    **Arguments:**

    - `seen`: of all rays.
    - `normals`: of all samples.
    - `optical_depth`, `ray`, `most`: as there.
    - `parts`: the samples' ends, in `t`.

    **Returns:**

    The radiance.
    """
    weights, rays = listed_weights(optical_depth, ray, most), seen.alpha.shape[0]
    mean = jax.ops.segment_sum(weights[:, None] * normals, ray, rays, indices_are_sorted=True)
    missing = seen.alpha[ray] / 2 - sums_before(weights, ray, most)
    share = jnp.clip(jax.vmap(safe_divide)(missing, weights), 0, 1)
    reached = parts.near + share * (parts.far - parts.near)
    # The last place that a sample before the half comes to.
    reached = jnp.where((weights > 0) & (missing > 0), reached, -jnp.inf)
    median = jax.ops.segment_max(reached, ray, rays, indices_are_sorted=True)
    median = jnp.where(seen.alpha > 0, median, seen.edges[:, 1])
    return dataclasses.replace(seen, normal=safe_normalise(mean), median_depth=median)


def listed_weights(
    optical_depth: Float[Array, " listed"], ray: Int[Array, " listed"], most: int
) -> Float[Array, " listed"]:
    """Each sample's share in the colour of its ray.

    **Arguments:**

    - `optical_depth`: of the samples.
    - `ray`: to which each belongs, in order.
    - `most`: no ray has more samples; static.

    **Returns:**

    As `interval_weights` gives them, ray by ray.
    """
    return -jnp.expm1(-optical_depth) * jnp.exp(-sums_before(optical_depth, ray, most))
