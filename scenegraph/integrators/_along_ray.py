"""The layers of one ray as one function, from the search to the colours; without derivatives."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar
from ..flat import (
    FlatScene,
    hit_on_part,
)
from ..numerics import safe_normalise
from ..rays import Hit, Layers, Ray
from ..rows import as_operands, map_rows
from ..shapes import fragment_hit, unhidden
from ..visibility import (
    count_parts,
    face_transmission,
    faces_of_sheet,
    find_layers,
    FoundSheet,
    ListedSheet,
    passing_of_ray,
    sums_of_ray,
)
from ._by_kind import of_surface
from ._details import details_of, no_details, paint
from ._irradiance import irradiance_at
from ._shadows import are_meshes, past_footprint, reaches_front, Shading


def layers_of_rays(scene: FlatScene, rays: Ray, how: Shading) -> Layers:
    """Finds the nearest layers of rays and shades them, ray by ray; no opacity is a shader."""
    along = partial(_layers_of_ray, how=how, parts=count_parts(scene))
    return map_rows(along, as_operands(scene.without_media()), rays)


def _layers_of_ray(scene: FlatScene, ray: Ray, *, how: Shading, parts: int) -> Layers:
    found = find_layers(scene, ray, how.layers)
    count = jnp.sum(found.needed, dtype=jnp.int32)
    shaders_at = scene.shaders_at
    assert shaders_at is not None

    def turn(state: tuple[Array, tuple]) -> tuple[Array, tuple]:
        k, layers = state
        number, part = found.owner[k], jnp.maximum(found.code[k], 0) % parts
        sheet = jax.tree.map(lambda x: x[k], found.sheets)
        hit, alpha = _hit(scene, ray, number, part, (sheet, found.listed), k < count)
        see = partial(_visible, scene, own=number, hit=hit, used=k < count)
        lit = irradiance_at(scene, hit, number, ray.view, shadows=how.shadows, see=see)
        row = hit, ray.view, lit
        own = lambda instance: paint(instance, instance.node, *row, fields=how.fields)
        painted = of_surface(own, scene.shaders, shaders_at, number)
        one = hit.t, alpha, painted.rgb, details_of(how.fields, hit, painted, number)
        return k + 1, jax.tree.map(lambda layers, x: layers.at[k].set(x), layers, one)

    table = lambda *shape: jnp.zeros((how.layers, *shape), ray.near.dtype)
    details = no_details(how.fields, how.layers, ray.near.dtype)
    start = jnp.zeros((), jnp.int32), (table(), table(), table(3), details)
    _, layers = jax.lax.while_loop(lambda state: state[0] < count, turn, start)
    t, alpha, rgb, details = layers
    return Layers(t, alpha, rgb, found.missed, **details)


def _hit(
    scene: FlatScene,
    ray: Ray,
    number: Int[Array, ""],
    part: Int[Array, ""],
    on_mesh: tuple[FoundSheet | None, ListedSheet | None],
    used: Bool[Array, ""],
) -> tuple[Hit, Array]:
    """Returns the hit on a layer, and its opacity."""
    sheet, listed = on_mesh
    meet = partial(hit_on_part, ray=ray, part=part)
    on_shape = lambda: of_surface(meet, scene.occluders, scene.occluders_at, number)
    if sheet is None or listed is None:
        return on_shape()
    on_sheet = lambda: _hit_on_sheet(scene, ray, sheet, listed, used & (sheet.kind != 0))
    if not scene.occluders:
        return on_sheet()
    return jax.lax.cond(sheet.kind != 0, on_sheet, lambda: with_color(*on_shape()))


def with_color(hit: Hit, alpha: Array) -> tuple[Hit, Array]:
    """Returns a hit with a colour, as those on meshes have."""
    white = jnp.ones_like(hit.point)
    return eqx.tree_at(lambda x: x.color, hit, white, is_leaf=lambda x: x is None), alpha


def _hit_on_sheet(
    scene: FlatScene, ray: Ray, sheet: FoundSheet, listed: ListedSheet, used: Bool[Array, ""]
) -> tuple[Hit, Array]:
    """Returns the hit on a sheet, the mean over its fragments; see `sheet_hit`."""
    meshes = scene.triangles
    assert meshes is not None
    faces, shares = faces_of_sheet(meshes.tree, ray, sheet, listed, used)
    count, most = jnp.sum(faces >= 0, dtype=jnp.int32), jnp.argmax(shares)
    face_at = lambda k: meshes.take(jnp.maximum(faces[k], 0))
    means = lambda hit: (hit.t, hit.normal, hit.color)

    def turn(state: tuple) -> tuple:
        k, sums, spot = state
        hit = fragment_hit(ray, face_at(k).shape)
        sums = jax.tree.map(lambda x, y: x + shares[k] * y, sums, means(hit))
        spot = jax.tree.map(lambda x, y: jnp.where(k == most, y, x), spot, hit)
        return k + 1, sums, spot

    shape = jax.eval_shape(lambda: fragment_hit(ray, face_at(0).shape))
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shape)
    start = jnp.zeros((), jnp.int32), means(nothing), nothing
    _, sums, spot = jax.lax.while_loop(lambda state: state[0] < count, turn, start)
    total = jnp.sum(shares)
    t, normal, color = jax.tree.map(lambda x: x / jnp.where(total > 0, total, 1), sums)
    alpha = meshes.opacity[jnp.maximum(faces[0], 0)] * unhidden(sheet.coverage, sheet.hidden)
    hit = eqx.tree_at(means, spot, (t, safe_normalise(normal), color))
    return eqx.tree_at(lambda x: x.coverage, hit, alpha), alpha


def _visible(
    scene: FlatScene,
    rays: Ray,
    ends: Int[Array, "directions *ends"],
    *,
    own: Int[Array, ""],
    hit: Hit,
    used: Bool[Array, ""],
) -> Float[Array, " directions"]:
    """Returns the fractions of shadow rays that arrive, one ray after the other."""
    lit = used & reaches_front(scene, rays.view, hit.normal, own)

    def see(i: Int[Array, ""], visible: Array) -> Array:
        ray = jax.tree.map(lambda x: x[i], rays)
        return visible.at[i].set(_passes(scene, ray, ends[i], lit[i]))

    count = rays.near.shape[0]
    if count == 1:
        return see(jnp.zeros((), jnp.int32), jnp.ones_like(rays.near))
    return jax.lax.fori_loop(0, count, see, jnp.ones_like(rays.near))


def _passes(scene: FlatScene, ray: Ray, own: Int[Array, "*ends"], used: Bool[Array, ""]) -> Scalar:
    """Returns the fraction of a shadow ray that passes shapes and meshes."""
    visible = jnp.ones_like(ray.near)
    if scene.tree is not None:
        visible = passing_of_ray(scene.tree, ray, own, used).transmission
    if scene.triangles is None:
        return visible
    past = past_footprint(ray, are_meshes(scene)[own if own.ndim == 0 else own[0]])
    sums = sums_of_ray(scene.triangles.tree, past, used & (visible > 0))
    return visible * face_transmission(sums)
