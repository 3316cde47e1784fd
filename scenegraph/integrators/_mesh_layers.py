"""Meshes on rays: the layers that were found, and shadows, computed with derivatives."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..rays import Hit, Ray
from ..rowwise import map_rows
from ..scene import FlatScene, MeshFace
from ..shapes import cross_triangle, fragment_hit, sheet_hit, unhidden
from ..visibility import by_side, face_transmission, FoundSheets, sum_shadows


class MeshRows(NamedTuple):
    """One sheet of each row, among the fragments of its ray."""

    ids: Int[Array, "rows fragments"]  # numbers of faces; -1 for none
    coverage: Float[Array, "rows fragments"]
    leader: Int[Array, "rows fragments"]
    hidden: Float[Array, "rows fragments"]


def by_ray(found: FoundSheets) -> MeshRows:
    """Returns the fragments of every ray, in rows."""
    columns = MeshRows(found.ids, found.coverage, found.sheets.leader, found.sheets.hidden)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), columns)


def sheet_hits(
    scene: FlatScene, rays: Ray, rows: MeshRows, places: Int[Array, " rows"], count: int
) -> tuple[Hit, Float[Array, " rows"]]:
    """Computes the hits on the sheets at some places of their rays, and their opacities.

    Of every sheet, the `count` fragments that cover most have derivatives.
    """
    member = (rows.leader == places[:, None]) & (rows.ids >= 0)
    covers, best = jax.lax.top_k(jnp.where(member, rows.coverage, -1), min(count, member.shape[1]))
    pick = lambda x: jnp.take_along_axis(x, best, axis=1)
    used, rest = covers > 0, jnp.sum(jnp.where(member, rows.coverage, 0), axis=1)
    rest = jnp.maximum(rest - jnp.sum(jnp.where(used, covers, 0), axis=1), 0)
    faces: MeshFace = _faces(scene, jnp.where(used, pick(rows.ids), 0))
    hidden = jnp.take_along_axis(rows.hidden, places[:, None], axis=1)[:, 0]

    hits = _each_fragment(fragment_hit, rays, faces.shape)
    hits = jax.vmap(sheet_hit)(hits, used, rest)
    alphas = faces.opacity[:, 0] * unhidden(hits.coverage, hidden)
    return eqx.tree_at(lambda x: x.coverage, hits, alphas), alphas


def _each_fragment(function: Callable[[Ray, PyTree], PyTree], rays: Ray, faces: PyTree) -> PyTree:
    """Maps a function over the faces of every row and its ray; small programs compile fast."""
    rows, count = jax.tree.leaves(faces)[0].shape[:2]
    repeat = lambda x: jnp.repeat(x, count, axis=0, total_repeat_length=rows * count)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), faces)
    each = map_rows(lambda _, row: function(*row), None, (jax.tree.map(repeat, rays), flat))
    return jax.tree.map(lambda x: x.reshape(rows, count, *x.shape[1:]), each)


def _faces(scene: FlatScene, ids: Int[Array, "*rows"]) -> MeshFace:
    assert scene.triangles is not None
    return scene.triangles.take(ids).members.node


@eqx.filter_custom_jvp
def mesh_transmission(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rows"], *, occluders: int
) -> tuple[Float[Array, " rows"], Int[Array, " rows"]]:
    """Returns the fraction of shadow rays that passes meshes; none is left out.

    All faces count; derivatives are those of the `occluders` faces that cover most.
    """
    assert scene.triangles is not None
    sums, _ = sum_shadows(scene.triangles, rays, used, 0)
    return face_transmission(sums), jnp.zeros(used.shape, jnp.int32)


@mesh_transmission.def_jvp
def _mesh_transmission_jvp(primals: tuple, tangents: tuple, *, occluders: int) -> tuple:
    scene, rays, used = primals
    stopped, lines = jax.lax.stop_gradient((scene.triangles, rays))
    occluders = min(occluders, stopped.count)
    sums, found = jax.lax.stop_gradient(sum_shadows(stopped, lines, used, occluders))
    some = jnp.moveaxis(found.codes >= 0, 0, 1)
    ids = jnp.maximum(jnp.moveaxis(found.codes, 0, 1), 0)

    def passes(scene: FlatScene, rays: Ray) -> Float[Array, " rows"]:
        faces = _faces(scene, ids)

        fragments = _each_fragment(cross_triangle, rays, faces.shape.corners)
        covered = jnp.where(some, fragments.coverage, 0)
        sides = by_side(covered, fragments.facing, faces.opacity)
        moving = jax.tree.map(lambda x: jnp.sum(x, axis=-1), sides)
        # The value of all, the derivative of some.
        total = lambda every, part: every + part - jax.lax.stop_gradient(part)
        return face_transmission(jax.tree.map(total, sums, moving))

    visible, change = eqx.filter_jvp(passes, primals[:2], tangents[:2])
    missed = jnp.where((visible > 0) & (visible < 1), jnp.maximum(found.met - occluders, 0), 0)
    return (visible, missed), (change, None)
