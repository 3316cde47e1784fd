"""The search for surfaces that rays meet, but for meshes: one walk, without derivatives."""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import Array, Bool, Float, Int, PyTree, Scalar
from ..flat import (
    FACES_OF_LEAF,
    FaceTree,
    FlatScene,
    Instance,
    intersect,
    occlusion,
    of_member,
    part_alphas,
    SurfaceTree,
)
from ..rays import Hit, Ray
from ..rows import any_in_packet, map_rows, same_in_packet
from ._walk import Place, walk, walk_on


# Layers behind others that transmit less light than this are not missed.
INVISIBLE = 1e-3


class Ranking(NamedTuple):
    """The best items of rows so far; ranks along the first axis."""

    keys: Float[Array, "ranks *rows"]  # ascending; infinite for none
    codes: Int[Array, "ranks *rows"]  # the numbers of the items; -1 for none
    values: Float[Array, "ranks *rows"]
    total: Int[Array, "*rows"]  # the number of all items
    rest: Float[Array, "*rows"]  # the product of `1 - value` over the items without a rank


def no_items(count: int, like: Float[Array, "*rows"]) -> Ranking:
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


class _Items(NamedTuple):
    """Parts of one surface that a ray meets."""

    keys: Float[Array, " items"]
    codes: Int[Array, " items"]
    values: Float[Array, " items"]  # zero where it meets nothing


def _of_leaf(
    tree: SurfaceTree, leaf: Int[Array, ""], function: Callable[[Instance], PyTree]
) -> PyTree:
    """Computes a function of the surface of a leaf."""
    return of_member(function, tree.stacks, tree.kinds[leaf], tree.places[leaf])


def _rank(ranking: Ranking, items: _Items, touched: Bool[Array, ""]) -> Ranking:
    """Inserts the items of a surface into the ranking of a ray."""
    for key, code, value in zip(*map(jnp.unstack, items), strict=True):
        counts = touched & (value > 0)
        ranking = jax.lax.cond(
            any_in_packet(counts),
            insert,
            lambda ranking, *_: ranking,
            ranking,
            key,
            code,
            value,
            counts,
        )
    return ranking


class _Layers(NamedTuple):
    """The layers of a ray so far."""

    ranking: Ranking
    closed: Scalar  # the `t` of the nearest that nothing is seen behind


def find_shapes(
    tree: SurfaceTree,
    cuts: Bool[Array, " surfaces"],
    ray: Ray,
    used: Bool[Array, ""],
    *,
    parts: int,
    count: int,
    leaves: Int[Array, ""] | None = None,
) -> tuple[Ranking, Scalar]:
    """Finds the nearest layers on one ray, of all surfaces but meshes.

    Their codes are `number * parts + part`. Returns also the `t` behind which nothing is seen. A
    ray that starts on the outside of a convex surface, whose number is `leaves`, does not meet it.
    """

    def of_one(instance: Instance) -> tuple[_Items, Bool[Array, ""]]:
        hits = intersect(instance, ray)
        pad = lambda x: jnp.pad(x, (0, parts - x.shape[0]))
        codes = parts * instance.number + jnp.arange(parts, dtype=jnp.int32)
        alphas = part_alphas(hits)
        if leaves is not None and instance.node.shape.is_convex:
            alphas = jnp.where(instance.number == leaves, 0, alphas)
        items = _Items(pad(hits.t), codes.astype(jnp.int32), pad(alphas))
        return items, cuts[instance.number]

    def visit(leaf: Int[Array, ""], touched: Bool[Array, ""], state: _Layers) -> _Layers:
        items, cut = _of_leaf(tree, leaf, of_one)
        opaque = touched & cut & (items.values >= 1)
        closed = jnp.min(jnp.where(opaque, items.keys, jnp.inf))
        return _Layers(_rank(state.ranking, items, touched), jnp.minimum(state.closed, closed))

    def limit(state: _Layers) -> Scalar:
        # Behind all ranks nothing counts if it is invisible; what it is then need not be known.
        passes = jnp.prod(1 - state.ranking.values)
        return jnp.where(
            passes > INVISIBLE, state.closed, jnp.minimum(state.closed, state.ranking.keys[-1])
        )

    start = _Layers(no_items(count, ray.near), jnp.asarray(jnp.inf, ray.near.dtype))
    found = walk(tree, ray, used, visit, start, limit)
    return found.ranking, found.closed


def map_ranked(function: Callable[[Any, Any], PyTree], shared: PyTree, rows: PyTree) -> PyTree:
    """Maps a function over rows as `map_rows` does; the axes of its results come before rows.

    What rows have of one rank is then in one place in memory.
    """
    structure: list[Any] = []

    def of_row(shared: PyTree, row: PyTree) -> list:
        leaves, tree = jax.tree.flatten(function(shared, row))
        structure[:] = [tree]
        return [jnp.unstack(x) if x.ndim else x for x in leaves]

    stack = lambda x: jnp.stack(x) if isinstance(x, tuple) else x
    found = map_rows(of_row, shared, rows)
    return jax.tree.unflatten(structure[0], list(map(stack, found)))


# Surfaces of a ray in a list.
_LISTED = 8


def next_surfaces(
    tree: SurfaceTree, ray: Ray, used: Bool[Array, ""], place: Place
) -> tuple[Int[Array, " listed"], Place]:
    """Lists leaves that a ray may touch from a place of its walk on: see `sum_over_pairs`."""

    def visit(leaf: Int[Array, ""], touched: Bool[Array, ""], found: tuple) -> tuple:
        leaves, count = found
        here = touched & (jnp.arange(_LISTED, dtype=jnp.int32) == count)
        return jnp.where(here, leaf, leaves), count + touched

    is_full = lambda found: found[1] >= _LISTED
    nothing = jnp.full(_LISTED, -1, jnp.int32), jnp.zeros((), jnp.int32)
    place = Place(*map(same_in_packet, place))
    place, (leaves, _) = walk_on(tree, ray, used, visit, nothing, place=place, pauses=is_full)
    return leaves, place


