"""Layers of surfaces in scenes of many things: found first, then computed with derivatives."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, Vector
from ..flat import FlatScene, hit_on_part, Instance, InstanceStack
from ..numerics import choose_block, count_before, safe_normalise
from ..rays import Hit, Irradiance, Layers, no_light, Ray
from ..rows import as_operands, map_rows
from ..rowwise import map_blocks, take_rows
from ..visibility import (
    count_parts,
    find_layers,
    FoundLayers,
    FoundSheet,
    list_faces,
    map_ranked,
)
from ._along_ray import layers_of_rays
from ._by_kind import map_by_kind, map_in_turn, where_rows
from ._details import details_of, paint
from ._irradiance import add_glossy, mirrors
from ._masks import mask_opacities
from ._mesh_layers import sheet_coverage, sheet_hits
from ._ray_size import count_samples
from ._shadows import are_meshes, reaches_front, Shading, visible_past_all


# Layers that are shaded at once: more of meshes of many vertices, because each block adds up
# cotangents of all of them.
_BLOCK, _LARGE_BLOCK, _VERTICES = 2**14, 2**16, 2**17


# Rays with more shadow rays from a hit are computed layer by layer.
_FEW_SAMPLES = 16


def find_and_shade(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Computes the nearest layers of rays."""
    if goes_ray_by_ray(scene):
        return _layers(scene, rays, how=how)
    return listed_layers(scene, rays, how)


def goes_ray_by_ray(scene: FlatScene) -> bool:
    """Returns true if what a ray shows of a scene is one function of it."""
    if scene.masks or any(map(mirrors, scene.lights)):
        return False
    if scene.triangles is None and scene.tree is None:
        return False
    return count_samples(scene) <= _FEW_SAMPLES


@eqx.filter_custom_jvp
def _layers(scene: FlatScene, rays: Ray, *, how: Shading) -> Layers:
    # Without derivatives, nothing is seen behind what is opaque, whether or not it stays so.
    opaque = eqx.tree_at(lambda flat: flat.cuts, scene, jnp.ones_like(scene.cuts))
    return layers_of_rays(opaque, rays, how)


@_layers.def_jvp
def _layers_jvp(primals: tuple, tangents: tuple, *, how: Shading) -> tuple[Layers, Layers]:
    # What has derivatives is computed layer by layer, and not ray by ray: its program has no loop.
    (scene, rays), (change, _) = primals, tangents
    scene = eqx.tree_at(lambda flat: flat.cuts, scene, _cuts(scene, change))
    compute = lambda scene, rays: listed_layers(scene, rays, how)
    return eqx.filter_jvp(compute, (scene, rays), tangents)


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
    order, places, total = _order_of(needed, block)
    shared = scene.without_media(), rays, layers
    shade = partial(_shade_block, how=how)
    shaded = map_blocks(shade, shared, order.reshape(-1, block), -(-total // block))
    shaded = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), shaded)
    t, alpha, rgb, details = map_rows(_take_layers, shaded, places.T)
    return Layers(t, alpha, rgb, found.missed, **details)


def _block_of(scene: FlatScene) -> int:
    """Returns how many layers are shaded at once on a CPU."""
    vertices = 0 if scene.triangles is None else scene.triangles.vertices.point.shape[0]
    return _BLOCK if vertices < _VERTICES else _LARGE_BLOCK


