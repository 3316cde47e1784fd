"""Layers of surfaces in scenes of many things: found first, then computed with derivatives."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..flat import FlatScene, hit_on_part, Instance
from ..numerics import choose_block
from ..rays import Hit, Layers, Ray
from ..rows import as_operands, call_late, list_true, map_rows
from ..rowwise import map_blocks
from ..visibility import (
    count_parts,
    find_layers,
    FoundLayers,
    FoundSheet,
    list_faces,
    map_ranked,
    row_of,
)
from ._along_ray import layers_of_rays, with_color
from ._by_kind import map_by_kind
from ._details import details_of, no_details, paint
from ._irradiance import mirrors
from ._light_rows import light_on_rows
from ._masks import mask_opacities
from ._mesh_layers import sheet_coverage, sheet_hits
from ._ray_size import count_samples
from ._shadows import are_meshes, Shading


# Layers that are shaded at once: more of meshes of many vertices, because each block adds up
# cotangents of all of them.
_BLOCK, _LARGE_BLOCK, _VERTICES = 2**14, 2**16, 2**17


# Rays with more shadow rays from a hit are computed layer by layer.
_FEW_SAMPLES = 16


def find_and_shade(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Computes the nearest layers of rays."""
    if not goes_ray_by_ray(scene):
        return listed_layers(scene, rays, how)
    compute, shapes = partial(_ray_by_ray, how=how), _shapes_of_layers(rays.near, how)
    return call_late(compute, partial(_push, how=how), shapes, scene, rays)


def goes_ray_by_ray(scene: FlatScene) -> bool:
    """Returns true if what a ray shows of a scene is one function of it."""
    if scene.masks or any(map(mirrors, scene.lights)):
        return False
    if scene.triangles is None and scene.tree is None:
        return False
    return count_samples(scene) <= _FEW_SAMPLES


