"""Meshes on rays: the layers that were found, and shadows, computed with derivatives."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..rays import Hit, Ray
from ..rowwise import map_rows
from ..scene import FlatScene, MeshFaces
from ..shapes import cross_triangle, fragment_hit, sheet_hit, unhidden
from ..visibility import by_side, face_transmission, FaceSums, FoundSheets, sum_shadows
from ._by_kind import map_used


def sheet_hits(
    meshes: MeshFaces, block: tuple[Ray, FoundSheets, Int[Array, " rows"]], count: int
) -> tuple[Hit, Float[Array, " rows"]]:
    """Computes the hits on sheets, and their opacities.

    A row is a ray, its fragments, and the sheet's place among them. Of every sheet, the `count`
    fragments that cover most have derivatives.
    """
    rays, rows, places = block
    member = (rows.leader == places[:, None]) & (rows.ids >= 0)
    covers, best = _strongest(jnp.where(member, rows.coverage, -1), min(count, member.shape[1]))
    used, rest = covers > 0, jnp.sum(jnp.where(member, rows.coverage, 0), axis=1)
    rest = jnp.maximum(rest - jnp.sum(jnp.where(used, covers, 0), axis=1), 0)
    ids = jnp.take_along_axis(rows.ids, best, axis=1)
    faces = meshes.take(jnp.where(used, ids, 0))
    of_sheet = lambda x: jnp.take_along_axis(x, places[:, None], axis=1)[:, 0]
    hidden, rest = of_sheet(rows.hidden), rest + of_sheet(rows.rest)

    hits = _each_fragment(fragment_hit, rays, faces.shape)
    hits = jax.vmap(sheet_hit)(hits, used, rest)
    alphas = faces.opacity[:, 0] * unhidden(hits.coverage, hidden)
    return eqx.tree_at(lambda x: x.coverage, hits, alphas), alphas


def _strongest(
    values: Float[Array, "rows n"], count: int
) -> tuple[Float[Array, "rows count"], Int[Array, "rows count"]]:
    """Returns the largest values of every row, and their places; made for rows of few values."""
    # Along the leading axis, which is faster on CPUs than `top_k`.
    left, places = values.T, jnp.arange(values.shape[1], dtype=jnp.int32)[:, None]

    def next_best(left: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        most = jnp.max(left, axis=0)
        first = jnp.min(jnp.where(left == most, places, len(places)), axis=0)
        return jnp.where(places == first, -jnp.inf, left), (most, first)

    found = jax.lax.scan(next_best, left, None, length=count)[1]
    return found[0].T, found[1].T


def _each_fragment(function: Callable[[Ray, PyTree], PyTree], rays: Ray, faces: PyTree) -> PyTree:
    """Maps a function over the faces of every row and its ray; small programs compile fast."""
    rows, count = jax.tree.leaves(faces)[0].shape[:2]
    repeat = lambda x: jnp.repeat(x, count, axis=0, total_repeat_length=rows * count)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), faces)
    each = map_rows(lambda _, row: function(*row), None, (jax.tree.map(repeat, rays), flat))
    return jax.tree.map(lambda x: x.reshape(rows, count, *x.shape[1:]), each)


@eqx.filter_custom_jvp
def mesh_transmission(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"], *, occluders: int, everything: bool
) -> tuple[Float[Array, " rows"], Int[Array, " rows"]]:
    """Returns the fraction of shadow rays that passes meshes; none is left out.

    All faces count; derivatives are those of the `occluders` faces that cover most.
    """
    assert scene.triangles is not None
    tree, lines = jax.lax.stop_gradient((scene.triangles.tree, rays))
    sums, _ = sum_shadows(tree, lines, used, 0, everything=everything)
    return face_transmission(sums), jnp.zeros(used.shape, jnp.int32)


@mesh_transmission.def_jvp
def _mesh_transmission_jvp(
    primals: tuple, tangents: tuple, *, occluders: int, everything: bool
) -> tuple:
    scene, rays, used = primals
    assert scene.triangles is not None
    stopped, lines = jax.lax.stop_gradient((scene.triangles.tree, rays))
    occluders = min(occluders, scene.triangles.owner.shape[0])
    found = sum_shadows(stopped, lines, used, occluders, everything=everything)
    sums, found = jax.lax.stop_gradient(found)
    assert found is not None
    some, ids = found.codes >= 0, jnp.maximum(found.codes, 0)

    def passes(scene: FlatScene, rays: Ray) -> Float[Array, " rows"]:
        rows = rays, ids, some
        moving = map_used(_sums_of, scene.triangles, jnp.any(some, axis=1), rows)
        # The value of all, the derivative of some.
        total = lambda every, part: every + part.T - jax.lax.stop_gradient(part.T)
        return face_transmission(jax.tree.map(total, sums, moving))

    visible, change = eqx.filter_jvp(passes, primals[:2], tangents[:2])
    missed = jnp.where((visible > 0) & (visible < 1), jnp.maximum(found.met - occluders, 0), 0)
    return (visible, missed), (change, None)


def _sums_of(meshes: MeshFaces, block: tuple[Ray, Array, Array]) -> FaceSums:
    """Sums what the faces of some rows stop; sides come last."""
    rays, ids, some = block
    faces = meshes.take(ids)
    fragments = _each_fragment(cross_triangle, rays, faces.shape.corners)
    covered = jnp.where(some, fragments.coverage, 0)
    sides = by_side(covered, fragments.facing, faces.opacity)
    return jax.tree.map(lambda x: jnp.sum(x, axis=-1).T, sides)
