"""Media in intervals along rays: composited, and those of several volumes merged."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from .._typing import Array, Float, Int, PyTree
from ..compositing import amounts, composite, composite_with_layers, mixture, with_unit_normals
from ..numerics import AbstractModule
from ..rays import Layers, Medium, Radiance, Ray


class MediaAlong(AbstractModule):
    """Media in consecutive intervals of rays, with the same density all over an interval."""

    medium: Medium  # "*volumes rays samples"
    edges: Float[Array, "*volumes rays edges"]
    # The numbers of samples that found no space, and that were requested, if rays share a budget.
    overflow: Int[Array, "*volumes rays"] | None = None
    requested: Int[Array, "*volumes rays"] | None = None


def composite_along(along: MediaAlong, rays: Ray, layers: Layers | None) -> Radiance:
    """Composites the media of rays, among layers of surfaces if there are any."""
    overflow = along.overflow
    if layers is None:
        radiance = jax.vmap(composite)(along.medium, along.edges, rays.direction)
    else:
        args = along.medium, along.edges, rays.direction, layers
        radiance = jax.vmap(composite_with_layers)(*args)
        overflow = layers.overflow if overflow is None else overflow + layers.overflow
    return dataclasses.replace(radiance, overflow=overflow, requested=along.requested)


def merge_media(parts: Sequence[MediaAlong]) -> MediaAlong:
    """Merges what was sampled of volumes apart; every part has a leading axis over volumes.

    A medium is the same all over each of its intervals, so sums of them are the same between any
    two neighbouring edges, and a volume that is alone on a ray keeps its picture.
    """
    rows = [jnp.moveaxis(part.edges, 0, 1) for part in parts]
    edges = jnp.concatenate([x.reshape(x.shape[0], -1) for x in rows], axis=1)
    edges = jnp.sort(edges, axis=1)
    # sigma(t) = sum_v sigma_v(t), and rgb is the mean of rgb_v in proportion to sigma_v(t).
    sums = [_sum_between(part, edges) for part in parts]
    medium = with_unit_normals(mixture(jax.tree.map(lambda *xs: sum(xs), *sums)))
    missing = [jnp.sum(x.overflow, axis=0) for x in parts if x.overflow is not None]
    requested = [jnp.max(x.requested, axis=0) for x in parts if x.requested is not None]
    return MediaAlong(
        medium,
        edges,
        sum(missing[1:], missing[0]) if missing else None,
        # Every volume has the same budget.
        jnp.max(jnp.stack(requested), axis=0) if requested else None,
    )


def _sum_between(part: MediaAlong, edges: Float[Array, "rays edges"]) -> PyTree:
    """Returns the sum of the `amounts` of volumes between neighbouring edges."""
    each = jax.vmap(jax.vmap(_between), (0, 0, None))(part.medium, part.edges, edges[:, :-1])
    return jax.tree.map(lambda x: jnp.sum(x, axis=0), each)


def _between(
    medium: Medium, edges: Float[Array, " edges"], begins: Float[Array, " parts"]
) -> PyTree:
    """Returns the `amounts` of one volume in parts of a ray that begin at given places."""
    place = jnp.searchsorted(edges, begins, side="right") - 1
    last = medium.density.shape[0] - 1
    inside = (place >= 0) & (place <= last)
    here: Medium = jax.tree.map(lambda x: x[jnp.clip(place, 0, last)], medium)
    normal = None if here.normal is None else jnp.where(inside[:, None], here.normal, 0)
    return amounts(Medium(jnp.where(inside, here.density, 0), here.rgb, normal))
