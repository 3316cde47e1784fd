"""Surfaces as thin layers along a ray, alone and with media before, between and behind them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Scalar
from ..numerics import matmul, midpoints, safe_divide
from ..rays import Layers, Medium, Radiance, Ray
from ..rows import map_rows
from ._details import (
    mean_normal,
    mean_value,
    median_between,
    median_layer,
    strongest_surface,
)
from ._volume import interval_weights, optical_depths, transmittance


def layer_weights(alpha: Float[Array, " layers"]) -> Float[Array, " layers"]:
    """Computes each layer's share in the colour of a ray on which there are only layers."""
    # docs/surfaces.md, "Layers": w_i = alpha_i prod_{j<i} (1 - alpha_j)
    before = jnp.cumprod(1 - alpha[:-1])
    return alpha * jnp.concatenate([jnp.ones_like(alpha[:1]), before])


def composite_layers(layers: Layers, ray: Ray) -> Radiance:
    """Composites the layers of one ray, sorted from near to far, before any background."""
    # rgb = sum_i w_i c_i, t = sum_i w_i t_i / sum_i w_i
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
        normal=None if layers.normal is None else mean_normal(weights, layers.normal),
        median_depth=None if layers.normal is None else median_layer(weights, layers.t, ray.far),
        **_details(layers, weights),
    )


def composite_rows(layers: Layers, rays: Ray) -> Radiance:
    """Composites the layers of many rays."""
    return map_rows(lambda _, row: composite_layers(*row), None, (layers, rays))


def composite_with_layers(
    medium: Medium, edges: Float[Array, " edges"], ray: Ray, layers: Layers
) -> Radiance:
    """Composites a medium with layers in it along one ray, before any background."""
    # docs/surfaces.md, "Layers". An interval in which a layer lies is split there; with p_jk the
    # part of interval k before layer j, and stops_j = alpha_j prod_{i<j} (1 - alpha_i),
    #   weight of layer j    = stops_j exp(-sum_k p_jk tau_k),
    #   weight of interval k = w_k - sum_j stops_j T_k (exp(-p_jk tau_k) - exp(-tau_k)).
    depths = optical_depths(medium.density, edges, ray.direction)
    passed = _fraction_before(edges, layers.t)
    stops = layer_weights(layers.alpha)
    before = transmittance(depths) * (1 - jnp.exp(-passed * depths))
    behind = interval_weights(depths) - before
    media = interval_weights(depths) - matmul(stops, behind)
    surfaces = stops * jnp.exp(matmul(-passed, depths))
    opacity = jnp.sum(media) + jnp.sum(surfaces)
    total_t = jnp.sum(media * midpoints(edges)) + jnp.sum(surfaces * layers.t)
    normal = median = None
    if medium.normal is not None and layers.normal is not None:
        both = jnp.concatenate([medium.normal, layers.normal])
        normal = mean_normal(jnp.concatenate([media, surfaces]), both)
        median = _median_among(depths, edges, layers)
    return Radiance(
        rgb=matmul(media, medium.rgb) + matmul(surfaces, layers.rgb),
        alpha=opacity,
        depth=jnp.where(opacity > 0, safe_divide(total_t, opacity), edges[-1]),
        weights=media,
        edges=edges,
        overflow=layers.overflow,
        normal=normal,
        median_depth=median,
        **_details(layers, surfaces, _Intervals(media, medium.rgb, edges, ray)),
    )


class _Intervals(NamedTuple):
    """The intervals of a ray that media fill."""

    weights: Float[Array, " samples"]
    rgb: Float[Array, "samples 3"]
    edges: Float[Array, " edges"]
    ray: Ray


def _details(
    layers: Layers, weights: Float[Array, " layers"], media: _Intervals | None = None
) -> dict[str, Any]:
    """Returns what is requested of layers, and of media among them if there are any."""
    details: dict[str, Any] = {}
    join = lambda x, of_layers: jnp.concatenate([x, of_layers])
    every = weights if media is None else join(media.weights, weights)
    if layers.albedo is not None:
        colors = layers.albedo if media is None else join(media.rgb, layers.albedo)
        details["albedo"] = mean_value(every, colors)
    if layers.position is not None:
        points = layers.position
        if media is not None:
            points = join(jax.vmap(media.ray.at)(midpoints(media.edges)), points)
        details["position"] = mean_value(every, points)
    if layers.surface is not None:
        details["surface"], best = strongest_surface(weights, layers.surface)
        if layers.uv is not None:
            details["uv"] = jnp.sum(jnp.where(best[:, None], layers.uv, 0), axis=0)
    return details


def _median_among(
    depths: Float[Array, " samples"], edges: Float[Array, " edges"], layers: Layers
) -> Scalar:
    """Finds the `t` at which half of the opacity of intervals and layers together is reached."""
    # Layers without opacity count as behind everything.
    visible = layers.alpha > 0
    last = jnp.max(jnp.where(visible, layers.t, edges[-1]), initial=edges[-1])
    t = jnp.where(visible, layers.t, last)
    # The light that is left falls within intervals, and jumps at layers: both sides are listed.
    left = jnp.concatenate([jnp.ones_like(t, shape=1), jnp.cumprod(1 - layers.alpha)])
    through = jnp.exp(matmul(-_fraction_before(edges, t), depths))
    # At edge k: T_k prod_{t_j <= t_k} (1 - alpha_j).
    passed = jnp.prod(jnp.where(t <= edges[:, None], 1 - layers.alpha, 1), axis=1)
    at_edges = passed * transmittance(jnp.concatenate([depths, jnp.zeros_like(depths, shape=1)]))
    # It never rises: sorted apart, places and values still belong together.
    still = jnp.sort(jnp.concatenate([at_edges, left[:-1] * through, left[1:] * through]))[::-1]
    places = jnp.sort(jnp.concatenate([edges, t, t]))
    return median_between(1 - still, places, edges[-1])


def _fraction_before(
    edges: Float[Array, " edges"], t: Float[Array, " layers"]
) -> Float[Array, "layers edges-1"]:
    """Computes the part of every interval that lies before each layer."""
    # p_jk = (t_j - t_k) / (t_{k+1} - t_k), clipped to [0, 1]
    start, length = edges[:-1], jnp.diff(edges)
    filled = length > 0
    share = (t[:, None] - start) / jnp.where(filled, length, 1)
    return jnp.where(filled, jnp.clip(share, 0, 1), 0)
