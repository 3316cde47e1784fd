"""From densities to a colour, one ray at a time: a ladder of small functions."""

import jax.numpy as jnp

from .._typing import Array, Color, Float, Scalar, Vector
from ..numerics import midpoints, safe_divide, safe_norm
from ..rays import Medium, Radiance
from ._details import mean_normal, median_depth


def optical_depths(
    density: Float[Array, " samples"], edges: Float[Array, " samples+1"], direction: Vector
) -> Float[Array, " samples"]:
    """How much each interval absorbs: density times its length in space.

    **Arguments:**

    - `density`: per unit length.
    - `edges`: in `t`.
    - `direction`: of the ray, not normalised.

    **Returns:**

    `density * dt * |direction|`.
    """
    return density * (jnp.diff(edges) * safe_norm(direction))


def transmittance(optical_depth: Float[Array, " samples"]) -> Float[Array, " samples"]:
    """How much light from each interval's near end reaches the eye.

    **Arguments:**

    - `optical_depth`: of each interval.

    **Returns:**

    `exp(-sum of the optical depths before it)`; 1 for the first.
    """
    before = jnp.cumsum(optical_depth[:-1])
    return jnp.exp(-jnp.concatenate([jnp.zeros_like(before, shape=1), before]))


def interval_weights(optical_depth: Float[Array, " samples"]) -> Float[Array, " samples"]:
    """Each interval's share in the colour of the ray.

    **Arguments:**

    - `optical_depth`: of each interval.

    **Returns:**

    `(1 - exp(-optical depth)) * transmittance`; they sum to the opacity.

    **Source:** Max (1995), equation 26; mip-NeRF (Barron et al. 2021), equation 3.
    """
    return (1 - jnp.exp(-optical_depth)) * transmittance(optical_depth)


def expected_depth(
    weights: Float[Array, " samples"], edges: Float[Array, " samples+1"], empty: Scalar
) -> Scalar:
    """The weighted mean of the intervals' middles.

    **Arguments:**

    - `weights`: of the intervals.
    - `edges`: in `t`.
    - `empty`: the depth of a ray on which nothing is.

    **Returns:**

    A value of `t` between the first and the last edge.
    """
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
    """What one ray sees of a medium, before any background.

    **Arguments:**

    - `medium`: density and colour of every interval.
    - `edges`: of the intervals, in `t`.
    - `direction`: of the ray, not normalised.
    - `empty_depth_near`: whether a ray that meets nothing has the depth of its near end, as the
      published mip-NeRF code computes it, instead of its far end. Keyword only argument.

    **Returns:**

    The radiance; its colour is premultiplied by opacity. It has normal and median depth if the
    medium has normals.
    """
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
    """Puts a premultiplied colour in front of a background.

    **Arguments:**

    - `rgb`: premultiplied by `alpha`.
    - `alpha`: opacity.
    - `background`: the colour behind.

    **Returns:**

    `rgb + (1 - alpha) * background`.
    """
    return rgb + (1 - alpha) * background
