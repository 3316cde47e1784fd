"""Meshes on rays: the layers that were found, and shadows, computed with derivatives."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..flat import FaceTree, FlatScene, MeshFaces
from ..rays import Hit, Ray
from ..rows import map_rows
from ..shapes import cross_triangle, fragment_hit, sheet_hit, unhidden
from ..visibility import (
    by_side,
    face_transmission,
    FaceSums,
    FoundSheet,
    Ranking,
    sum_moving_shadows,
    sum_shadows,
    sum_sheets,
)
from ._masks import mask_opacities


@eqx.filter_custom_jvp
def sheet_coverage(
    scene: FlatScene, rays: Ray, sheets: FoundSheet
) -> tuple[Float[Array, "layers rays"], Float[Array, "layers rays"]]:
    """Returns what sheets cover, and what hides them, with the derivatives of all faces."""
    del scene, rays
    return jnp.minimum(sheets.coverage, 1), sheets.hidden


@sheet_coverage.def_jvp
def _sheet_coverage_jvp(primals: tuple, tangents: tuple) -> tuple:
    scene, rays, sheets = primals
    sheets = jax.lax.stop_gradient(sheets)
    # By this function again, so that second derivatives know how these values change.
    values = sheet_coverage(scene, rays, sheets)
    partly = [(x > _ROUNDING) & (x < 1 - _ROUNDING) for x in (sheets.coverage, sheets.hidden)]
    used = jnp.any(partly[0], axis=0)

    def sums(scene: FlatScene, rays: Ray) -> tuple[Array, Array]:
        tree, corners, _ = _moving_faces(scene)
        return sum_sheets(tree, corners, used, rays, sheets)

    changes = eqx.filter_jvp(sums, primals[:2], tangents[:2])[1]
    # Where neither meshes nor rays move, there are none.
    limit = lambda some, change: None if change is None else jnp.where(some, change, 0)
    changes = tuple(map(limit, partly, changes))
    return values, changes


def _moving_faces(scene: FlatScene) -> tuple[FaceTree, Float[Array, "faces 3 3"], Array]:
    """Returns the faces without derivatives, their corners with them, and their mean opacities."""
    meshes = scene.triangles
    assert meshes is not None
    tree, corners = jax.lax.stop_gradient(meshes.tree), meshes.vertices.point[meshes.corners]
    return tree, corners, meshes.mean_opacity


def sheet_hits(
    meshes: MeshFaces,
    used: Bool[Array, " rows"],
    rays: Ray,
    sheets: FoundSheet,
    faces: Int[Array, "rows n"],
) -> tuple[Hit, Float[Array, " rows"]]:
    """Computes the hits on sheets that are used, and their opacities.

    Of every sheet, some `faces`, those that cover most, count for what is seen there.
    """
    faces = jnp.where(used[:, None], faces, -1)
    hits, opacity = _hits_on_faces(meshes, rays, faces)
    join = lambda _, row: sheet_hit(*row)
    hits = map_rows(join, None, (hits, faces >= 0, sheets.coverage))
    alphas = opacity[:, 0] * unhidden(sheets.coverage, sheets.hidden)
    return eqx.tree_at(lambda x: x.coverage, hits, alphas), alphas


def _hits_on_faces(
    meshes: MeshFaces, rays: Ray, faces: Int[Array, "rows n"]
) -> tuple[Hit, Float[Array, "rows n"]]:
    """Returns the hits on some faces of every row, and their opacities; zeros where it is -1."""

    def one(meshes: MeshFaces, row: tuple[Ray, Array]) -> tuple[Hit, Array]:
        ray, number = row

        def compute() -> tuple[Hit, Array]:
            face = meshes.take(number)
            return fragment_hit(ray, face.shape), face.opacity

        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(compute))
        return jax.lax.cond(number >= 0, compute, lambda: zeros)

    # The first faces of all rows, then the second ones: most rows have few.
    rows, count = faces.shape
    again = jax.tree.map(lambda x: jnp.concatenate([x] * count), rays)
    found = map_rows(one, meshes, (again, faces.T.ravel()))
    apart = lambda x: jnp.moveaxis(x.reshape(count, rows, *x.shape[1:]), 0, 1)
    return jax.tree.map(apart, found)


@eqx.filter_custom_jvp
def mesh_transmission(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"], *, occluders: int
) -> tuple[Float[Array, " rows"], Int[Array, " rows"]]:
    """Returns the fraction of shadow rays that passes meshes; none is left out.

    Where opacities are shaders, they are computed for the `occluders` faces that cover most, and
    further ones have their mean.
    """
    some = occluders if scene.masks else 0
    sums, found = _search(scene, rays, used, some)
    if found is None:
        return face_transmission(sums), jnp.zeros(used.shape, jnp.int32)
    visible = face_transmission(_with_masks(scene, rays, sums, found))
    return visible, _missed(visible, found, occluders)


@mesh_transmission.def_jvp
def _mesh_transmission_jvp(primals: tuple, tangents: tuple, *, occluders: int) -> tuple:
    scene, rays, used = primals
    visible, missed = mesh_transmission(scene, rays, used, occluders=occluders)
    partly = (visible > _ROUNDING) & (visible < 1 - _ROUNDING)
    found = _search(scene, rays, used & partly, occluders)[1] if scene.masks else None

    def passes(scene: FlatScene, rays: Ray) -> Float[Array, " rows"]:
        sums = sum_moving_shadows(*_moving_faces(scene), rays, used & partly)
        if found is not None:
            sums = _with_masks(scene, rays, sums, found)
        return face_transmission(sums)

    change = eqx.filter_jvp(passes, primals[:2], tangents[:2])[1]
    if change is not None:
        change = jnp.where(partly, change, 0)
    return (visible, missed), (change, None)


# Light that passes to within this, all of it or none, has no derivatives: they are those of the
# coverage of many faces, which add up to nothing but rounding.
_ROUNDING = 1e-5


def _search(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"], count: int
) -> tuple[FaceSums, Ranking | None]:
    """Sums what all faces stop of rays, and finds the `count` that cover most."""
    assert scene.triangles is not None
    tree, lines = jax.lax.stop_gradient((scene.triangles.tree, rays))
    count = min(count, scene.triangles.owner.shape[0])
    found = sum_shadows(tree, lines, used, count)
    return jax.lax.stop_gradient(found)


def _missed(visible: Float[Array, " rows"], found: Ranking, occluders: int) -> Int[Array, " rows"]:
    """Counts faces that were left out of what is computed anew."""
    partly = (visible > 0) & (visible < 1)
    return jnp.where(partly, jnp.maximum(found.total - occluders, 0), 0)


def _with_masks(scene: FlatScene, rays: Ray, sums: FaceSums, found: Ranking) -> FaceSums:
    """Returns sums with the opacities of the faces that were found."""
    assert scene.triangles is not None
    faces, meshes = jnp.where(found.codes >= 0, found.codes, -1).T, scene.triangles
    hits, own = _hits_on_faces(meshes, rays, faces)
    opacity = own * _masks_of(scene, hits, rays, faces)
    crossed = _crossings(meshes, rays, faces)

    def added(opacity: Array) -> FaceSums:
        sides = by_side(crossed.coverage, crossed.facing, opacity, crossed.one_sided)
        return jax.tree.map(lambda x: jnp.sum(x, axis=-1), sides)

    # What these faces stop on average gives way to what they do stop.
    change = jax.tree.map(jnp.subtract, added(opacity), added(crossed.mean_opacity))
    return jax.tree.map(jnp.add, sums, change)


class _Crossings(NamedTuple):
    """The coverage of rays by faces."""

    coverage: Float[Array, "rows n"]
    facing: Float[Array, "rows n"]
    mean_opacity: Float[Array, "rows n"]
    one_sided: Bool[Array, "rows n"] | None


def _crossings(meshes: MeshFaces, rays: Ray, faces: Int[Array, "rows n"]) -> _Crossings:
    def one(meshes: MeshFaces, row: tuple[Ray, Array]) -> _Crossings:
        ray, number = row
        face = meshes.take(jnp.maximum(number, 0))
        crossed = cross_triangle(ray, face.shape.corners)
        covered = jnp.where(number >= 0, crossed.coverage, 0)
        return _Crossings(covered, crossed.facing, face.mean_opacity, face.one_sided)

    several = lambda meshes, row: jax.vmap(lambda face: one(meshes, (row[0], face)))(row[1])
    return map_rows(several, meshes, (rays, faces))


def _masks_of(
    scene: FlatScene, hits: Hit, rays: Ray, faces: Int[Array, "rows n"]
) -> Float[Array, "rows n"]:
    """Returns the opacities of shaders where rays meet some faces each."""
    assert scene.triangles is not None
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    views = jnp.repeat(rays.view, faces.shape[1], axis=0)
    owners = scene.triangles.owner[jnp.maximum(faces, 0)]
    rows = jax.tree.map(flat, (hits, owners, faces >= 0))
    total = scene.cuts.shape[0]
    found = mask_opacities(scene.masks, rows[0], views, *rows[1:], total=total)
    return found.reshape(faces.shape)
