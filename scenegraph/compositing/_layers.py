"""Surfaces as thin layers along a ray, alone and with media before, between and behind them."""

import jax.numpy as jnp

from .._typing import Array, Float, Vector
from ..numerics import midpoints, safe_divide
from ..rays import Layers, Medium, Radiance, Ray
from ._volume import interval_weights, optical_depths, transmittance


def layer_weights(alpha: Float[Array, " layers"]) -> Float[Array, " layers"]:
    """Each layer's share in the colour of a ray, were there nothing but layers.

    **Arguments:**

    - `alpha`: opacities, from near to far.

    **Returns:**

    `alpha * (product of 1 - alpha of the layers before it)`.
    """
    before = jnp.cumprod(1 - alpha[:-1])
    return alpha * jnp.concatenate([jnp.ones_like(alpha[:1]), before])


def composite_layers(layers: Layers, ray: Ray) -> Radiance:
    """What one ray sees of surfaces alone, before any background.

    **Arguments:**

    - `layers`: sorted from near to far.
    - `ray`: that sees them.

    **Returns:**

    The radiance; its colour is premultiplied by opacity, its `weights` are those of the layers, and
    its `edges` where they lie.
    """
    weights = layer_weights(layers.alpha)
    opacity = jnp.sum(weights)
    mean = safe_divide(jnp.sum(weights * layers.t), opacity)
    return Radiance(
        rgb=jnp.sum(weights[:, None] * layers.rgb, axis=0),
        alpha=opacity,
        depth=jnp.where(opacity > 0, mean, ray.far),
        weights=weights,
        edges=layers.t,
        overflow=layers.overflow,
    )


def composite_among(
    medium: Medium, edges: Float[Array, " edges"], direction: Vector, layers: Layers
) -> Radiance:
    """What one ray sees of a medium with layers in it, before any background.

    A layer takes from everything behind it what it stops; an interval in which it lies is split
    there, its density being the same in both parts.

    **Arguments:**

    - `medium`: density and colour of every interval.
    - `edges`: of the intervals, in `t`.
    - `direction`: of the ray, not normalised.
    - `layers`: sorted from near to far.

    **Returns:**

    The radiance; its colour is premultiplied by opacity, its `weights` are those of the intervals.
    """
    depths = optical_depths(medium.density, edges, direction)
    passed = _share_before(edges, layers.t)
    stops = layer_weights(layers.alpha)
    before = transmittance(depths) * (1 - jnp.exp(-passed * depths))
    behind = interval_weights(depths) - before
    media = interval_weights(depths) - stops @ behind
    surfaces = stops * jnp.exp(-passed @ depths)
    opacity = jnp.sum(media) + jnp.sum(surfaces)
    total_t = jnp.sum(media * midpoints(edges)) + jnp.sum(surfaces * layers.t)
    return Radiance(
        rgb=media @ medium.rgb + surfaces @ layers.rgb,
        alpha=opacity,
        depth=jnp.where(opacity > 0, safe_divide(total_t, opacity), edges[-1]),
        weights=media,
        edges=edges,
        overflow=layers.overflow,
    )


def _share_before(
    edges: Float[Array, " edges"], t: Float[Array, " layers"]
) -> Float[Array, "layers edges-1"]:
    """The part of every interval that lies before each layer."""
    start, length = edges[:-1], jnp.diff(edges)
    filled = length > 0
    share = (t[:, None] - start) / jnp.where(filled, length, 1)
    return jnp.where(filled, jnp.clip(share, 0, 1), 0)
