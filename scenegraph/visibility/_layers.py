"""The layers that one ray sees, of shapes and of meshes: one search, without derivatives."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Int
from ..flat import FlatScene
from ..rays import Ray
from ._faces import faces_of_sheet, find_sheets, FoundSheet, ListedSheet
from ._search import count_parts, find_shapes, INVISIBLE, no_items, Ranking


class FoundLayers(NamedTuple):
    """The nearest layers of a ray, in order."""

    # A shape's part, `number * parts + part`; any other number for a sheet of a mesh, -1 for none.
    code: Int[Array, "layers *rays"]
    owner: Int[Array, "layers *rays"]  # the number of the surface
    needed: Bool[Array, "layers *rays"]  # nothing that is opaque and stays so is before it
    missed: Int[Array, "*rays"]  # how many there are beyond the last that would be seen
    sheets: FoundSheet | None  # `None` without meshes
    listed: ListedSheet | None = None


def find_layers(
    scene: FlatScene, ray: Ray, count: int, start: Int[Array, ""] | None = None
) -> FoundLayers:
    """Finds the nearest layers on one ray; one that ends where it begins meets nothing.

    See `find_shapes` for `start`.
    """
    # Written so that rays with NaN count, and are seen.
    used, parts = ~(ray.far <= ray.near), count_parts(scene)
    found, closed = no_items(count, ray.near), jnp.full_like(ray.near, jnp.inf)
    if scene.tree is not None:
        how = {"parts": parts, "count": count, "leaves": start}
        found, closed = find_shapes(scene.tree, scene.cuts, ray, used, **how)
    owner, sheets, listed = jnp.maximum(found.codes, 0) // parts, None, None
    if scene.triangles is not None:
        tree, first = scene.triangles.tree, scene.cuts.shape[0] * parts
        before = found, closed
        found, sheets, listed = find_sheets(tree, scene.cuts, ray, used, before, first)
        of_shape, of_sheet = jnp.maximum(found.codes, 0) // parts, jnp.abs(sheets.kind) - 1
        owner = jnp.where(sheets.kind == 0, of_shape, of_sheet)
    return FoundLayers(found.codes, owner, *_needed(found, scene.cuts, owner), sheets, listed)


def _needed(
    found: Ranking, cuts: Bool[Array, " surfaces"], owner: Int[Array, " layers"]
) -> tuple[Bool[Array, " layers"], Int[Array, ""]]:
    """Returns which layers count, by their surfaces, and how many are missed."""
    there = found.codes >= 0
    # Nothing is seen behind what is opaque and stays so.
    closed = cuts[owner] & (found.values >= 1)
    opens = [jnp.ones((), bool)]
    for shut in jnp.unstack(closed)[:-1]:
        opens.append(opens[-1] & ~shut)
    transmits = jnp.prod(jnp.where(there, 1 - found.values, 1))
    # Light that passes all layers and is stopped by what has no rank.
    behind = transmits * (1 - found.rest)
    missed = jnp.where(behind > INVISIBLE, jnp.maximum(found.total - found.codes.shape[0], 0), 0)
    return jnp.stack(opens) & there, missed


def list_faces(scene: FlatScene, ray: Ray, found: FoundLayers) -> Int[Array, "layers faces"] | None:
    """Returns the faces of the sheets among a ray's layers; `None` without meshes.

    Of each as many as there are layers, those that cover most, most first, and -1 beyond the last.
    """
    if scene.triangles is None or found.sheets is None or found.listed is None:
        return None
    tree, sheets, listed = scene.triangles.tree, found.sheets, found.listed
    number = jnp.sum(found.needed, dtype=jnp.int32)

    def turn(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, faces = state
        sheet = jax.tree.map(lambda x: x[k], sheets)
        used = (k < number) & (sheet.kind != 0)
        return k + 1, faces.at[k].set(faces_of_sheet(tree, ray, sheet, listed, used)[0])

    start = jnp.zeros((), jnp.int32), jnp.full((len(found.code),) * 2, -1, jnp.int32)
    return jax.lax.while_loop(lambda state: state[0] < number, turn, start)[1]
