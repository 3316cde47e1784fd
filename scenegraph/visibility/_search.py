"""Searches over candidate lists, without derivatives."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._typing import Array, Bool, Float, Int, PyTree, Scalar
from ..numerics import compact
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
from ..shapes import AbstractBounded
from ._bundles import bound_rays
from ._lists import AbstractCandidates, Everything, list_candidates
from ._order import invert_order, order_shadow_rays


# Rays in a bundle.
BUNDLE = 64
# Rays in a bundle of shadow rays: these begin on several surfaces, and spread sooner.
_SHADOW_BUNDLE = 16
# Kinds of no more members have no bundles: they are searched whole, or ray by ray within bounds.
_FEW = 4
# With more occluders of a kind than this, putting points in order pays: lists get shorter.
_MANY = 256
# Occluders that stop less than this part of the light are not missed.
FAINT = 1e-3
# Rays that are searched at once.
_BLOCK = 1024


# A key, a code and a value.
Item = tuple[Array, Array, Array]


class Visit(NamedTuple):
    """The meeting of a row with a candidate, and what the row keeps of it."""

    meet: Callable[[Instance, PyTree], PyTree]  # of one instance and one row
    remember: Callable[[PyTree, PyTree, Array], PyTree]  # of all rows, and which of them count


class Ranking(NamedTuple):
    """The best items that rows have met so far; ranks along the first axis."""

    keys: Float[Array, "ranks *rows"]  # ascending; infinite for none
    codes: Int[Array, "ranks *rows"]  # the numbers of the items; -1 for none
    values: Float[Array, "ranks *rows"]
    met: Int[Array, "*rows"]  # the number of all items
    rest: Float[Array, "*rows"]  # the product of `1 - value` over the items without a rank


def no_items(count: int, like: Float[Array, " rows"]) -> Ranking:
    """Returns the ranking of rows that have met nothing."""
    keys = jnp.full((count, *like.shape), jnp.inf, like.dtype)
    none, zero = jnp.full(keys.shape, -1, jnp.int32), jnp.zeros(like.shape, jnp.int32)
    return Ranking(keys, none, jnp.zeros_like(keys), zero, jnp.ones_like(like))


def insert(ranking: Ranking, key: Array, code: Array, value: Array, met: Array) -> Ranking:
    """Inserts an item into the ranking of each row; of equal items, the first stays first."""
    keys, codes, values, total, rest = ranking
    after = jnp.where(met, key, jnp.inf) < keys
    # From the item's rank on, everything moves back by one.
    again = jnp.concatenate([jnp.zeros_like(after[:1]), after[:-1]])

    def moved(old: Array, new: Array) -> Array:
        back = jnp.concatenate([old[:1], old[:-1]])
        return jnp.where(again, back, jnp.where(after, new, old))

    lost = jnp.where(met, jnp.where(after[-1], values[-1], value), 0)
    ranks = moved(keys, key), moved(codes, code), moved(values, value)
    return Ranking(*ranks, total + met, rest * (1 - lost))


def candidates_of(
    stack: InstanceStack, rays: Ray, used: Bool[Array, " rays"], size: int = BUNDLE, few: int = _FEW
) -> AbstractCandidates:
    """Lists the instances of a stack that bundles of consecutive rays may touch.

    Kinds of few members are tested ray by ray: what is costly then costs nothing elsewhere.
    """
    if whole := stack.count <= few:
        whole = not isinstance(stack.shared.node.shape, AbstractBounded)
        size = size if whole else 1
    in_bundles = lambda x: x.reshape(-1, size, *x.shape[1:])
    rays, used = jax.tree.map(in_bundles, (rays, used))
    any_used = jnp.any(used, axis=1)
    if whole:
        return Everything(any_used, stack.count)
    balls = stack.map(world_ball)
    return list_candidates(jax.vmap(bound_rays)(rays, used), balls, any_used)


def count_candidates(scene: FlatScene, rays: Ray) -> Int[Array, " rays"]:
    """Counts the surfaces that rays ask: those that their bundles may touch.

    **Arguments:**

    - `scene`: the scene, from `sg.scene.flatten`.
    - `rays`: the rays, in world coordinates, with one leading axis; runs of 64 are bundles.

    **Returns:**

    The length of the list of each ray's bundle.
    """
    count = rays.near.shape[0]
    pad = lambda x: jnp.pad(x, ((0, -count % BUNDLE), *((0, 0),) * (x.ndim - 1)), mode="edge")
    rays, used = jax.tree.map(pad, rays), pad(jnp.ones(count, bool))
    lengths = jnp.zeros(rays.near.shape[0] // BUNDLE, jnp.int32)
    for stack in scene.occluders:
        lengths += candidates_of(stack, rays, used, few=0).lengths
    return _to_rows(lengths, rays)[:count]


def search(
    stack: InstanceStack, candidates: AbstractCandidates, visit: Visit, rows: PyTree, memory: PyTree
) -> PyTree:
    """Shows every row all candidates of its bundle.

    Bundles with lists of about the same length go together, so that little is done in vain.
    The memory of rows has their axis last.
    """
    if isinstance(candidates, Everything):
        return _search_all(stack, _to_rows(candidates.used, rows), visit, rows, memory)
    lengths = candidates.lengths
    bundles, size = lengths.shape[0], jax.tree.leaves(rows)[0].shape[0] // lengths.shape[0]
    in_bundles = lambda x: x.reshape(-1, size, *x.shape[1:])
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    joined = lambda x: x.reshape(*x.shape[:-2], -1)
    apart = lambda x: x.reshape(*x.shape[:-1], -1, size)
    block = min(_BLOCK // size, bundles)
    order = jnp.argsort(-lengths) if size > 1 else compact(lengths > 0, bundles).indices
    order = jnp.concatenate([order, jnp.full(-bundles % block, bundles, order.dtype)])
    rows = jax.tree.map(in_bundles, rows)
    memory = jax.tree.map(apart, memory)

    def one_block(i: Array, memory: PyTree) -> PyTree:
        chosen = jax.lax.dynamic_slice(order, (i * block,), (block,))
        take = lambda x: x.at[chosen].get(mode="clip")
        own = jax.tree.map(lambda x: joined(x.at[..., chosen, :].get(mode="clip")), memory)
        some, own_rows = jax.tree.map(take, candidates), jax.tree.map(lambda x: flat(take(x)), rows)
        own = _search_block(stack, some, visit, own_rows, own)
        put = lambda x, y: x.at[..., chosen, :].set(apart(y), mode="drop", unique_indices=True)
        return jax.tree.map(put, memory, own)

    blocks = (jnp.sum(lengths > 0) + block - 1) // block
    return jax.tree.map(joined, jax.lax.fori_loop(0, blocks, one_block, memory))


def _search_block(
    stack: InstanceStack, candidates: AbstractCandidates, visit: Visit, rows: PyTree, memory: PyTree
) -> PyTree:
    """Searches some bundles at once: the loop is as long as their longest list."""
    lengths = candidates.lengths

    def meet(shared: Instance, row: tuple[Instance, PyTree]) -> PyTree:
        return visit.meet(eqx.combine(row[0], shared), row[1])

    def one(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        n, memory = carry
        members = stack.take(_to_rows(candidates.nth(n), rows)).members
        met = map_rows(meet, stack.shared, (members, rows))
        return n + 1, visit.remember(memory, met, _to_rows(n < lengths, rows))

    longest = jnp.max(lengths)
    start = jnp.zeros((), jnp.int32), memory
    return jax.lax.while_loop(lambda carry: carry[0] < longest, one, start)[1]


def _search_all(
    stack: InstanceStack, used: Bool[Array, " rows"], visit: Visit, rows: PyTree, memory: PyTree
) -> PyTree:
    """Shows all members of a stack to every row."""

    def one(n: Array, memory: PyTree) -> PyTree:
        member = stack.join(jax.tree.map(lambda x: x[n], stack.members))
        return visit.remember(memory, map_rows(visit.meet, member, rows), used)

    return jax.lax.fori_loop(0, stack.count, one, memory)


def _to_rows(x: Array, rows: PyTree) -> Array:
    """Repeats what bundles have for each of their rows."""
    count = jax.tree.leaves(rows)[0].shape[0]
    return jnp.repeat(x, count // x.shape[0], total_repeat_length=count)


def _rank(ranking: Ranking, items: list[Item], listed: Bool[Array, " rows"]) -> Ranking:
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

    ranking = no_items(count, rays.near)
    for stack in scene.occluders:
        candidates = candidates_of(stack, rays, used)
        ranking = search(stack, candidates, Visit(meet, _rank), rays, ranking)
    return ranking


def find_occluders(
    scene: FlatScene, rays: Ray, own: Int[Array, " rays"], used: Bool[Array, " rays"], count: int
) -> Ranking:
    """Finds the strongest occluders of shadow rays; `codes` are their numbers."""

    def meet(instance: Instance, row: tuple[Ray, Array]) -> list[Item]:
        stopped = occlusion(instance, *row)
        return [(-stopped, instance.number, stopped)]

    return _ask_occluders(scene, rays, own, used, Visit(meet, _rank), no_items(count, rays.near))


def transmission(
    scene: FlatScene, rays: Ray, own: Int[Array, " rays"], used: Bool[Array, " rays"]
) -> tuple[Float[Array, " rays"], Int[Array, " rays"]]:
    """Computes what arrives of shadow rays, `prod(1 - occlusion)`, and counts who stops any."""

    def meet(instance: Instance, row: tuple[Ray, Array]) -> Scalar:
        return occlusion(instance, *row)

    def darken(memory: tuple[Array, Array], stopped: Array, listed: Array) -> tuple[Array, Array]:
        product, met = memory
        stopped = jnp.where(listed, stopped, 0)
        return product * (1 - stopped), met + (stopped > FAINT)

    start = jnp.ones_like(rays.near), jnp.zeros(rays.near.shape, jnp.int32)
    return _ask_occluders(scene, rays, own, used, Visit(meet, darken), start)


def _ask_occluders(
    scene: FlatScene,
    rays: Ray,
    own: Int[Array, " rays"],
    used: Bool[Array, " rays"],
    visit: Visit,
    memory: PyTree,
) -> PyTree:
    order = None
    if any(stack.count > _MANY for stack in scene.occluders):
        order = order_shadow_rays(rays, used)
        rays, own, used = jax.tree.map(lambda x: x[order], (rays, own, used))
    for stack in scene.occluders:
        candidates = candidates_of(stack, rays, used, _SHADOW_BUNDLE)
        memory = search(stack, candidates, visit, (rays, own), memory)
    if order is None:
        return memory
    back = invert_order(order)
    return jax.tree.map(lambda x: x[..., back], memory)


def count_parts(scene: FlatScene) -> int:
    """Returns the largest number of parts of any shape of a scene."""

    def parts(stack: InstanceStack) -> int:
        first = stack.first()
        ray = Ray(*jnp.zeros((3, 3)), *jnp.zeros((2, 2, 3)), *jnp.ones(2))
        return jax.eval_shape(first.node.shape.parts, ray).t.shape[0]

    return max(map(parts, scene.occluders), default=1)
