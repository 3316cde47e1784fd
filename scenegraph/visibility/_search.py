"""Searches over candidate lists, without derivatives."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Int, PyTree, Scalar
from ..flat import FlatScene, Instance, InstanceStack, intersect, occlusion, part_alphas, world_ball
from ..rays import Ray
from ..rowwise import split_rows, take_rows
from ..shapes import AbstractBounded
from ._bundles import BUNDLE
from ._list_search import close_memory, MANY, open_memory, search_lists, Visit
from ._lists import list_along_rays
from ._order import invert_order, order_shadow_rays


# Rays in a bundle of shadow rays: these begin on several surfaces, and spread sooner.
SHADOW_BUNDLE = 16
# Kinds of no more members, without bounds, have no lists.
_FEW = 4
# Occluders that stop less than this part of the light are not missed.
FAINT = 1e-3

# A key, a code and a value.
Item = tuple[Array, Array, Array]


class Ranking(NamedTuple):
    """The best items of rows so far; ranks along the first axis."""

    keys: Float[Array, "ranks *rows"]  # ascending; infinite for none
    codes: Int[Array, "ranks *rows"]  # the numbers of the items; -1 for none
    values: Float[Array, "ranks *rows"]
    total: Int[Array, "*rows"]  # the number of all items
    rest: Float[Array, "*rows"]  # the product of `1 - value` over the items without a rank


def no_items(count: int, like: Float[Array, " rows"]) -> Ranking:
    """Returns the ranking of rows without any item."""
    keys = jnp.full((count, *like.shape), jnp.inf, like.dtype)
    none, zero = jnp.full(keys.shape, -1, jnp.int32), jnp.zeros(like.shape, jnp.int32)
    return Ranking(keys, none, jnp.zeros_like(keys), zero, jnp.ones_like(like))


def insert(ranking: Ranking, key: Array, code: Array, value: Array, hit: Array) -> Ranking:
    """Inserts an item into the ranking of each row; of equal items, the least code is the first."""
    keys, codes, values, total, rest = ranking
    new = jnp.where(hit, key, jnp.inf)
    after = (new < keys) | ((new == keys) & jnp.isfinite(new) & (code < codes))
    # From the item's rank on, everything moves back by one.
    again = jnp.concatenate([jnp.zeros_like(after[:1]), after[:-1]])

    def moved(old: Array, own: Array) -> Array:
        back = jnp.concatenate([old[:1], old[:-1]])
        return jnp.where(again, back, jnp.where(after, own, old))

    # What falls off the last rank, or does not reach it, is of the rest.
    lost = jnp.where(hit, jnp.where(after[-1], values[-1], value), 0)
    ranks = moved(keys, key), moved(codes, code), moved(values, value)
    return Ranking(*ranks, total + hit, rest * (1 - lost))


def count_candidates(scene: FlatScene, rays: Ray) -> Int[Array, " rays"]:
    """Counts the surfaces, and the faces of meshes, that the bundle of each ray may touch."""
    count = rays.near.shape[0]
    pad = lambda x: jnp.pad(x, ((0, -count % BUNDLE), *((0, 0),) * (x.ndim - 1)), mode="edge")
    rays, used = jax.tree.map(pad, rays), pad(jnp.ones(count, bool))
    lengths = jnp.zeros(rays.near.shape[0] // BUNDLE, jnp.int32)
    for stack in scene.occluders:
        lengths += list_along_rays(stack.map(world_ball), rays, used, BUNDLE).lengths
    if scene.triangles is not None:
        balls = scene.triangles.tree.balls
        lengths += list_along_rays(balls, rays, used, BUNDLE).lengths
    return jnp.repeat(lengths, BUNDLE)[:count]


def search(
    stacks: Sequence[InstanceStack],
    rays: Ray,
    used: Bool[Array, " rays"],
    visit: Visit,
    rows: PyTree,
    memory: PyTree,
    size: int,
) -> PyTree:
    """Shows every row the instances of stacks that it may touch; the memory has its axis last.

    Rows are those of rays. Things without bounds are shown to all rows, if they are few; the others
    are listed by bundles of `size` rays, and their kinds searched by one loop: of few and of many
    members, because these lists are searched otherwise.
    """
    whole = [stack for stack in stacks if _is_everywhere(stack)]
    listed = [stack for stack in stacks if not _is_everywhere(stack)]
    for stack in whole:
        memory = _search_all(stack, used, visit, rows, memory)
    few = [stack for stack in listed if stack.count <= MANY]
    many = [stack for stack in listed if stack.count > MANY]
    for alike in filter(None, (few, many)):
        memory = search_lists(alike, rays, used, visit, rows, memory, size)
    return memory


def _is_everywhere(stack: InstanceStack) -> bool:
    """Returns true if all rays are shown a kind."""
    return stack.count <= _FEW and not isinstance(stack.shared.node.shape, AbstractBounded)


def _search_all(
    stack: InstanceStack, used: Bool[Array, " rows"], visit: Visit, rows: PyTree, memory: PyTree
) -> PyTree:
    """Shows all members of a stack to every row."""
    own, memory = split_rows(rows), open_memory(memory)
    if stack.count == 1:
        return close_memory(visit.show(stack.first(), None, own, memory, used))

    def one(n: Array, memory: PyTree) -> PyTree:
        return visit.show(stack.at(n), None, own, memory, used)

    return close_memory(jax.lax.fori_loop(0, stack.count, one, memory))


def rank(ranking: Ranking, items: list[Item], listed: Bool[Array, "*rows"]) -> Ranking:
    for key, code, value in items:
        ranking = insert(ranking, key, code.astype(jnp.int32), value, listed & (value > 0))
    return ranking


def find_layers(scene: FlatScene, rays: Ray, used: Bool[Array, " rays"], count: int) -> Ranking:
    """Finds the nearest layers of surfaces on rays; `codes` are `number * parts + part`."""
    parts = count_parts(scene)

    def meet(instance: Instance, ray: Ray) -> list[Item]:
        hits = intersect(instance, ray)
        alphas, code = part_alphas(hits), parts * instance.number
        return [(hits.t[i], code + i, alphas[i]) for i in range(hits.t.shape[0])]

    visit, none = Visit(meet, rank), no_items(count, rays.near)
    return search(scene.occluders, rays, used, visit, rays, none, BUNDLE)


def find_occluders(
    scene: FlatScene, rays: Ray, own: Int[Array, " rays"], used: Bool[Array, " rays"], count: int
) -> Ranking:
    """Finds the strongest occluders of shadow rays; `codes` are their numbers."""

    def meet(instance: Instance, row: tuple[Ray, Array]) -> list[Item]:
        stopped = occlusion(instance, *row)
        # Keys ascend: the strongest is the first.
        return [(-stopped, instance.number, stopped)]

    return _search_occluders(scene, rays, own, used, Visit(meet, rank), no_items(count, rays.near))


def transmission(
    scene: FlatScene, rays: Ray, own: Int[Array, " rays"], used: Bool[Array, " rays"]
) -> tuple[Float[Array, " rays"], Int[Array, " rays"]]:
    """Computes what arrives of shadow rays, `prod(1 - occlusion)`, and counts who stops any."""

    def meet(instance: Instance, row: tuple[Ray, Array]) -> Scalar:
        return occlusion(instance, *row)

    def darken(memory: tuple[Array, Array], stopped: Array, listed: Array) -> tuple[Array, Array]:
        product, count = memory
        stopped = jnp.where(listed, stopped, 0)
        return product * (1 - stopped), count + (stopped > FAINT)

    start = jnp.ones_like(rays.near), jnp.zeros(rays.near.shape, jnp.int32)
    return _search_occluders(scene, rays, own, used, Visit(meet, darken), start)


def _search_occluders(
    scene: FlatScene,
    rays: Ray,
    own: Int[Array, " rays"],
    used: Bool[Array, " rays"],
    visit: Visit,
    memory: PyTree,
) -> PyTree:
    return search_shadows(scene.occluders, rays, used, visit, (rays, own), memory)


def search_shadows(
    stacks: Sequence[InstanceStack],
    rays: Ray,
    used: Bool[Array, " rays"],
    visit: Visit,
    rows: PyTree,
    memory: PyTree,
) -> PyTree:
    """Shows rows of shadow rays what they may touch; many things are worth putting in order."""
    order = None
    if any(stack.count > MANY for stack in stacks):
        # Lists of a thousand spheres are as short if bundles cross gaps (which take 4 % to find).
        order = order_shadow_rays(rays, used)
        rays, rows, used = take_rows((rays, rows, used), order)
    memory = search(stacks, rays, used, visit, rows, memory, SHADOW_BUNDLE)
    if order is None:
        return memory
    return take_rows(memory, invert_order(order), -1)


def count_parts(scene: FlatScene) -> int:
    """Returns the largest number of parts of any shape of a scene."""
    return max((_count_parts_of(*stack.outline()) for stack in scene.occluders), default=1)


@functools.lru_cache(256)
def _count_parts_of(structure: Any, leaves: tuple) -> int:
    """Returns the number of parts of surfaces of one structure, which takes a trace to find out."""
    # From numpy, because JAX would compile a program for every array.
    ray = Ray(*np.zeros((3, 3)), *np.zeros((2, 2, 3)), near=np.ones(()), far=np.ones(()))
    return eqx.filter_eval_shape(intersect, jax.tree.unflatten(structure, leaves), ray).t.shape[0]
