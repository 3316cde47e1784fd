"""The nearest surfaces on lines that need not go together, without derivatives."""

from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int
from ..flat import FaceTree, FlatScene
from ..rays import Ray
from ..rowwise import take_rows
from ..shapes import cross_line
from ._face_search import FaceVisit, list_faces, search_faces
from ._search import find_nearest_parts


class Nearest(NamedTuple):
    """The nearest surfaces on rays; a ray has one of the two, or none."""

    code: Int[Array, " rays"]  # a shape's part, `number * parts + part`; -1 for none
    face: Int[Array, " rays"]  # a face of a mesh; -1 for none


def find_nearest(scene: FlatScene, rays: Ray, used: Bool[Array, " rays"]) -> Nearest:
    """Finds the nearest surfaces, whatever their opacity, that the lines of rays meet.

    Footprints must be zero: every ray is a bundle of its own.
    """
    t, code = find_nearest_parts(scene, rays, used)
    if scene.triangles is None:
        return Nearest(code, jnp.full_like(code, -1))
    far, face = _nearest_face(scene.triangles.tree, rays, used)
    # Of a shape and a face in one place, the shape.
    on_mesh = far < t
    return Nearest(jnp.where(on_mesh, -1, code), jnp.where(on_mesh, face, -1))


def _nearest_face(
    tree: FaceTree, rays: Ray, used: Array
) -> tuple[Float[Array, " rays"], Int[Array, " rays"]]:
    def start(count: int) -> tuple[Array, Array]:
        return jnp.full(count, jnp.inf, rays.near.dtype), jnp.full(count, -1, jnp.int32)

    def add(best: tuple, piece: tuple, face: Array, there: Array, _: Array) -> tuple:
        (t, inside, behind), (before, known) = piece, best
        if tree.one_sided is not None:
            inside &= ~(behind & tree.one_sided[face])
        t = jnp.where(there & inside, t, jnp.inf)
        first = jnp.argmin(t, axis=0)[None]
        t, face = (jnp.take_along_axis(x, first, axis=0)[0] for x in (t, face))
        return jnp.minimum(t, before), jnp.where(t < before, face, known)

    nothing, finish = lambda count, _: start(count), lambda best, _: best
    visit = FaceVisit(start, cross_line, add, nothing, finish, 1)
    results, places = search_faces(tree, list_faces(tree, rays, used, 1), rays, visit)
    return take_rows(results, places)
