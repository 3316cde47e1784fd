"""The nearest hits of lines: searched without derivatives, then computed with them."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array
from ..flat import FlatScene, Instance, intersect
from ..numerics import choose_block, safe_normalise
from ..rays import Hit, Ray, widen
from ..shapes import fragment_hit
from ..visibility import count_parts, find_nearest, Nearest
from ._by_kind import map_by_kind, where_rows
from ._masks import mask_opacities


# Rays that are searched at a time.
_BLOCK = 4096


def nearest_hits(scene: FlatScene, rays: Ray) -> Hit:
    """Computes the nearest hits of rays; `t` is infinite, and coverage zero, for a miss.

    The line of a ray decides what is hit, and its footprint what the hit covers.
    """
    found = jax.lax.stop_gradient(_find(*jax.lax.stop_gradient((scene, rays))))
    missed = (found.code < 0) & (found.face < 0)
    hits = jax.vmap(_no_hit)(rays)
    if scene.occluders:
        on_shape = found.code >= 0
        hits = where_rows(on_shape, _shape_hits(scene, rays, found, on_shape), hits)
    if scene.triangles is not None:
        # Rays that hit no face compute the first one, which then does not count.
        faces = scene.triangles.take(jnp.maximum(found.face, 0))
        own = jax.vmap(fragment_hit)(rays, faces.shape)
        stopped = own.coverage * faces.opacity
        there = found.face >= 0
        owners, total = faces.owner, scene.cuts.shape[0]
        stopped *= mask_opacities(scene.masks, own, rays.view, owners, there, total=total)
        values = safe_normalise(own.normal), stopped
        own = eqx.tree_at(lambda x: (x.normal, x.coverage), own, values)
        hits = where_rows(there, own, hits)
    return eqx.tree_at(lambda x: x.t, hits, jnp.where(missed, jnp.inf, hits.t))


def _find(scene: FlatScene, rays: Ray) -> Nearest:
    """Finds what is hit, some rays at a time."""
    count, thin = rays.near.shape[0], widen(rays, 0.0)
    block = min(choose_block(_BLOCK), count)
    more = -count % block
    pad = lambda x: jnp.pad(x, ((0, more), *((0, 0),) * (x.ndim - 1)), mode="edge")
    blocks = (jax.tree.map(pad, thin), jnp.arange(count + more) < count)
    blocks = jax.tree.map(lambda x: x.reshape(-1, block, *x.shape[1:]), blocks)
    found = jax.lax.map(lambda x: find_nearest(scene, *x), blocks)
    return jax.tree.map(lambda x: x.reshape(-1)[:count], found)


def _shape_hits(scene: FlatScene, rays: Ray, found: Nearest, on_shape: Array) -> Hit:
    """Returns the hits on the parts of shapes that were found."""
    parts, code = count_parts(scene), jnp.maximum(found.code, 0)

    def meet(instance: Instance, row: tuple[Ray, Array]) -> Hit:
        hits = intersect(instance, row[0])
        # A sum over all parts of which one counts: look-ups are slow in `map_rows`.
        one = jnp.arange(hits.t.shape[0]) == row[1]
        wide = lambda x: one.reshape(-1, *(1,) * (x.ndim - 1))
        white = jnp.ones_like(hits.point)
        hits = eqx.tree_at(lambda x: x.color, hits, white, is_leaf=lambda x: x is None)
        return jax.tree.map(lambda x: jnp.sum(jnp.where(wide(x), x, 0), axis=0), hits)

    rows, total = (rays, code % parts), scene.cuts.shape[0]
    return map_by_kind(meet, scene.occluders, code // parts, on_shape, rows, total=total)


def _no_hit(ray: Ray) -> Hit:
    """Returns a hit on nothing, with numbers that are finite and have derivatives."""
    zero, none = jnp.zeros_like(ray.near), jnp.zeros_like(ray.origin)
    flat, sides = jnp.zeros((2, 2), ray.near.dtype), jnp.zeros_like(ray.d_origin)
    return Hit(zero, none, none, flat[0], flat, zero, d_point=sides, color=none + 1)
