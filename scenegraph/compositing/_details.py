"""Values of a ray beside colour, opacity and depth, which are computed only where requested."""

import dataclasses

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar, Vector
from ..numerics import inverse_cdf, safe_divide, safe_normalise
from ..rays import Radiance, Ray


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


# A surface that adds less to a pixel is not seen: an edge on the pixel's border adds 3e-5.
_SEEN = 1e-3


def mean_value(weights: Float[Array, " samples"], values: Float[Array, "samples 3"]) -> Vector:
    """Computes `sum(w x) / sum(w)`; zero where nothing is."""
    total = jnp.sum(weights[:, None] * values, axis=0)
    return safe_divide(total, jnp.broadcast_to(jnp.sum(weights), total.shape))


def strongest_surface(
    weights: Float[Array, " layers"], surfaces: Int[Array, " layers"]
) -> tuple[Int[Array, ""], Bool[Array, " layers"]]:
    """Returns the number of the surface that adds most to a ray, and which layer shows it best.

    Of several layers of one surface, such as two sides of a box, the weights add. Where none is
    seen, -1 and no layer.
    """
    if not surfaces.shape[0]:
        return jnp.full((), -1, surfaces.dtype), jnp.zeros(0, bool)
    # The total of surface s is sum_j w_j [s_j = s]; the first of equal ones is the nearest.
    same = surfaces[:, None] == surfaces
    totals = jnp.where(weights > 0, jnp.sum(jnp.where(same, weights, 0), axis=1), 0)
    number = jnp.max(jnp.where(totals == jnp.max(totals), surfaces, -1))
    number = jnp.where(jnp.max(totals) > _SEEN, number, -1)
    own = jnp.where(surfaces == number, weights, 0)
    best = (number >= 0) & (jnp.arange(own.shape[0]) == jnp.argmax(own))
    return number, best


def with_media_details(radiance: Radiance, ray: Ray, outputs: tuple[str, ...]) -> Radiance:
    """Adds albedo, position, uv and surface to what one ray shows of media alone, if requested."""
    # The albedo of a medium is its colour: sum_i w_i c_i / sum_i w_i.
    there = radiance.alpha > 0
    point = ray.at(jnp.where(there, radiance.depth, 0))
    known = {
        "albedo": safe_divide(radiance.rgb, jnp.broadcast_to(radiance.alpha, radiance.rgb.shape)),
        "uv": jnp.zeros_like(radiance.rgb, shape=2),
        "position": jnp.where(there, point, 0),
        "surface": jnp.full((), -1, jnp.int32),
    }
    return dataclasses.replace(radiance, **{x: known[x] for x in outputs if x in known})
