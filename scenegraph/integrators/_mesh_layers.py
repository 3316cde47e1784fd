"""Meshes on rays: the layers that were found, and shadows, computed with derivatives."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, UInt8
from ..flat import FaceTree, FlatScene, InstanceStack, MeshFace, MeshFaces
from ..rays import Hit, Ray
from ..rows import map_rows
from ..rowwise import take_rows
from ..shapes import cross_triangle, fragment_hit, sheet_hit, unhidden
from ..visibility import (
    by_side,
    face_transmission,
    FaceSums,
    FoundFragments,
    FoundMeshes,
    Ranking,
    sum_moving_shadows,
    sum_shadows,
    sum_sheets,
)
from ._by_kind import map_by_case, map_used
from ._masks import mask_opacities


# The opacities of meshes that are shaders.
Masks: TypeAlias = tuple[InstanceStack, ...]


class SheetRows(NamedTuple):
    """Sheets, one a row."""

    ray: Int[Array, " rows"]  # the place of the fragments of its ray
    place: Int[Array, " rows"]  # of its first one among these
    coverage: Float[Array, " rows"]
    hidden: Float[Array, " rows"]
    size: UInt8[Array, " rows"]  # of fragments


@eqx.filter_custom_jvp
def sheet_coverage(
    scene: FlatScene, rays: Ray, found: FoundMeshes
) -> tuple[Float[Array, "layers rays"], Float[Array, "layers rays"]]:
    """Returns what sheets cover, and what hides them, with the derivatives of all faces."""
    del scene, rays
    return jnp.minimum(found.sheets.coverage, 1), found.sheets.hidden


@sheet_coverage.def_jvp
def _sheet_coverage_jvp(primals: tuple, tangents: tuple) -> tuple:
    scene, rays, found = primals
    found = jax.lax.stop_gradient(found)
    sheets = found.sheets
    partly = [(x > _ROUNDING) & (x < 1 - _ROUNDING) for x in (sheets.coverage, sheets.hidden)]
    used = jnp.any(partly[0], axis=0)

    def sums(scene: FlatScene, rays: Ray) -> tuple[Array, Array]:
        return sum_sheets(*_moving_faces(scene)[:2], found.listed, used, rays, sheets)

    changes = eqx.filter_jvp(sums, primals[:2], tangents[:2])[1]
    # Where neither meshes nor rays move, there are none.
    limit = lambda some, change: None if change is None else jnp.where(some, change, 0)
    changes = tuple(map(limit, partly, changes))
    return (jnp.minimum(sheets.coverage, 1), sheets.hidden), changes


def _moving_faces(scene: FlatScene) -> tuple[FaceTree, Float[Array, "faces 3 3"], Array]:
    """Returns the faces without derivatives, their corners with them, and their mean opacities."""
    meshes = scene.triangles
    assert meshes is not None
    tree, corners = jax.lax.stop_gradient(meshes.tree), meshes.vertices.point[meshes.corners]
    return tree, corners, meshes.mean_opacity


# Most sheets have no more fragments than these, and are computed with as few of them.
_USUAL = 2, 4


def sheet_hits(
    shared: tuple[MeshFaces, FoundFragments],
    used: Bool[Array, " rows"],
    rays: Ray,
    sheets: SheetRows,
    count: int,
) -> tuple[Hit, Float[Array, " rows"]]:
    """Computes the hits on sheets that are used, and their opacities.

    Of every sheet, the `count` fragments that cover most count for what is seen there.
    """
    counts = [*(some for some in _USUAL if some < count), count]
    case = sum((sheets.size > some).astype(jnp.int32) for some in counts[:-1])
    functions = [partial(_hits_of, count=some) for some in counts]
    return map_by_case(functions, shared, jnp.where(used, case, len(counts)), (rays, sheets))


def _hits_of(
    shared: tuple[MeshFaces, FoundFragments], block: tuple[Ray, SheetRows], count: int
) -> tuple[Hit, Float[Array, " rows"]]:
    """Computes the hits on some sheets, of `count` fragments each."""
    (meshes, fragments), (rays, sheets) = shared, block
    rows = take_rows(fragments, sheets.ray)
    member = rows.leader == sheets.place[:, None].astype(rows.leader.dtype)
    covers, best = _strongest(jnp.where(member, rows.share, 0), min(count, member.shape[1]))
    used, ids = covers > 0, jnp.take_along_axis(rows.ids, best, axis=1)
    faces = meshes.take(jnp.where(used, ids, 0))
    hits = _each_fragment(fragment_hit, rays, faces.shape)
    hits = jax.vmap(sheet_hit)(hits, used, sheets.coverage)
    alphas = faces.opacity[:, 0] * unhidden(sheets.coverage, sheets.hidden)
    return eqx.tree_at(lambda x: x.coverage, hits, alphas), alphas


def _strongest(
    values: UInt8[Array, "rows n"], count: int
) -> tuple[UInt8[Array, "rows count"], Int[Array, "rows count"]]:
    """Returns the largest values of every row, and their places; made for rows of few values."""
    # Along the leading axis, which is faster on CPUs than `top_k`.
    left, places = values.T, jnp.arange(values.shape[1], dtype=jnp.int32)[:, None]

    def next_best(left: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        most = jnp.max(left, axis=0)
        first = jnp.min(jnp.where(left == most, places, len(places)), axis=0)
        return jnp.where(places == first, 0, left), (most, first)

    found = jax.lax.scan(next_best, left, None, length=count)[1]
    return found[0].T, found[1].T


def _each_fragment(function: Callable[[Ray, PyTree], PyTree], rays: Ray, faces: PyTree) -> PyTree:
    """Maps a function over the faces of every row and its ray; small programs compile fast."""
    rows, count = jax.tree.leaves(faces)[0].shape[:2]
    repeat = lambda x: jnp.repeat(x, count, axis=0)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), faces)
    each = map_rows(lambda _, row: function(*row), None, (jax.tree.map(repeat, rays), flat))
    return jax.tree.map(lambda x: x.reshape(rows, count, *x.shape[1:]), each)


@eqx.filter_custom_jvp
def mesh_transmission(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"], *, occluders: int, everything: bool
) -> tuple[Float[Array, " rows"], Int[Array, " rows"]]:
    """Returns the fraction of shadow rays that passes meshes; none is left out.

    Where opacities are shaders, they are computed for the `occluders` faces that cover most, and
    further ones have their mean.
    """
    some = occluders if scene.masks else 0
    sums, found = _search(scene, rays, used, some, everything)
    if found is None:
        return face_transmission(sums), jnp.zeros(used.shape, jnp.int32)
    visible = face_transmission(_with_masks(scene, rays, sums, found))
    return visible, _missed(visible, found, occluders)


@mesh_transmission.def_jvp
def _mesh_transmission_jvp(
    primals: tuple, tangents: tuple, *, occluders: int, everything: bool
) -> tuple:
    scene, rays, used = primals
    found = _search(scene, rays, used, occluders, everything)[1] if scene.masks else None

    def passes(scene: FlatScene, rays: Ray) -> Float[Array, " rows"]:
        search = partial(sum_moving_shadows, *_moving_faces(scene))
        sums = search(rays, used, everything=everything)
        if found is not None:
            sums = _with_masks(scene, rays, sums, found)
        visible = face_transmission(sums)
        partly = (visible > _ROUNDING) & (visible < 1 - _ROUNDING)
        return jnp.where(partly, visible, jax.lax.stop_gradient(visible))

    visible, change = eqx.filter_jvp(passes, primals[:2], tangents[:2])
    missed = jnp.zeros(used.shape, jnp.int32)
    if found is not None:
        missed = _missed(visible, found, occluders)
    return (visible, missed), (change, None)


# Light that passes to within this, all of it or none, has no derivatives: they are those of the
# coverage of many faces, which add up to nothing but rounding.
_ROUNDING = 1e-5


def _search(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"], count: int, everything: bool
) -> tuple[FaceSums, Ranking | None]:
    """Sums what all faces stop of rays, and finds the `count` that cover most."""
    assert scene.triangles is not None
    tree, lines = jax.lax.stop_gradient((scene.triangles.tree, rays))
    count = min(count, scene.triangles.owner.shape[0])
    found = sum_shadows(tree, lines, used, count, everything=everything)
    return jax.lax.stop_gradient(found)


def _missed(visible: Float[Array, " rows"], found: Ranking, occluders: int) -> Int[Array, " rows"]:
    """Counts faces that were left out of what is computed anew."""
    partly = (visible > 0) & (visible < 1)
    return jnp.where(partly, jnp.maximum(found.total - occluders, 0), 0)


def _with_masks(scene: FlatScene, rays: Ray, sums: FaceSums, found: Ranking) -> FaceSums:
    """Returns sums with the opacities of the faces that were found."""
    some, ids = found.codes >= 0, jnp.maximum(found.codes, 0)
    rows = rays, ids, some
    sums_of = partial(_sums_of, total=scene.cuts.shape[0])
    meshes = scene.triangles, scene.masks
    own, mean = map_used(sums_of, meshes, jnp.any(some, axis=1), rows)
    # What these faces stop on average gives way to what they do stop.
    return jax.tree.map(lambda every, own, mean: every + own.T - mean.T, sums, own, mean)


def _sums_of(
    shared: tuple[MeshFaces, Masks], block: tuple[Ray, Array, Array], total: int
) -> tuple[FaceSums, FaceSums]:
    """Sums what the faces of some rows stop, and what they do by mean opacity; sides come last."""
    (meshes, masks), (rays, ids, some) = shared, block
    faces = meshes.take(ids)
    fragments = _each_fragment(cross_triangle, rays, faces.shape.corners)
    covered = jnp.where(some, fragments.coverage, 0)

    def added(opacity: Array) -> FaceSums:
        sides = by_side(covered, fragments.facing, opacity, faces.one_sided)
        return jax.tree.map(lambda x: jnp.sum(x, axis=-1).T, sides)

    opacity = faces.opacity * _masks_of(masks, rays, faces, some, total)
    return added(opacity), added(faces.mean_opacity)


def _masks_of(
    masks: Masks, rays: Ray, faces: MeshFace, some: Bool[Array, "rows n"], total: int
) -> Float[Array, "rows n"]:
    """Returns the opacities of shaders where rays meet some faces each."""
    hits = _each_fragment(fragment_hit, rays, faces.shape)
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    views = jnp.repeat(rays.view, some.shape[1], axis=0)
    hits, owners, used = jax.tree.map(flat, (hits, faces.owner, some))
    found = mask_opacities(masks, hits, views, owners, used, total=total)
    return found.reshape(some.shape)
