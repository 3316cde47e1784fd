"""Layers of surfaces layer by layer: found first, then computed with derivatives."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..flat import FlatScene, hit_on_part, Instance
from ..numerics import choose_block
from ..rays import Hit, Layers, Ray
from ..rows import as_operands, list_true, map_rows
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
from ._along_ray import with_color
from ._by_kind import map_by_kind
from ._details import details_of, paint
from ._light_rows import light_on_rows
from ._masks import mask_opacities
from ._mesh_layers import sheet_coverage, sheet_hits
from ._shadows import Shading


# Layers that are shaded at once: more of meshes of many vertices, because each block adds up
# cotangents of all of them.
_BLOCK, _LARGE_BLOCK, _VERTICES = 2**14, 2**16, 2**17


class RowsOfLayers(NamedTuple):
    """The layers of rays, those of one rank in a row: rank by rank, ray by ray."""

    codes: Int[Array, " rows"]
    owners: Int[Array, " rows"]  # the numbers of the surfaces
    sheets: FoundSheet | None
    faces: Int[Array, "rows faces"] | None
    needed: Bool[Array, " rows"]


def find_rows(
    scene: FlatScene, rays: Ray, how: Shading, starts: Int[Array, " rays"] | None = None
) -> tuple[RowsOfLayers, Int[Array, " rays"]]:
    """Finds the nearest layers on rays; what hides sheets of meshes has derivatives.

    Rays do not meet the convex surfaces on which they start outside. Returns also how many layers
    of each ray are missed.
    """
    still, lines = jax.lax.stop_gradient((as_operands(scene.without_media()), rays))

    def search(scene: FlatScene, row: tuple) -> tuple[FoundLayers, Array | None]:
        ray, start = row
        found = find_layers(scene, ray, how.layers, start)
        return found._replace(listed=None), list_faces(scene, ray, found)

    found, faces = jax.lax.stop_gradient(map_ranked(search, still, (lines, starts)))
    sheets, needed = found.sheets, found.needed
    if sheets is not None:
        whole, hidden = sheet_coverage(scene, rays, sheets)
        sheets = sheets._replace(coverage=whole, hidden=hidden)
    layers = found.code, found.owner, sheets, faces, needed
    layers = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), layers)
    return RowsOfLayers(*layers), found.missed


def shade_rows(
    scene: FlatScene,
    rays: Ray,
    found: tuple[RowsOfLayers, Int[Array, " rays"]],
    how: Shading,
    lamps: Float[Array, " rays"] | None = None,
) -> Layers:
    """Computes the layers of rays, without those that do not count, block by block.

    `lamps` are parts of the emission of lamps with a size that rays see.
    """
    rows, missed = found
    block = min(choose_block(_block_of(scene), 2**17), rows.needed.size)
    # The first layers of all rays come before the second ones.
    listed = list_true(rows.needed, -(-rows.needed.size // block) * block)
    shared = scene.without_media(), (rays, lamps), rows
    shade = partial(_shade_block, how=how)
    order, count = listed.places.reshape(-1, block), -(-listed.total // block)
    shaded = map_blocks(shade, shared, order, count)
    shaded = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), shaded)
    ranks = listed.ranks.reshape(how.layers, -1).T
    t, alpha, rgb, details = map_rows(take_layers, shaded, ranks)
    return Layers(t, alpha, rgb, missed, **details)


def _block_of(scene: FlatScene) -> int:
    """Returns how many layers are shaded at once on a CPU."""
    vertices = 0 if scene.triangles is None else scene.triangles.vertices.point.shape[0]
    return _BLOCK if vertices < _VERTICES else _LARGE_BLOCK


def take_layers(table: PyTree, places: Int[Array, " layers"]) -> PyTree:
    """Returns the layers of one ray; zeros where there is none."""
    there, places = places >= 0, jnp.maximum(places, 0)

    def take(x: Array) -> Array:
        own = x.at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)
        return jnp.where(there.reshape(-1, *(1,) * (own.ndim - 1)), own, 0)

    return jax.tree.map(take, table)


def _shade_block(shared: tuple, order: Int[Array, " rows"], how: Shading) -> tuple:
    """Returns `t`, opacity, colour and details of found layers, one a row."""
    scene, rays, rows = shared
    used = order >= 0
    (rays, lamps), layers = take_rows(rays, rows, order)
    hits, alphas = hits_on_rows(scene, rays, layers, used)
    owners = layers.owners
    lights = light_on_rows(scene, hits, rays.view, owners, used, shadows=how.shadows)
    one = lambda instance, row: paint(instance, instance.node, *row, fields=how.fields)
    painted = map_by_kind(
        one, scene.shaders, scene.shaders_at, owners, used, (hits, rays.view, lights)
    )
    if lamps is not None and scene.lamps is not None:
        is_lamp = owners >= scene.cuts.shape[0] - scene.lamps.kinds.shape[0]
        part = jnp.where(is_lamp, lamps, 1)
        painted = painted._replace(rgb=part[:, None] * painted.rgb)
    details = details_of(how.fields, hits, painted, owners)
    return hits.t, alphas, painted.rgb, details


def take_rows(rays: PyTree, rows: RowsOfLayers, order: Int[Array, " rows"]) -> tuple:
    """Returns the rays and the layers of some rows; those of the number -1 are not used."""

    def take(tables: tuple[PyTree, RowsOfLayers], number: Int[Array, ""]) -> tuple:
        rays, layers = tables
        pick = lambda tree, place: jax.tree.map(lambda x: row_of(x, place), tree)
        count = jax.tree.leaves(rays)[0].shape[0]
        # Layer k of ray r has the number k rays + r.
        return pick(rays, number % count), pick(layers, number)

    return map_rows(take, (rays, rows), order, used=order >= 0)


def hits_on_rows(
    scene: FlatScene, rays: Ray, layers: RowsOfLayers, used: Bool[Array, " rows"]
) -> tuple[Hit, Float[Array, " rows"]]:
    """Returns the hits on layers, and their opacities; zeros for rows that are not used."""
    hits, alphas = _found_hits(scene, rays, layers.codes, (layers.sheets, layers.faces), used)
    return hits, alphas * mask_opacities(scene, hits, rays.view, layers.owners, used)


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
