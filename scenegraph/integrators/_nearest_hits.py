"""The nearest hits of lines: searched without derivatives, then computed with them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool
from ..flat import FlatScene, Instance, intersect, MeshFaces
from ..numerics import choose_block, safe_normalise
from ..rays import Hit, Ray, widen
from ..shapes import cross_triangle, hit_of_fragment
from ..visibility import count_parts, find_nearest, Nearest
from ._by_kind import map_by_kind
from ._masks import mask_opacities


# Rays that are searched at a time.
_BLOCK = 4096


def nearest_hits(scene: FlatScene, rays: Ray) -> Hit:
    """Computes the nearest hits of rays, and says what they are on.

    The line of a ray decides what is hit, and its footprint what the hit covers. For a miss, `t` is
    infinite, coverage zero, and surface and face are -1.
    """
    found = jax.lax.stop_gradient(_find(*jax.lax.stop_gradient((scene, rays))))
    on_shape, on_mesh = found.code >= 0, found.face >= 0
    hits, pick = jax.vmap(_no_hit)(rays), jax.vmap(lambda x, y, z: jnp.where(x, y, z))
    if scene.occluders:
        own = _shape_hits(scene, rays, found, on_shape)
        hits = jax.tree.map(partial(pick, on_shape), own, hits)
    if scene.triangles is not None:
        own = _mesh_hits(scene, scene.triangles, rays, found, on_mesh)
        hits = jax.tree.map(partial(pick, on_mesh), own, hits)
    t = jnp.where(on_shape | on_mesh, hits.t, jnp.inf)
    return eqx.tree_at(lambda x: x.t, hits, t)


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


def _mesh_hits(
    scene: FlatScene, meshes: MeshFaces, rays: Ray, found: Nearest, on_mesh: Bool[Array, " rays"]
) -> Hit:
    """Returns the hits on the faces that were found."""
    # Rays that hit no face compute the first one, which then does not count.
    number = jnp.maximum(found.face, 0)
    faces = meshes.take(number)
    fragments = jax.vmap(cross_triangle)(rays, faces.shape.corners)
    hits = jax.vmap(hit_of_fragment)(fragments, faces.shape)
    stopped = hits.coverage * faces.opacity
    owners = faces.owner
    stopped *= mask_opacities(scene, hits, rays.view, owners, on_mesh)
    weights = fragments.weights
    weights = jnp.where(meshes.reversed[number][:, None], weights[:, ::-1], weights)
    values = safe_normalise(hits.normal), stopped, owners, meshes.row[number], weights
    return _replaced(hits, values)


def _replaced(hits: Hit, values: tuple) -> Hit:
    """Returns hits with other normals and coverages, and with what they are on."""
    places = lambda x: (x.normal, x.coverage, x.surface, x.face, x.barycentric)
    return eqx.tree_at(places, hits, values, is_leaf=lambda x: x is None)


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

    rows, numbers = (rays, code % parts), code // parts
    hits = map_by_kind(meet, scene.occluders, scene.occluders_at, numbers, on_shape, rows)
    no_face, no_weights = jnp.full_like(numbers, -1), jnp.zeros_like(hits.point)
    return _replaced(hits, (hits.normal, hits.coverage, numbers, no_face, no_weights))


def _no_hit(ray: Ray) -> Hit:
    """Returns a hit on nothing, with numbers that are finite and have derivatives."""
    zero, none = jnp.zeros_like(ray.near), jnp.zeros_like(ray.origin)
    flat, sides = jnp.zeros((2, 2), ray.near.dtype), jnp.zeros_like(ray.d_origin)
    number = jnp.full((), -1, jnp.int32)
    return Hit(
        zero,
        none,
        none,
        flat[0],
        flat,
        zero,
        d_point=sides,
        color=none + 1,
        surface=number,
        face=number,
        barycentric=none,
    )
