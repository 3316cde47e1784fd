"""Sums over pairs of a ray and a face that it may touch, whose derivatives are such sums again.

Where the faces of a mesh are smaller than pixels, a ray meets any number of them, and what one adds
by its edges, its neighbours take away: derivatives have to be those of all faces, or of none.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._jax import (
    ad,
    batching,
    ClosedJaxpr,
    dce_jaxpr,
    HAS_PRIMITIVES,
    jaxpr_as_fun,
    lower_when_compiled,
    mlir,
    Primitive,
)
from .._typing import Array, Bool, Float, Int, PyTree
from ..flat import FaceTree
from ..numerics import choose_block, compact
from ..rays import Ray
from ..rows import (
    add_rows,
    as_operands,
    map_rows,
    push_map,
    row_avals,
    transpose_map,
    WIDTH,
)
from ..rowwise import take_rows
from ._faces import LISTED, next_faces, row_of
from ._search import map_ranked
from ._walk import Place


# The kinds of operands, and of sums: what all pairs share, and what rays and faces have.
_ALL, _RAYS, _FACES = 0, 1, 2


def sum_over_faces(
    function: Callable[[PyTree, PyTree], PyTree],
    tree: FaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    of_rays: PyTree,
    of_faces: PyTree,
) -> PyTree:
    """Sums a function of what a ray and a face have over the faces that each ray may touch.

    The function is zero for faces that a ray does not touch; sums of rays that are not used are
    zero. It has derivatives by both operands, of any kind and order.
    """
    if not HAS_PRIMITIVES:
        sums = _sum_over_all(function, of_rays, of_faces)
        return jax.tree.map(lambda x: jnp.where(_as_wide(used, x), x, 0), sums)
    shared, structure = jax.tree.flatten(jax.lax.stop_gradient((used, tree, rays)))
    first, first_structure = jax.tree.flatten(of_rays)
    second, second_structure = jax.tree.flatten(of_faces)
    values = [*shared, *first, *second]
    kinds = (_ALL,) * len(shared) + (_RAYS,) * len(first) + (_FACES,) * len(second)

    def one(*leaves: Array) -> PyTree:
        _, ray, face = _split(leaves, kinds)
        return function(first_structure.unflatten(ray), second_structure.unflatten(face))

    jaxpr, out = jax.make_jaxpr(one, return_shape=True)(*row_avals(values, kinds))
    how = {"jaxpr": jaxpr, "varying": kinds, "reduced": (_RAYS,) * len(jaxpr.out_avals)}
    sums = _sum_faces_p.bind(*values, **how, structure=structure)
    return jax.tree.unflatten(jax.tree.structure(out), sums)


def _sum_over_all(
    function: Callable[[PyTree, PyTree], PyTree], of_rays: PyTree, of_faces: PyTree
) -> PyTree:
    """Sums over all faces, ray by ray: the function is zero for those that a ray does not touch."""

    @jax.checkpoint
    def one_ray(ray: PyTree) -> PyTree:
        terms = jax.vmap(functools.partial(function, ray))(of_faces)
        return jax.tree.map(lambda x: jnp.sum(x, axis=0), terms)

    return jax.lax.map(one_ray, of_rays)


def _as_wide(used: Array, like: Array) -> Array:
    return used.reshape(-1, *(1,) * (like.ndim - 1))


def fill_faces(
    own: Float[Array, "faces *shape"], known: Float[Array, "padded *shape"]
) -> Float[Array, "padded *shape"]:
    """Fills the last cluster with faces that have no derivatives."""
    return jnp.concatenate([own, known[own.shape[0] :]])


def _split(values: Any, kinds: tuple[int, ...]) -> tuple[list, list, list]:
    """Returns the values of each kind."""
    some = lambda kind: [x for x, own in zip(values, kinds, strict=True) if own == kind]
    return some(_ALL), some(_RAYS), some(_FACES)


def _merge(by_ray: list, by_face: list, kinds: tuple[int, ...]) -> list:
    """Returns values of both kinds in the order of kinds."""
    left = {_RAYS: iter(by_ray), _FACES: iter(by_face)}
    return [next(left[kind]) for kind in kinds]


# Rays whose faces are listed at once.
_RAYS_AT_ONCE, _RAYS_ELSEWHERE = 2**10, 2**17


def _compute(
    *values: Array, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple, structure: Any
) -> list[Array]:
    """Lists the faces of rays, and sums what each pair adds to its ray, and to its face.

    Rays take turns: in each, those whose walks have not ended go on by as many faces as a list
    holds. They stay in packets, which have a walk in common.
    """
    shared, of_rays, of_faces = _split(values, varying)
    used, tree, rays = structure.unflatten(shared)
    pair = _Pair(jaxpr, varying, reduced)
    _, by_ray, by_face = _split(jaxpr.out_avals, reduced)
    count = rays.near.shape[0]
    # Of two axes, so that they stay as they lie in memory.
    zeros = lambda aval, length: jnp.zeros((length, aval.size), aval.dtype)
    sums = [zeros(x, count) for x in by_ray], [zeros(x, tree.owner.shape[0]) for x in by_face]

    block = min(choose_block(_RAYS_AT_ONCE, _RAYS_ELSEWHERE), -(-count // WIDTH) * WIDTH)
    block //= WIDTH
    packets = -(-count // (WIDTH * block)) * block
    found = compact(used, packets * WIDTH)
    numbers, there = (x.reshape(packets, WIDTH) for x in found[:2])
    begin = jnp.where(there, 1, 0).astype(jnp.uint32)

    def some_packets(i: Array, order: Array, total: Array, state: tuple) -> tuple:
        places, sums = state
        which = jax.lax.dynamic_slice(order, (i * block,), (block,))
        valid = i * block + jnp.arange(block, dtype=jnp.int32) < total
        flat = lambda x: x[which].reshape(-1, *x.shape[2:])
        number, own = flat(numbers), flat(there) & jnp.repeat(valid, WIDTH)
        rows = take_rows(rays, number), own, jax.tree.map(flat, places)
        # One face of all rays after the other, so that those without a further one are skipped.
        faces, after = map_ranked(lambda tree, row: next_faces(tree, *row), tree, rows)
        faces = faces.ravel()
        put = jnp.where(valid, which, packets)
        places = jax.tree.map(
            lambda x, y: x.at[put].set(y.reshape(block, WIDTH), mode="drop"), places, after
        )
        to_rays, to_faces = pair(of_rays, of_faces, jnp.tile(number, LISTED), faces)
        to_rays = [x.reshape(LISTED, own.shape[0], -1).sum(axis=0) for x in to_rays]
        number = jnp.where(own, number, -1)
        add = lambda tables, places, rows: [
            add_rows(x, places, y.reshape(places.shape[0], -1))
            for x, y in zip(tables, rows, strict=True)
        ]
        return places, (add(sums[0], number, to_rays), add(sums[1], faces, to_faces))

    def one_turn(state: tuple) -> tuple:
        walks = compact(jnp.any(state[0].node > 0, axis=1), packets)
        total = jnp.sum(walks.valid, dtype=jnp.int32)
        go_on = lambda i, state: some_packets(i, walks.indices, total, state)
        return jax.lax.fori_loop(0, -(-total // block), go_on, state)

    start = Place(begin, jnp.zeros_like(begin)), sums
    _, (by_ray, by_face) = jax.lax.while_loop(
        lambda state: jnp.any(state[0].node > 0), one_turn, start
    )
    sums = _merge(by_ray, by_face, reduced)
    return [x.reshape(-1, *y.shape) for x, y in zip(sums, jaxpr.out_avals, strict=True)]


class _Pair:
    """The function of one ray and one face: what they add to each other's sums."""

    def __init__(self, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple):
        # Without the operands that nothing needs.
        inner, needed = dce_jaxpr(jaxpr.jaxpr, [True] * len(reduced))
        self._function = jaxpr_as_fun(ClosedJaxpr(inner, jaxpr.consts))
        self._kinds = tuple(kind for kind, own in zip(varying, needed, strict=True) if own)
        _, *self._needed = _split(needed, varying)
        self._avals, self._reduced = jaxpr.out_avals, reduced

    def __call__(
        self,
        of_rays: list[Array],
        of_faces: list[Array],
        rays: Int[Array, " pairs"],
        faces: Int[Array, " pairs"],
    ) -> tuple[list[Array], list[Array]]:
        """Computes pairs of rays and faces; zero where a face is -1."""
        tables = [
            [x for x, own in zip(values, needed, strict=True) if own]
            for values, needed in zip((of_rays, of_faces), self._needed, strict=True)
        ]
        results = map_rows(self._of_row, as_operands(tables), (rays, faces))
        _, to_rays, to_faces = _split(results, self._reduced)
        return to_rays, to_faces

    def _of_row(self, tables: list[list[Array]], row: tuple[Array, Array]) -> list[Array]:
        def compute() -> list[Array]:
            own = [[row_of(x, k) for x in table] for table, k in zip(tables, row, strict=True)]
            return self._function(*_merge(*own, self._kinds))

        nothing = lambda: [jnp.zeros(x.shape, x.dtype) for x in self._avals]
        return jax.lax.cond(row[1] >= 0, compute, nothing)


