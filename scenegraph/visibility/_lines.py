"""What single lines meet, whose footprint is zero: for paths, one line at a time."""

from typing import NamedTuple

import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, Scalar
from ..flat import FaceTree, FlatScene, Instance, occlusion, of_member, SurfaceTree
from ..rays import Ray
from ..shapes import cross_line
from ._faces import is_turned, SEEN, SHADING, walk_faces
from ._search import thin_hits
from ._walk import row_of, walk


class OnLine(NamedTuple):
    """The nearest surface on a line: a part of a shape, or a face of a mesh, or none."""

    t: Float[Array, "*rays"]  # infinite for none
    code: Int[Array, "*rays"]  # a shape's part, `number * parts + part`; -1 for none
    face: Int[Array, "*rays"]  # a face of a mesh; -1 for none


def nearest_on_line(
    scene: FlatScene, ray: Ray, passed: Int[Array, ""], used: Bool[Array, ""], *, parts: int
) -> OnLine:
    """Finds the nearest surface that a line meets, whatever its opacity.

    What lies behind the front of the surface that was `passed` is left out: one opacity is that of
    a whole thing, with its far side.
    """
    t, none = jnp.full_like(ray.near, jnp.inf), jnp.full((), -1, jnp.int32)
    found = OnLine(t, none, none)
    if scene.tree is not None:
        found = _nearest_part(scene.tree, ray, passed, used, parts)
    if scene.triangles is None:
        return found
    far, face = _nearest_face(scene.triangles.tree, ray, passed, used, found.t)
    on_mesh = face >= 0
    return OnLine(jnp.where(on_mesh, far, found.t), jnp.where(on_mesh, -1, found.code), face)


def _nearest_part(
    tree: SurfaceTree, ray: Ray, passed: Int[Array, ""], used: Bool[Array, ""], parts: int
) -> OnLine:
    def of_one(instance: Instance) -> tuple[Scalar, Int[Array, ""]]:
        hits = thin_hits(instance, ray)
        # Of a line, a part covers all or nothing.
        t = jnp.where(hits.coverage > 0.5, hits.t, jnp.inf)
        if instance.node.shape.is_convex:
            t = jnp.where(instance.number == passed, jnp.inf, t)
        part = jnp.argmin(t).astype(jnp.int32)
        return jnp.min(t), (parts * instance.number + part).astype(jnp.int32)

    def visit(leaf: Int[Array, ""], touched: Bool[Array, ""], best: tuple) -> tuple:
        t, code = of_member(of_one, tree.stacks, tree.kinds[leaf], tree.places[leaf])
        before, known = best
        nearer = touched & ((t < before) | ((t == before) & (t < jnp.inf) & (code < known)))
        return jnp.where(nearer, t, before), jnp.where(nearer, code, known)

    nothing = jnp.full_like(ray.near, jnp.inf), jnp.full((), -1, jnp.int32)
    t, code = walk(tree, ray, used, visit, nothing, lambda best: best[0])
    return OnLine(t, code, jnp.full((), -1, jnp.int32))


def _nearest_face(
    tree: FaceTree, ray: Ray, passed: Int[Array, ""], used: Bool[Array, ""], limit: Scalar
) -> tuple[Scalar, Int[Array, ""]]:
    """Returns where a line first meets a face before a limit, and which; -1 for none."""

    def visit(face: Int[Array, ""], corners: Array, there: Bool[Array, ""], best: tuple) -> tuple:
        t, inside, behind = cross_line(ray, corners)
        inside &= there & ~is_turned(tree, face, behind, SEEN)
        inside &= ~(behind & (row_of(tree.owner, face) == passed))
        (before, known), number = best, face.astype(jnp.int32)
        nearer = inside & ((t < before) | ((t == before) & (number < known)))
        return jnp.where(nearer, t, before), jnp.where(nearer, number, known)

    # Of a shape and a face in one place, the shape.
    nothing = limit, jnp.full((), -1, jnp.int32)
    return walk_faces(tree, ray, used, visit, nothing, lambda best: best[0])


def passing_of_line(
    scene: FlatScene, ray: Ray, own: Int[Array, ""], used: Bool[Array, ""]
) -> Scalar:
    """Computes what shapes and meshes let pass of a line between its ends.

    `own` is the number of a convex surface that does not count; -1 for none.
    """
    passes = jnp.ones_like(ray.near)
    if scene.tree is not None:
        passes = _past_shapes(scene.tree, ray, own, used)
    if scene.triangles is None:
        return passes
    return passes * _past_faces(scene.triangles.tree, ray, used & (passes > 0))


def _past_shapes(tree: SurfaceTree, ray: Ray, own: Int[Array, ""], used: Bool[Array, ""]) -> Scalar:
    of_one = lambda instance: 1 - occlusion(instance, ray, own)

    def visit(leaf: Int[Array, ""], touched: Bool[Array, ""], passes: Scalar) -> Scalar:
        let = of_member(of_one, tree.stacks, tree.kinds[leaf], tree.places[leaf])
        return passes * jnp.where(touched, let, 1)

    # Where nothing is left, nothing more is looked for.
    limit = lambda passes: jnp.where(passes > 0, jnp.inf, -jnp.inf).astype(ray.near.dtype)
    return walk(tree, ray, used, visit, jnp.ones_like(ray.near), limit)


def _past_faces(tree: FaceTree, ray: Ray, used: Bool[Array, ""]) -> Scalar:
    """Returns what passes the faces on a line: of closed meshes, front and back stop as one."""

    def visit(face: Int[Array, ""], corners: Array, there: Bool[Array, ""], passes: tuple) -> tuple:
        _, inside, behind = cross_line(ray, corners)
        inside &= there & ~is_turned(tree, face, behind, SHADING)
        let = jnp.where(inside, 1 - row_of(tree.opacity, face), 1)
        front, back = passes
        return front * jnp.where(behind, 1, let), back * jnp.where(behind, let, 1)

    def limit(passes: tuple) -> Scalar:
        least = jnp.minimum(*passes)
        return jnp.where(least > 0, jnp.inf, -jnp.inf).astype(ray.near.dtype)

    one = jnp.ones_like(ray.near)
    return jnp.minimum(*walk_faces(tree, ray, used, visit, (one, one), limit))
