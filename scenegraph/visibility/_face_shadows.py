"""Shadows of meshes: sums over what all faces stop of rays."""

from typing import Any

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar
from ..flat import FaceTree
from ..numerics import AbstractModule
from ..rays import Ray
from ..rows import map_rows
from ..shapes import cross_triangle
from ._faces import walk_faces
from ._walk import row_of


class FaceSums(AbstractModule):
    """The total coverage of faces that are turned to a ray, and of those turned away."""

    coverage: Float[Array, "2 *rays"]
    opaque: Float[Array, "2 *rays"]  # coverage times opacity
    square: Float[Array, "2 *rays"]  # coverage times opacity squared


def sum_shadows(tree: FaceTree, rays: Ray, used: Bool[Array, " rays"]) -> FaceSums:
    """Sums what all faces stop of rays, without derivatives; sums have rays last."""
    sums = map_rows(lambda tree, row: sums_of_ray(tree, *row), tree, (rays, used))
    return jax.tree.map(jnp.transpose, sums)


def sums_of_ray(tree: FaceTree, ray: Ray, used: Bool[Array, ""]) -> FaceSums:
    """Sums what all faces stop of one ray."""

    def visit(face: Int[Array, ""], corners: Array, there: Bool[Array, ""], sums: FaceSums) -> Any:
        fragment = cross_triangle(ray, corners, in_search=True)
        coverage = jnp.where(there, fragment.coverage, 0)
        one_sided = None if tree.one_sided is None else row_of(tree.one_sided, face)
        terms = by_side(coverage, fragment.facing, row_of(tree.opacity, face), one_sided)
        return jax.tree.map(jnp.add, sums, terms)

    def limit(sums: FaceSums) -> Scalar:
        # Where all faces are opaque, those of one side that cover all leave nothing to be stopped.
        dark = jnp.max(sums.opaque) >= 1
        return jnp.where(dark & tree.is_opaque, -jnp.inf, jnp.inf).astype(ray.near.dtype)

    nothing = jnp.zeros(2, ray.near.dtype)
    return walk_faces(tree, ray, used, visit, FaceSums(nothing, nothing, nothing), limit)


def by_side(
    coverage: Array, facing: Array, opacity: Array, one_sided: Array | None = None
) -> FaceSums:
    """Splits coverage into that of faces turned to a ray, and turned away.

    Those of one side count for both if they are turned to where the ray leads, and for none else.
    """
    near, far = (jnp.where(side, coverage, 0) for side in (facing < 0, facing > 0))
    if one_sided is not None:
        near = jnp.where(one_sided, far, near)
    sides = jnp.stack([near, far])
    return FaceSums(sides, sides * opacity, sides * opacity**2)


def face_transmission(sums: FaceSums) -> Float[Array, "*rays"]:
    """Returns what passes the faces of meshes.

    Of the two sides, which cover one another in a closed mesh, the one that stops more counts.
    Faces do not overlap within a sheet, so coverage beyond one is that of a further sheet:
    `(1 - o)^n (1 - o f)` for a coverage of `n + f`, with the mean opacity `o` of what stops light:
    faces that let all of it pass are as good as not there.
    """
    pick = lambda x: jnp.where(sums.opaque[1] > sums.opaque[0], x[1], x[0])
    opaque, square = pick(sums.opaque), pick(sums.square)
    # o = sum(c o^2) / sum(c o), and n + f = sum(c o) / o
    some = square > 0
    opacity = jnp.where(some, square / jnp.where(some, opaque, 1), 0)
    coverage = jnp.where(some, opaque / jnp.where(some, opacity, 1), 0)
    whole = jax.lax.stop_gradient(jnp.floor(coverage))
    # By cases, because JAX has no second derivative of 0^n for n = 0 and 1.
    passed = 1 - opacity
    several = passed ** jnp.maximum(whole, 2)
    before = jnp.where(whole > 1, several, jnp.where(whole > 0, passed, 1))
    return before * (1 - opacity * (coverage - whole))