class Passing(NamedTuple):
    """The parts of shadow rays that surfaces let pass."""

    product: Float[Array, "*rays"]  # over those that let any pass, of what each does
    closed: Int[Array, "*rays"]  # the number of the others

    @property
    def transmission(self) -> Float[Array, "*rays"]:
        """The part that arrives: `prod(1 - occlusion)`."""
        return jnp.where(self.closed > 0, 0, self.product)


def find_passing(
    scene: FlatScene, rays: Ray, own: Int[Array, "rays *ends"], used: Bool[Array, " rays"]
) -> Passing:
    """Computes what surfaces let pass of shadow rays; `own` as for `occlusion`."""
    return map_rows(lambda tree, row: passing_of_ray(tree, *row), scene.tree, (rays, own, used))


def passing_of_ray(
    tree: SurfaceTree, ray: Ray, own: Int[Array, "*ends"], used: Bool[Array, ""]
) -> Passing:
    """Computes what surfaces let pass of one shadow ray."""
    of_one = lambda instance: 1 - occlusion(instance, ray, own)

    def visit(leaf: Int[Array, ""], touched: Bool[Array, ""], found: Passing) -> Passing:
        passes = jnp.where(touched, _of_leaf(tree, leaf, of_one), 1)
        is_closed = passes <= 0
        return Passing(found.product * jnp.where(is_closed, 1, passes), found.closed + is_closed)

    nothing = Passing(jnp.ones_like(ray.near), jnp.zeros((), jnp.int32))
    return walk(tree, ray, used, visit, nothing)


def find_nearest_parts(
    scene: FlatScene, rays: Ray, used: Bool[Array, " rays"]
) -> tuple[Float[Array, " rays"], Int[Array, " rays"]]:
    """Finds the nearest parts that the lines of rays meet, whatever their opacity.

    Returns their `t`, and their codes, -1 for none. Footprints must be zero.
    """
    if scene.tree is None:
        return jnp.full_like(rays.near, jnp.inf), jnp.full(rays.near.shape, -1, jnp.int32)
    find = partial(_find_nearest_of_ray, parts=count_parts(scene))
    return map_rows(find, scene.tree, (rays, used))


def _find_nearest_of_ray(tree: SurfaceTree, row: tuple, *, parts: int) -> tuple[Scalar, Array]:
    ray, used = row

    def of_one(instance: Instance) -> tuple[Scalar, Int[Array, ""]]:
        hits = thin_hits(instance, ray)
        # Of a line, a part covers all or nothing.
        t = jnp.where(hits.coverage > 0.5, hits.t, jnp.inf)
        part = jnp.argmin(t).astype(jnp.int32)
        return jnp.min(t), (parts * instance.number + part).astype(jnp.int32)

    def visit(leaf: Int[Array, ""], touched: Bool[Array, ""], state: tuple) -> tuple:
        t, code = _of_leaf(tree, leaf, of_one)
        before, known = state
        nearer = touched & ((t < before) | ((t == before) & (t < jnp.inf) & (code < known)))
        return jnp.where(nearer, t, before), jnp.where(nearer, code, known)

    nothing = jnp.full_like(ray.near, jnp.inf), jnp.full((), -1, jnp.int32)
    return walk(tree, ray, used, visit, nothing, lambda state: state[0])


def thin_hits(instance: Instance, ray: Ray) -> Hit:
    """Returns the hits on the parts of a surface, as if it were opaque."""
    opaque = jnp.ones((), ray.near.dtype)
    return intersect(eqx.tree_at(lambda x: x.node.opacity, instance, opaque), ray)


def count_touched(scene: FlatScene, rays: Ray) -> Int[Array, " rays"]:
    """Counts the surfaces, and the faces of meshes, whose bounds the cones of rays may touch."""
    total = jnp.zeros(rays.near.shape, jnp.int32)
    if scene.tree is not None:
        total += map_rows(_count_of_ray, scene.tree, rays)
    if scene.triangles is not None:
        total += map_rows(_count_faces, scene.triangles.tree, rays)
    return total


def _count_of_ray(tree: SurfaceTree, ray: Ray) -> Int[Array, ""]:
    add = lambda leaf, touched, total: total + touched
    return walk(tree, ray, jnp.asarray(True), add, jnp.zeros((), jnp.int32))


def _count_faces(tree: FaceTree, ray: Ray) -> Int[Array, ""]:
    add = lambda leaf, touched, total: total + FACES_OF_LEAF * touched
    return walk(tree, ray, jnp.asarray(True), add, jnp.zeros((), jnp.int32))


def count_parts(scene: FlatScene) -> int:
    """Returns the largest number of parts of any shape of a scene."""
    return max((_count_parts_of(*stack.outline()) for stack in scene.occluders), default=1)


@functools.lru_cache(256)
def _count_parts_of(structure: Any, leaves: tuple) -> int:
    """Returns the number of parts of surfaces of one structure, which takes a trace to find out."""
    # Of the type that rays have most often: JAX then has the trace when they meet the surfaces.
    array = lambda *shape: np.zeros(shape, jax.dtypes.canonicalize_dtype(float))
    ray = Ray(array(3), array(3), array(3), array(2, 3), array(2, 3), near=array(), far=array())
    return eqx.filter_eval_shape(intersect, jax.tree.unflatten(structure, leaves), ray).t.shape[0]
