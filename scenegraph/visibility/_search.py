"""Searches over candidate lists, without derivatives."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree
from ..rays import Ray
from ..rowwise import map_rows
from ..scene import (
    FlatScene,
    Instance,
    InstanceStack,
    intersect,
    occlusion,
    part_alphas,
    world_ball,
)
from ._bundles import bound_rays
from ._lists import AbstractCandidates, Everything, list_candidates
from ._order import invert_order, order_shadow_rays


# Rays in a bundle.
BUNDLE = 64
# Kinds of fewer members are searched whole.
_FEW = 8
# With more occluders of a kind than this, putting points in order pays: lists get shorter.
_MANY = 64
# Bundles that are searched at once.
_BLOCK = 64


# A key, a code and a value.
Item = tuple[Array, Array, Array]
Visit = Callable[[Instance, PyTree], list[Item]]


class Ranking(NamedTuple):
    """The best items that rows have met so far; ranks along the first axis."""

    keys: Float[Array, "ranks *rows"]  # ascending; infinite for none
    codes: Int[Array, "ranks *rows"]  # the numbers of the items; -1 for none
    values: Float[Array, "ranks *rows"]
    met: Int[Array, "*rows"]  # the number of all items


def no_items(count: int, like: Float[Array, " rows"]) -> Ranking:
    """Returns the ranking of rows that have met nothing."""
    keys = jnp.full((count, *like.shape), jnp.inf, like.dtype)
    none = jnp.full(keys.shape, -1, jnp.int32)
    return Ranking(keys, none, jnp.zeros_like(keys), jnp.zeros(like.shape, jnp.int32))


def insert(ranking: Ranking, key: Array, code: Array, value: Array, met: Array) -> Ranking:
    """Inserts an item into the ranking of each row; of equal items, the first stays first."""
    keys, codes, values, total = ranking
    after = jnp.where(met, key, jnp.inf) < keys
    # From the item's rank on, everything moves back by one.
    again = jnp.concatenate([jnp.zeros_like(after[:1]), after[:-1]])

    def moved(old: Array, new: Array) -> Array:
        back = jnp.concatenate([old[:1], old[:-1]])
        return jnp.where(again, back, jnp.where(after, new, old))

    return Ranking(moved(keys, key), moved(codes, code), moved(values, value), total + met)


def candidates_of(
    stack: InstanceStack, rays: Ray, used: Bool[Array, " rays"]
) -> AbstractCandidates:
    """Lists the instances of a stack that bundles of consecutive rays may touch."""
    in_bundles = lambda x: x.reshape(-1, BUNDLE, *x.shape[1:])
    rays, used = jax.tree.map(in_bundles, (rays, used))
    any_used = jnp.any(used, axis=1)
    if stack.count <= _FEW:
        return Everything(any_used, stack.count)
    balls = jax.vmap(world_ball)(stack.members)
    return list_candidates(jax.vmap(bound_rays)(rays, used), balls, any_used)


def search(
    stack: InstanceStack,
    candidates: AbstractCandidates,
    visit: Visit,
    rows: PyTree,
    ranking: Ranking,
) -> Ranking:
    """Shows every row all candidates of its bundle.

    Bundles with lists of about the same length go together, so that little is done in vain.
    `visit` returns what one row meets of one instance: keys, codes, and values above zero.
    """
    if isinstance(candidates, Everything):
        return _search_block(stack, candidates, visit, rows, ranking)
    in_bundles = lambda x: x.reshape(-1, BUNDLE, *x.shape[1:])
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    joined = lambda x: x.reshape(*x.shape[:-2], -1)
    apart = lambda x: x.reshape(*x.shape[:-1], -1, BUNDLE)
    lengths = candidates.lengths
    bundles = lengths.shape[0]
    order = jnp.argsort(-lengths)
    order = jnp.concatenate([order, jnp.full(-bundles % _BLOCK, bundles, order.dtype)])
    rows = jax.tree.map(in_bundles, rows)
    ranking = jax.tree.map(apart, ranking)

    def one_block(block: Array, ranking: Ranking) -> Ranking:
        chosen = jax.lax.dynamic_slice(order, (block * _BLOCK,), (_BLOCK,))
        take = lambda x: x.at[chosen].get(mode="clip")
        own = jax.tree.map(lambda x: joined(x.at[..., chosen, :].get(mode="clip")), ranking)
        some, own_rows = jax.tree.map(take, candidates), jax.tree.map(lambda x: flat(take(x)), rows)
        own = _search_block(stack, some, visit, own_rows, own)
        put = lambda x, y: x.at[..., chosen, :].set(apart(y), mode="drop", unique_indices=True)
        return jax.tree.map(put, ranking, own)

    blocks = (jnp.sum(lengths > 0) + _BLOCK - 1) // _BLOCK
    return jax.tree.map(joined, jax.lax.fori_loop(0, blocks, one_block, ranking))


def _search_block(
    stack: InstanceStack,
    candidates: AbstractCandidates,
    visit: Visit,
    rows: PyTree,
    ranking: Ranking,
) -> Ranking:
    """Searches some bundles at once: the loop is as long as their longest list."""
    lengths = candidates.lengths

    def one(carry: tuple[Array, Ranking]) -> tuple[Array, Ranking]:
        n, ranking = carry
        members = stack.take(_to_rows(candidates.nth(n))).members
        listed = _to_rows(n < lengths)
        items = map_rows(lambda _, row: visit(*row), None, (members, rows))
        for key, code, value in items:
            met = listed & (value > 0)
            ranking = insert(ranking, key, code.astype(jnp.int32), value, met)
        return n + 1, ranking

    longest = jnp.max(lengths)
    start = jnp.zeros((), jnp.int32), ranking
    return jax.lax.while_loop(lambda carry: carry[0] < longest, one, start)[1]


def _to_rows(x: Int[Array, " bundles"]) -> Int[Array, " rays"]:
    return jnp.repeat(x, BUNDLE, total_repeat_length=BUNDLE * x.shape[0])


def find_layers(scene: FlatScene, rays: Ray, used: Bool[Array, " rays"], count: int) -> Ranking:
    """Finds the nearest layers of surfaces on rays; `codes` are `number * parts + part`."""
    parts = count_parts(scene)

    def visit(instance: Instance, ray: Ray) -> list[Item]:
        hits = intersect(instance, ray)
        alphas, code = part_alphas(hits), parts * instance.number
        return [(hits.t[i], code + i, alphas[i]) for i in range(hits.t.shape[0])]

    ranking = no_items(count, rays.near)
    for stack in scene.occluders:
        ranking = search(stack, candidates_of(stack, rays, used), visit, rays, ranking)
    return ranking


def find_occluders(
    scene: FlatScene, rays: Ray, own: Int[Array, " rays"], used: Bool[Array, " rays"], count: int
) -> Ranking:
    """Finds the strongest occluders of shadow rays; `codes` are their numbers."""

    def visit(instance: Instance, row: tuple[Ray, Array]) -> list[Item]:
        stopped = occlusion(instance, *row)
        return [(-stopped, instance.number, stopped)]

    order = None
    if any(stack.count > _MANY for stack in scene.occluders):
        order = order_shadow_rays(rays, used)
        rays, own, used = jax.tree.map(lambda x: x[order], (rays, own, used))
    ranking = no_items(count, rays.near)
    for stack in scene.occluders:
        ranking = search(stack, candidates_of(stack, rays, used), visit, (rays, own), ranking)
    if order is None:
        return ranking
    back = invert_order(order)
    return jax.tree.map(lambda x: x[..., back], ranking)


def count_parts(scene: FlatScene) -> int:
    """Returns the largest number of parts of any shape of a scene."""

    def parts(stack: InstanceStack) -> int:
        first = jax.tree.map(lambda x: x[0], stack.members)
        ray = Ray(*jnp.zeros((3, 3)), *jnp.zeros((2, 2, 3)), *jnp.ones(2))
        return jax.eval_shape(first.node.shape.parts, ray).t.shape[0]

    return max(map(parts, scene.occluders), default=1)
