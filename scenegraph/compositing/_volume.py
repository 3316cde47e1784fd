"""Volume rendering of one ray, in small steps: optical depths, transmittance, weights, sums."""

import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import midpoints, safe_divide, safe_norm
from ..rays import Medium, Radiance
from ._details import mean_normal, median_depth


def optical_depths(
    density: Float[Array, " samples"], edges: Float[Array, " samples+1"], direction: Vector
) -> Float[Array, " samples"]:
    """Computes the optical depth of each interval: density times length in space."""
    # tau_i = sigma_i (t_{i+1} - t_i) |d|
    return density * (jnp.diff(edges) * safe_norm(direction))


def transmittance(optical_depth: Float[Array, " samples"]) -> Float[Array, " samples"]:
    """Computes the part of the light from each interval's near end that reaches the eye.

    **Arguments:**

    - `optical_depth`: the intervals' optical depths, `samples`.

    **Returns:**

    `exp(-sum of the optical depths before the interval)`, `samples`; 1 for the first.
    """
    # T_i = exp(-sum_{j<i} tau_j)
    before = jnp.cumsum(optical_depth[:-1])
    return jnp.exp(-jnp.concatenate([jnp.zeros_like(before, shape=1), before]))


def interval_weights(optical_depth: Float[Array, " samples"]) -> Float[Array, " samples"]:
    """Computes each interval's share in the colour of the ray.

    Max (1995), equation 26; mip-NeRF (Barron et al. 2021), equation 3.
    """
    # w_i = (1 - exp(-tau_i)) T_i
    return (1 - jnp.exp(-optical_depth)) * transmittance(optical_depth)


def expected_depth(
    weights: Float[Array, " samples"], edges: Float[Array, " samples+1"], empty: Scalar
) -> Scalar:
    """Computes the weighted mean of the intervals' middles."""
    # sum_i w_i (t_i + t_{i+1}) / 2 / sum_i w_i
    opacity = jnp.sum(weights)
    mean = safe_divide(jnp.sum(weights * midpoints(edges)), opacity)
    return jnp.clip(jnp.where(opacity > 0, mean, empty), edges[0], edges[-1])


def composite(
    medium: Medium,
    edges: Float[Array, " edges"],
    direction: Vector,
    *,
    empty_depth_near: bool = False,
) -> Radiance:
    """Composites a medium along one ray, before any background.

    **Arguments:**

    - `medium`: density and colour of every interval.
    - `edges`: the intervals' bin edges, in `t`, `edges`.
    - `direction`: the ray's direction, not normalised, `3`.
    - `empty_depth_near`: if true, a ray that meets nothing has the depth of its near end, as the
      published mip-NeRF code computes it, instead of its far end. Keyword only argument.

    **Returns:**

    The radiance; its colour is premultiplied by opacity. It has normal and median depth if the
    medium has normals.
    """
    # C = sum_i w_i c_i, alpha = sum_i w_i = 1 - exp(-sum_i tau_i)
    weights = interval_weights(optical_depths(medium.density, edges, direction))
    empty = edges[0] if empty_depth_near else edges[-1]
    return Radiance(
        rgb=jnp.sum(weights[:, None] * medium.rgb, axis=0),
        alpha=jnp.sum(weights),
        depth=expected_depth(weights, edges, empty),
        weights=weights,
        edges=edges,
        normal=None if medium.normal is None else mean_normal(weights, medium.normal),
        median_depth=None if medium.normal is None else median_depth(weights, edges, empty),
    )


def over(rgb: Color, alpha: Scalar, background: Color) -> Color:
    """Puts a premultiplied colour in front of a background."""
    # C + (1 - alpha) B
    return rgb + (1 - alpha) * background