@functools.lru_cache(64)
def _traced(avals: tuple, params: tuple) -> ClosedJaxpr:
    """Returns the jaxpr of a search, of which there is none while it is only differentiated."""
    return jax.make_jaxpr(functools.partial(_compute, **dict(params)))(*avals)


def _by_jaxpr(*values: Array, **params: Any) -> list[Array]:
    avals = tuple(jax.typeof(x) for x in values)
    return jaxpr_as_fun(_traced(avals, tuple(params.items())))(*values)


def _abstract(
    *avals: Any, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple, structure: Any
) -> list[Any]:
    del structure
    count = {kind: avals[varying.index(kind)].shape[0] for kind in set(varying) - {_ALL}}
    return [
        aval.update(shape=(count[kind], *aval.shape))
        for aval, kind in zip(jaxpr.out_avals, reduced, strict=True)
    ]


def _transpose(cotangents: Any, used: Bool[Array, " rays"], *values: Any, **params: Any) -> list:
    """Sums cotangents over pairs; rays that have none, as most, are left out."""
    given = [
        x for x in zip(cotangents, params["reduced"], strict=True) if type(x[0]) is not ad.Zero
    ]
    if all(kind == _RAYS for _, kind in given):
        moves = [jnp.any(x.reshape(x.shape[0], -1) != 0, axis=1) for x, _ in given]
        used &= functools.reduce(jnp.logical_or, moves)
    keep = lambda kind: kind
    return transpose_map(_sum_faces_p, keep, cotangents, used, *values, **params)


def _batch(values: Any, axes: Any, **params: Any) -> tuple[list, list[int]]:
    results = jax.vmap(functools.partial(_compute, **params), tuple(axes))(*values)
    return results, [0] * len(results)


def _define() -> Primitive:
    """Defines the sums as a primitive."""
    primitive = Primitive("sum_faces")
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    names = "jaxpr", "varying", "reduced", "structure"
    primitive.def_impl(jax.jit(_by_jaxpr, static_argnames=names))
    primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[primitive] = functools.partial(push_map, primitive)
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, mlir.lower_fun(_by_jaxpr, multiple_results=True))
    return primitive


if HAS_PRIMITIVES:
    _sum_faces_p = _define()