def _ray_by_ray(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    # Without derivatives, nothing is seen behind what is opaque, whether or not it stays so.
    opaque = eqx.tree_at(lambda flat: flat.cuts, scene, jnp.ones_like(scene.cuts))
    return layers_of_rays(opaque, rays, how)


def _push(primals: tuple, tangents: tuple, how: Shading) -> tuple[Layers, Layers]:
    # What has derivatives is computed layer by layer, and not ray by ray: its program has no loop.
    (scene, rays), (change, _) = primals, tangents
    scene = eqx.tree_at(lambda flat: flat.cuts, scene, _cuts(scene, change))
    compute = lambda scene, rays: listed_layers(scene, rays, how)
    return eqx.filter_jvp(compute, (scene, rays), tangents)


def _shapes_of_layers(like: Float[Array, " rays"], how: Shading) -> Layers:
    """Returns the shapes of the layers of rays."""

    def zeros() -> Layers:
        table = lambda *shape: jnp.zeros((how.layers, *shape), like.dtype)
        details = no_details(how.fields, how.layers, like.dtype)
        return Layers(table(), table(), table(3), jnp.zeros((), jnp.int32), **details)

    of_rays = lambda x: jax.ShapeDtypeStruct((*like.shape, *x.shape), x.dtype)
    return jax.tree.map(of_rays, jax.eval_shape(zeros))


def _cuts(scene: FlatScene, change: PyTree) -> Bool[Array, " surfaces"]:
    """Returns which surfaces hide what is behind them: their opacity is fixed, or has no tangent.

    A tangent that is zero is `None`.
    """
    cuts = scene.cuts
    for stack, own in zip(scene.occluders, change.occluders, strict=True):
        if not jax.tree.leaves((own.members.node.opacity, own.shared.node.opacity)):
            cuts = cuts.at[stack.members.number].set(True)
    if scene.triangles is None or change.triangles.opacity is not None or scene.masks:
        return cuts
    return cuts | are_meshes(scene)


def listed_layers(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Finds the nearest layers on rays, and computes just these.

    The search takes no derivatives, and says which surfaces are the layers of which ray. These are
    then shaded one behind the other, without those that do not count, block by block.
    """
    still, lines = jax.lax.stop_gradient((as_operands(scene.without_media()), rays))

    def search(scene: FlatScene, ray: Ray) -> tuple[FoundLayers, Array | None]:
        found = find_layers(scene, ray, how.layers)
        return found._replace(listed=None), list_faces(scene, ray, found)

    found, faces = jax.lax.stop_gradient(map_ranked(search, still, lines))
    sheets, needed = found.sheets, found.needed
    if sheets is not None:
        whole, hidden = sheet_coverage(scene, rays, sheets)
        sheets = sheets._replace(coverage=whole, hidden=hidden)
    layers = found.code, found.owner, sheets, faces
    layers = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), layers)
    block = min(choose_block(_block_of(scene), 2**17), needed.size)
    # The first layers of all rays come before the second ones.
    listed = list_true(needed.ravel(), -(-needed.size // block) * block)
    shared = scene.without_media(), rays, layers
    shade = partial(_shade_block, how=how)
    order, count = listed.places.reshape(-1, block), -(-listed.total // block)
    shaded = map_blocks(shade, shared, order, count)
    shaded = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), shaded)
    t, alpha, rgb, details = map_rows(_take_layers, shaded, listed.ranks.reshape(needed.shape).T)
    return Layers(t, alpha, rgb, found.missed, **details)


def _block_of(scene: FlatScene) -> int:
    """Returns how many layers are shaded at once on a CPU."""
    vertices = 0 if scene.triangles is None else scene.triangles.vertices.point.shape[0]
    return _BLOCK if vertices < _VERTICES else _LARGE_BLOCK


def _take_layers(table: PyTree, places: Int[Array, " layers"]) -> PyTree:
    """Returns the layers of one ray; zeros where there is none."""
    there, places = places >= 0, jnp.maximum(places, 0)

    def take(x: Array) -> Array:
        own = x.at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)
        return jnp.where(there.reshape(-1, *(1,) * (own.ndim - 1)), own, 0)

    return jax.tree.map(take, table)


def _shade_block(shared: tuple, order: Int[Array, " rows"], how: Shading) -> tuple:
    """Returns `t`, opacity, colour and details of found layers, one a row."""
    scene, rays, layers = shared
    used = order >= 0
    rays, (codes, owners, sheets, faces) = map_rows(_layer_of, (rays, layers), order, used=used)
    hits, alphas = _found_hits(scene, rays, codes, (sheets, faces), used)
    alphas *= mask_opacities(scene, hits, rays.view, owners, used)
    lights = light_on_rows(scene, hits, rays.view, owners, used, shadows=how.shadows)
    one = lambda instance, row: paint(instance, instance.node, *row, fields=how.fields)
    rows = hits, rays.view, lights
    painted = map_by_kind(one, scene.shaders, scene.shaders_at, owners, used, rows)
    details = details_of(how.fields, hits, painted, owners)
    return hits.t, alphas, painted.rgb, details


def _layer_of(tables: tuple[Ray, PyTree], number: Int[Array, ""]) -> tuple[Ray, PyTree]:
    """Returns the ray and the layer of a number: layer k of ray r has the number k rays + r."""
    rays, layers = tables
    take = lambda tree, place: jax.tree.map(lambda x: row_of(x, place), tree)
    return take(rays, number % rays.near.shape[0]), take(layers, number)


def _found_hits(
    scene: FlatScene,
    rays: Ray,
    codes: Int[Array, " rows"],
    meshes: tuple[FoundSheet | None, Int[Array, "rows faces"] | None],
    used: Bool[Array, " rows"],
) -> tuple[Hit, Float[Array, " rows"]]:
    """Returns the hits on layers, and their opacities; zeros for rows that are not used."""
    sheets, faces = meshes
    if scene.triangles is None or sheets is None or faces is None:
        return _shape_hits(scene, rays, codes, used)
    on_mesh = sheets.kind != 0
    hits = sheet_hits(scene.triangles, used & on_mesh, rays, sheets, faces)
    if not scene.occluders:
        return hits
    of_shapes = _shape_hits(scene, rays, jnp.where(on_mesh, 0, codes), used & ~on_mesh)
    return jax.tree.map(jnp.add, hits, of_shapes)


def _shape_hits(
    scene: FlatScene, rays: Ray, codes: Int[Array, " rows"], used: Bool[Array, " rows"]
) -> tuple[Hit, Float[Array, " rows"]]:
    """Returns the hits on parts of shapes, and their opacities."""
    parts, code = count_parts(scene), jnp.maximum(codes, 0)

    def meet(instance: Instance, row: tuple[Ray, Array]) -> tuple[Hit, Array]:
        hit, alpha = hit_on_part(instance, *row)
        return (hit, alpha) if scene.triangles is None else with_color(hit, alpha)

    # code = number parts + part
    rows = rays, code % parts
    return map_by_kind(meet, scene.occluders, scene.occluders_at, code // parts, used, rows)
