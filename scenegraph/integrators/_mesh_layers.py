"""Meshes on rays: the layers that were found, and shadows, computed with derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..flat import FlatScene, MeshFace, MeshFaces
from ..rays import Hit, Ray
from ..rows import map_rows
from ..shapes import cross_triangle, fragment_hit, sheet_hit, unhidden
from ..visibility import (
    by_side,
    face_transmission,
    FaceSums,
    fill_faces,
    FoundSheet,
    next_faces,
    sum_over_pairs,
    sum_shadows,
    sum_sheets,
)
from ._masks import masks_by_owner, opacity_by_mask


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
        meshes = scene.triangles
        assert meshes is not None
        corners = meshes.vertices.point[meshes.corners]
        return sum_sheets(meshes.tree, corners, used, rays, sheets)

    changes = eqx.filter_jvp(sums, primals[:2], tangents[:2])[1]
    # Where neither meshes nor rays move, there are none.
    limit = lambda some, change: None if change is None else jnp.where(some, change, 0)
    changes = tuple(map(limit, partly, changes))
    return values, changes


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

    def join(_: None, row: tuple) -> tuple[Hit, Array]:
        hits, opacity, there, coverage, hidden = row
        alpha = opacity[0] * unhidden(coverage, hidden)
        return eqx.tree_at(lambda x: x.coverage, sheet_hit(hits, there, coverage), alpha), alpha

    rows = hits, opacity, faces >= 0, sheets.coverage, sheets.hidden
    return map_rows(join, None, rows, used=used)


def _hits_on_faces(
    meshes: MeshFaces, rays: Ray, faces: Int[Array, "rows n"]
) -> tuple[Hit, Float[Array, "rows n"]]:
    """Returns the hits on some faces of every row, and their opacities; zeros where it is -1."""

    def one(meshes: MeshFaces, row: tuple[Ray, Array]) -> tuple[Hit, Array]:
        ray, number = row
        face = meshes.take(number)
        return fragment_hit(ray, face.shape), face.opacity

    # The first faces of all rows, then the second ones: most rows have few.
    rows, count = faces.shape
    again = jax.tree.map(lambda x: jnp.concatenate([x] * count), rays)
    number = faces.T.ravel()
    found = map_rows(one, meshes, (again, number), used=number >= 0)
    apart = lambda x: jnp.moveaxis(x.reshape(count, rows, *x.shape[1:]), 0, 1)
    return jax.tree.map(apart, found)


@eqx.filter_custom_jvp
def mesh_transmission(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"]
) -> Float[Array, " rows"]:
    """Returns the fraction of shadow rays that passes meshes."""
    if scene.masks:
        return face_transmission(_sum_shadows(scene, rays, used))
    assert scene.triangles is not None
    tree, lines = jax.lax.stop_gradient((scene.triangles.tree, rays))
    return face_transmission(sum_shadows(tree, lines, used))


@mesh_transmission.def_jvp
def _mesh_transmission_jvp(primals: tuple, tangents: tuple) -> tuple:
    scene, rays, used = primals
    visible = mesh_transmission(scene, rays, used)
    partly = (visible > _ROUNDING) & (visible < 1 - _ROUNDING)
    passes = lambda scene, rays: face_transmission(_sum_shadows(scene, rays, used & partly))
    change = eqx.filter_jvp(passes, primals[:2], tangents[:2])[1]
    return visible, None if change is None else jnp.where(partly, change, 0)


# Light that passes to within this, all of it or none, has no derivatives: they are those of the
# coverage of many faces, which add up to nothing but rounding.
_ROUNDING = 1e-5


def _sum_shadows(scene: FlatScene, rays: Ray, used: Bool[Array, " rows"]) -> FaceSums:
    """Sums what all faces stop of rays, with derivatives; sums have rays last."""
    meshes = scene.triangles
    assert meshes is not None
    tree, faces = meshes.tree, meshes.take(jnp.arange(len(meshes.corners)))
    pad = lambda x: jnp.pad(x, ((0, len(tree.owner) - len(x)), *((0, 0),) * (x.ndim - 1)))
    corners = fill_faces(faces.shape.corners, tree.corners)
    faces = eqx.tree_at(lambda x: x.shape.corners, jax.tree.map(pad, faces), corners)
    masks, static = eqx.partition(masks_by_owner(scene), eqx.is_array)

    def stop(ray: Ray, face: MeshFace, masks: PyTree) -> FaceSums:
        crossed, opacity = cross_triangle(ray, face.shape.corners), face.opacity
        if scene.masks:
            hit, masks = fragment_hit(ray, face.shape), eqx.combine(masks, static)
            opacity *= opacity_by_mask(masks, hit, ray.view, face.owner)
        return by_side(crossed.coverage, crossed.facing, opacity, face.one_sided)

    still = jax.lax.stop_gradient((tree, rays))
    sums = sum_over_pairs(stop, next_faces, *still, used, (rays, faces, masks))
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), sums)
