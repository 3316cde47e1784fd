"""The walk of one ray through a tree: what it may meet, nearer things first."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, Scalar, UInt32, Vector
from ..flat import FaceTree, SurfaceTree
from ..numerics import count_bits
from ..rays import Ray
from ..rows import any_in_packet


class _Cone(NamedTuple):
    """A ray with its footprint, as boxes are tested against it."""

    origin: Vector
    direction: Vector
    inverse: Vector  # of the direction's components
    near: Scalar
    far: Scalar
    # A box is widened by `start + growth F + stretch H`, where F is the distance of its farthest
    # corner, and H half of its diagonal.
    start: Scalar
    growth: Scalar
    stretch: Scalar


class Place(NamedTuple):
    """A place of a walk: the next node, zero at its end, and the way back."""

    node: UInt32[Array, "*rays"]
    # The bits of one number say at which levels the second child is still to come.
    trail: UInt32[Array, "*rays"]


def walk(
    tree: SurfaceTree | FaceTree,
    ray: Ray,
    used: Bool[Array, ""],
    visit: Callable[[Int[Array, ""], Bool[Array, ""], PyTree], PyTree],
    state: PyTree,
    limit: Callable[[PyTree], Any] = lambda _: jnp.inf,
) -> PyTree:
    """Shows a ray the leaves of a tree whose boxes its cone may touch.

    A function of one ray, for `map_rows`: rays of a packet walk together, and each node is loaded
    once for all. No stack is needed: see `Place`.

    `visit` maps a leaf's number, whether the ray touches the leaf, and the state to the next state,
    which is the same if the ray does not; `limit` says of a state from which `t` on nothing matters
    any more. A ray that is not `used` meets nothing. Returns the state at the end.
    """
    return walk_on(tree, ray, used, visit, state, limit)[1]


def walk_on(
    tree: SurfaceTree | FaceTree,
    ray: Ray,
    used: Bool[Array, ""],
    visit: Callable[[Int[Array, ""], Bool[Array, ""], PyTree], PyTree],
    state: PyTree,
    limit: Callable[[PyTree], Any] = lambda _: jnp.inf,
    *,
    place: Place | None = None,
    pauses: Callable[[PyTree], Bool[Array, ""]] = lambda _: jnp.zeros((), bool),
) -> tuple[Place, PyTree]:
    """Walks as `walk` does, from a place on, which all rays of a packet have in common.

    It `pauses` as soon as that is true of the state of one of them. Returns the place, too.
    """
    cone, leaves = cone_of(ray, ball_margin), tree.first_leaf
    if isinstance(tree, FaceTree):
        # Of faces, what lies before the ray begins is nothing.
        cone = cone_of(ray, _half_diagonal)._replace(near=ray.near)

    def turn(carry: tuple[Place, PyTree]) -> tuple[Place, PyTree]:
        (node, trail), state = carry
        box = row_of(tree.boxes, node)
        touched = used & may_touch(cone, box, limit(state))
        some = any_in_packet(touched)
        is_leaf = node >= leaves
        show = lambda state: visit((node - leaves).astype(jnp.int32), touched, state)
        state = jax.lax.cond(some & is_leaf, show, lambda state: state, state)
        down = jax.lax.cond(
            some & ~is_leaf, lambda: _first_child(tree, node, cone, touched), lambda: node
        )
        # The next node is the first child, and the other one is still to come; or that of the
        # lowest level at which one is.
        up = count_bits((trail & (~trail + 1)) - 1).astype(jnp.uint32)
        descends = some & ~is_leaf
        back = jnp.where(trail > 0, (node >> up) ^ 1, 0)
        node = jnp.where(descends, down, back)
        trail = jnp.where(descends, 2 * trail + 1, jnp.where(trail > 0, (trail >> up) ^ 1, 0))
        return Place(node, trail), state

    def goes_on(carry: tuple[Place, PyTree]) -> Bool[Array, ""]:
        place, state = carry
        return (place.node > 0) & ~any_in_packet(pauses(state))

    root = Place(jnp.ones((), jnp.uint32), jnp.zeros((), jnp.uint32))
    return jax.lax.while_loop(goes_on, turn, (root if place is None else place, state))


def row_of(table: Array, number: Int[Array, ""] | UInt32[Array, ""]) -> Array:
    """Returns a row of a table, which must be there."""
    how = {"keepdims": False, "allow_negative_indices": False}
    return jax.lax.dynamic_index_in_dim(table, number, **how)


def _first_child(
    tree: SurfaceTree | FaceTree, node: Int[Array, ""], cone: _Cone, touched: Bool[Array, ""]
) -> Int[Array, ""]:
    """Returns the child that is nearer to some ray of the packet."""
    first, second = row_of(tree.boxes, 2 * node), row_of(tree.boxes, 2 * node + 1)
    away = (second[:3] + second[3:]) - (first[:3] + first[3:])
    is_second = jnp.sum(away * cone.direction) < 0
    return 2 * node + any_in_packet(touched & is_second).astype(node.dtype)


# Components of directions below this are taken for it: `1 / 0` would make NaN of planes through it.
_SMALL = 1e-30


def ball_margin(sides: Float[Array, "2 3"]) -> Scalar:
    """Returns what `cone_touches` widens a ball by, from the derivatives by the pixel."""
    return jnp.sqrt(2 * jnp.sum(sides**2))


# A little more than one: footprints that turn within a pixel are taken for straight ones.
_SLACK = 1.05


def _half_diagonal(sides: Float[Array, "2 3"]) -> Scalar:
    """Returns how far a point of the pixel is from its middle at most."""
    one, other = sides[0] + sides[1], sides[0] - sides[1]
    return _SLACK / 2 * jnp.sqrt(jnp.maximum(jnp.sum(one**2), jnp.sum(other**2)))


def cone_of(ray: Ray, spread: Callable[[Float[Array, "2 3"]], Scalar]) -> _Cone:
    # `cone_touches` takes a ball of radius r for touched if the ray comes nearer to its centre than
    # (r + w) / e, where w = spread(d_o + t d_d) there, and e = 1 - s^2 / 4 for the slope s of the
    # footprint. That place is within a box about the ball that is widened by w / e + (1 / e - 1) r.
    square = jnp.sum(ray.direction**2)
    growth = 2 * jnp.sum(ray.d_direction**2) / jnp.maximum(square, jnp.finfo(square.dtype).tiny)
    less = jnp.maximum(1 - growth / 4, 1e-6)
    small = jnp.abs(ray.direction) < _SMALL
    inverse = 1 / jnp.where(small, _SMALL, ray.direction)
    length = jnp.sqrt(jnp.maximum(square, jnp.finfo(square.dtype).tiny))
    return _Cone(
        ray.origin,
        ray.direction,
        inverse,
        jnp.minimum(ray.near, 0),
        ray.far,
        spread(ray.d_origin) / less,
        spread(ray.d_direction) / length / less,
        1 / less - 1,
    )


def may_touch(cone: _Cone, box: Float[Array, "6"], limit: Scalar | float) -> Bool[Array, ""]:
    """Tests whether a cone may touch a box before a limit; never false if it does."""
    lower, upper = box[:3] - cone.origin, box[3:] - cone.origin
    farthest = jnp.sqrt(jnp.sum(jnp.maximum(jnp.abs(lower), jnp.abs(upper)) ** 2))
    half = jnp.sqrt(jnp.sum((upper - lower) ** 2)) / 2
    margin = cone.start + cone.growth * farthest + cone.stretch * half
    first, last = (lower - margin) * cone.inverse, (upper + margin) * cone.inverse
    enter = jnp.maximum(jnp.max(jnp.minimum(first, last)), cone.near)
    leave = jnp.minimum(jnp.min(jnp.maximum(first, last)), jnp.minimum(cone.far, limit))
    # Written so that a comparison with NaN says "touches"; a box that holds nothing has none.
    return ~(enter > leave) & ~(box[0] > box[3])
