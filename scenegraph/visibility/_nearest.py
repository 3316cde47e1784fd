"""The nearest surfaces on lines that need not go together, without derivatives."""

from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Int
from ..flat import FlatScene
from ..rays import Ray
from ..rows import map_rows
from ._faces import nearest_face
from ._search import find_nearest_parts


class Nearest(NamedTuple):
    """The nearest surfaces on rays; a ray has one of the two, or none."""

    code: Int[Array, " rays"]  # a shape's part, `number * parts + part`; -1 for none
    face: Int[Array, " rays"]  # a face of a mesh; -1 for none


def find_nearest(scene: FlatScene, rays: Ray, used: Bool[Array, " rays"]) -> Nearest:
    """Finds the nearest surfaces, whatever their opacity, that the lines of rays meet.

    Footprints must be zero.
    """
    t, code = find_nearest_parts(scene, rays, used)
    if scene.triangles is None:
        return Nearest(code, jnp.full_like(code, -1))
    search = lambda tree, row: nearest_face(tree, *row)
    far, face = map_rows(search, scene.triangles.tree, (rays, used))
    # Of a shape and a face in one place, the shape.
    on_mesh = far < t
    return Nearest(jnp.where(on_mesh, -1, code), jnp.where(on_mesh, face, -1))