def _order_of(
    needed: Bool[Array, "layers rays"], block: int
) -> tuple[Int[Array, " padded"], Int[Array, "layers rays"], Int[Array, ""]]:
    """Numbers the layers that count, the first ones of all rays before the second ones.

    Returns the layer of every number, -1 beyond the last; the number of every layer, -1 for those
    that do not count; and how many do.
    """
    size = needed.size
    before, total = count_before(needed.reshape(-1))
    place = jnp.where(needed.reshape(-1), before, -1)
    order = jnp.full(-(-size // block) * block, -1, jnp.int32)
    # What does not count is put beyond the end.
    slots = jnp.where(place < 0, order.shape[0], place)
    number = jnp.arange(size, dtype=jnp.int32)
    order = order.at[slots].set(number, mode="drop", unique_indices=True)
    return order, place.reshape(needed.shape), total


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
    needed, order = order >= 0, jnp.maximum(order, 0)
    # Layer k of ray r is the one of number k rays + r.
    rays = take_rows(rays, order % rays.near.shape[0])
    codes, numbers, sheets, faces = take_rows(layers, order)
    hits, alphas = _found_hits(scene, rays, codes, (sheets, faces), needed)
    total = scene.cuts.shape[0]
    alphas *= mask_opacities(scene.masks, hits, rays.view, numbers, needed, total=total)
    lit = _irradiance(scene, hits, rays.view, numbers, needed, how)
    one = lambda instance, row: paint(instance, instance.node, *row, fields=how.fields)
    painted = map_by_kind(one, scene.shaders, numbers, needed, (hits, rays.view, lit))
    details = details_of(how.fields, hits, painted, numbers)
    return hits.t, alphas, painted.rgb, details


def _found_hits(
    scene: FlatScene,
    rays: Ray,
    codes: Int[Array, " rows"],
    meshes: tuple[FoundSheet | None, Int[Array, "rows faces"] | None],
    needed: Bool[Array, " rows"],
) -> tuple[Hit, Float[Array, " rows"]]:
    """Returns the hits on layers, and their opacities."""
    found = jax.vmap(_facing_hit)(rays), jnp.zeros_like(rays.near)
    sheets, faces = meshes
    if scene.triangles is None or sheets is None or faces is None:
        return where_rows(needed, _shape_hits(scene, rays, codes, needed), found)
    on_mesh = sheets.kind != 0
    found = _colored(found[0]), found[1]
    if scene.occluders:
        on_shape = needed & ~on_mesh
        hits, alphas = _shape_hits(scene, rays, jnp.where(on_mesh, 0, codes), on_shape)
        found = where_rows(on_shape, (_colored(hits), alphas), found)

    there = needed & on_mesh
    hits = sheet_hits(scene.triangles, there, rays, sheets, faces)
    return where_rows(there, hits, found)


def _shape_hits(
    scene: FlatScene, rays: Ray, codes: Int[Array, " rows"], needed: Bool[Array, " rows"]
) -> tuple[Hit, Float[Array, " rows"]]:
    """Returns the hits on parts of shapes, and their opacities."""
    parts, code = count_parts(scene), jnp.maximum(codes, 0)

    meet = lambda instance, row: hit_on_part(instance, *row)
    # code = number parts + part
    rows = rays, code % parts
    total = scene.cuts.shape[0]
    return map_by_kind(meet, scene.occluders, code // parts, needed, rows, total=total)


def _colored(hit: Hit) -> Hit:
    """Returns the hit with a colour, as those on meshes have."""
    white = jnp.ones_like(hit.point)
    return eqx.tree_at(lambda x: x.color, hit, white, is_leaf=lambda x: x is None)


def _facing_hit(ray: Ray) -> Hit:
    """Returns a hit at `t = 1` with a plane across the ray.

    It stands for rows that do not count: lights and materials have no second derivatives at zeros.
    """
    sides, flat = ray.d_origin + ray.d_direction, jnp.zeros((2, 2), ray.near.dtype)
    one, none = jnp.ones_like(ray.near), jnp.zeros_like(ray.near)
    normal = -safe_normalise(ray.direction)
    return Hit(one, ray.at(1), normal, flat[0], flat, none, d_point=sides)


def _irradiance(
    scene: FlatScene, hits: Hit, views: Array, own: Array, used: Array, how: Shading
) -> Irradiance:
    """Returns the light on every row."""
    if not scene.lights:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (*used.shape, *x.shape)), no_light())
    samples = [_sample(stack, hits) for stack in scene.lights]
    rays, irradiance, ambient = jax.tree.map(lambda *xs: jnp.concatenate(xs), *samples)
    visible = None
    if how.shadows and irradiance.shape[0]:
        # The rays of all lights, one after the other: the search is compiled once for all.
        lit = reaches_front(scene, rays.view, hits.normal, own) & used
        see = lambda row: visible_past_all(scene, row[0], own, row[1])
        visible = map_in_turn(see, (rays, lit))
        irradiance = visible[..., None] * irradiance
    swap = lambda x: jnp.swapaxes(x, 0, 1)
    lit = Irradiance(swap(rays.view), swap(irradiance), jnp.sum(ambient, axis=0))
    panoramas = [stack for stack in scene.lights if mirrors(stack)]
    if not panoramas:
        return lit
    seen = hits.normal, views
    glossy = [jax.vmap(partial(_reflect, stack))(seen) for stack in panoramas]
    counts = [x[1].shape[0] for x in samples[-len(panoramas) :]]
    rows = lit, glossy, None if visible is None else swap(visible), seen
    add = lambda lit, glossy, visible, seen: add_glossy(lit, glossy, counts, visible, seen)
    return jax.vmap(add)(*rows)


def _reflect(stack: InstanceStack, seen: tuple[Vector, Vector]) -> Float[Array, "lights levels 3"]:
    return stack.map(lambda light: light.node.reflect(*seen))


def _sample(stack: InstanceStack, hits: Hit) -> tuple[Ray, Array, Array]:
    """Returns shadow rays and irradiance (`rays rows`) and ambient light (`lights rows`)."""

    def one(member: Instance) -> tuple[Ray, Array, Array]:
        light = stack.join(member)
        sample = lambda light, row: light.node.sample(*row)
        samples = map_rows(sample, light, (hits.point, hits.d_point))
        swap = lambda x: jnp.swapaxes(x, 0, 1)
        return *jax.tree.map(swap, (samples.rays, samples.irradiance)), samples.ambient

    rays, irradiance, ambient = map_in_turn(one, stack.members)
    join = lambda x: x.reshape(-1, *x.shape[2:])
    return *jax.tree.map(join, (rays, irradiance)), ambient
