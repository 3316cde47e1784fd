"""Searches along single lines, whose footprint is zero: for paths, one line at a time."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, Scalar, UInt32, Vector
from ..flat import FACES_OF_LEAF, FaceTree, FlatScene, Instance, occlusion, of_member, SurfaceTree
from ..numerics import count_bits
from ..rays import Ray
from ..shapes import cross_line
from ._faces import is_turned, SEEN, SHADING
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

    def visit(face: Int[Array, ""], corners: Array, best: tuple) -> tuple:
        t, inside, behind = cross_line(ray, corners)
        inside &= ~is_turned(tree, face, behind, SEEN)
        inside &= ~(behind & (row_of(tree.owner, face) == passed))
        (before, known), number = best, face.astype(jnp.int32)
        nearer = inside & ((t < before) | ((t == before) & (number < known)))
        return jnp.where(nearer, t, before), jnp.where(nearer, number, known)

    # Of a shape and a face in one place, the shape.
    nothing = limit, jnp.full((), -1, jnp.int32)
    return _walk_faces_alone(tree, ray, used, visit, nothing, lambda best: best[0])


class _Slabs(NamedTuple):
    """A line, as boxes are tested against it."""

    origin: Vector
    inverse: Vector
    near: Scalar
    far: Scalar


# Components of directions below this are taken for it.
_SMALL = 1e-30


def _enter(line: _Slabs, box: Float[Array, "6"], limit: Scalar) -> tuple[Scalar, Bool[Array, ""]]:
    """Returns where a line enters a box, and whether it does before a limit."""
    low, high = (box[:3] - line.origin) * line.inverse, (box[3:] - line.origin) * line.inverse
    enter = jnp.maximum(jnp.max(jnp.minimum(low, high)), line.near)
    leave = jnp.minimum(jnp.min(jnp.maximum(low, high)), jnp.minimum(line.far, limit))
    # A box that holds nothing has its corners exchanged.
    return enter, ~(enter > leave) & (box[0] <= box[3])


def _walk_faces_alone(
    tree: FaceTree,
    ray: Ray,
    used: Bool[Array, ""],
    visit: Callable[[Int[Array, ""], Float[Array, "3 3"], PyTree], PyTree],
    state: PyTree,
    limit: Callable[[PyTree], Scalar],
) -> PyTree:
    """Shows a line the faces of leaves that it meets, nearer ones first.

    Unlike in `walk`, every line of a packet goes its own way: lines of paths go everywhere, and
    what one of them meets is nothing to the others.
    """
    direction, leaves = ray.direction, tree.first_leaf
    slow = jnp.abs(direction) < _SMALL
    line = _Slabs(ray.origin, 1 / jnp.where(slow, _SMALL, direction), ray.near, ray.far)

    def back(node: UInt32[Array, ""], trail: UInt32[Array, ""]) -> tuple[Array, Array]:
        # To the sibling on the lowest level on which it is still to come; see `Place`.
        up = count_bits((trail & (~trail + 1)) - 1).astype(jnp.uint32)
        some = trail > 0
        return jnp.where(some, (node >> up) ^ 1, 0), jnp.where(some, (trail >> up) ^ 1, 0)

    def descend(carry: tuple) -> tuple:
        (node, trail), most = carry
        first, second = row_of(tree.boxes, 2 * node), row_of(tree.boxes, 2 * node + 1)
        (t, hits), (other, also) = _enter(line, first, most), _enter(line, second, most)
        is_second = also & (~hits | (other < t))
        down = 2 * node + is_second.astype(node.dtype), 2 * trail + (hits & also)
        up, some = back(node, trail), hits | also
        place = tuple(jnp.where(some, x, y) for x, y in zip(down, up, strict=True))
        return place, most

    def turn(carry: tuple) -> tuple:
        place, state = carry
        is_inner = lambda carry: (carry[0][0] > 0) & (carry[0][0] < leaves)
        (node, trail), _ = jax.lax.while_loop(is_inner, descend, (place, limit(state)))

        def show(k: Int[Array, ""], state: PyTree) -> PyTree:
            face = FACES_OF_LEAF * (node - leaves).astype(jnp.int32) + k
            return visit(face, row_of(tree.corners, face), state)

        faces = lambda state: jax.lax.fori_loop(0, FACES_OF_LEAF, show, state)
        state = jax.lax.cond(node > 0, faces, lambda state: state, state)
        return back(node, trail), state

    root = jnp.where(used, 1, 0).astype(jnp.uint32), jnp.zeros((), jnp.uint32)
    goes_on = lambda carry: carry[0][0] > 0
    return jax.lax.while_loop(goes_on, turn, (root, state))[1]


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

    def visit(face: Int[Array, ""], corners: Array, passes: tuple) -> tuple:
        _, inside, behind = cross_line(ray, corners)
        inside &= ~is_turned(tree, face, behind, SHADING)
        let = jnp.where(inside, 1 - row_of(tree.opacity, face), 1)
        front, back = passes
        return front * jnp.where(behind, 1, let), back * jnp.where(behind, let, 1)

    def limit(passes: tuple) -> Scalar:
        least = jnp.minimum(*passes)
        return jnp.where(least > 0, jnp.inf, -jnp.inf).astype(ray.near.dtype)

    one = jnp.ones_like(ray.near)
    return jnp.minimum(*_walk_faces_alone(tree, ray, used, visit, (one, one), limit))
