"""Sums over pairs of a ray and a leaf that it may touch, whose derivatives are such sums again.

Leaves are faces of meshes, or surfaces of any kinds. Where the faces of a mesh are smaller than
pixels, a ray meets any number of them, and what one adds by its edges, its neighbours take away:
derivatives have to be those of all faces, or of none. So it is with shadows of many things.
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
from .._typing import Array, Bool, Int, PyTree
from ..flat import FaceTree, Places, SurfaceTree
from ..numerics import choose_block
from ..rays import Ray
from ..rows import (
    add_rows,
    list_true,
    map_rows_p,
    push_map,
    row_avals,
    transpose_map,
    WIDTH,
    zeros_each,
)
from ._search import map_ranked
from ._walk import Place, row_of


# The kinds of operands, and of sums: what all pairs, rays, and leaves have; where leaves are of
# several stacks, what those of stack k have is of the kind `_STACKS + k`. Before the operands of
# the function come those of the search, which have no derivatives.
_PAIRS, _RAYS, _LEAVES, _STACKS = 0, 1, 2, 3

# Lists the numbers of leaves from a place of a ray's walk on, -1 beyond the last, and says where
# the list ended. It is compared by value: a function of a module, or a record that can be called.
Lister = Callable[[Any, Ray, Bool[Array, ""], Place], tuple[Int[Array, " listed"], Place]]


def sum_over_pairs(
    function: Callable[[PyTree, PyTree, PyTree], PyTree],
    lister: Lister,
    tree: FaceTree | SurfaceTree,
    rays: Ray,
    used: Bool[Array, " rays"],
    operands: tuple[PyTree, PyTree, PyTree],
    at: Places | None = None,
) -> PyTree:
    """Sums a function of what a ray, a leaf, and all pairs have over the leaves of each ray.

    The three `operands` have an axis over rays, one over leaves, and none. With `at`, leaves are of
    several stacks: the second operand is a tuple of what the members of each have, and the function
    gets the number of a leaf's stack and a tuple of rows, of which that of the stack is the leaf's.

    The function is zero for leaves that a ray does not touch; sums of rays that are not used are
    zero. It has derivatives by all operands, of any kind and order.
    """
    of_rays, of_leaves, of_pairs = operands
    if not HAS_PRIMITIVES:
        sums = _sum_over_all(function, of_rays, of_leaves, of_pairs, at)
        return jax.tree.map(lambda x: jnp.where(_as_wide(used, x), x, 0), sums)
    search, structure = jax.tree.flatten(jax.lax.stop_gradient((used, tree, rays, at)))
    parts = [(_RAYS, of_rays), (_LEAVES, of_leaves), (_PAIRS, of_pairs)]
    if at is not None:
        stacks = [(_STACKS + k, members) for k, members in enumerate(of_leaves)]
        parts[1:2] = [(_LEAVES, at.kinds), *stacks]
    flat, whole = jax.tree.flatten([x for _, x in parts])
    kinds = [_PAIRS] * len(search)
    for kind, x in parts:
        kinds += [kind] * len(jax.tree.leaves(x))
    values = [*search, *flat]

    def one(*leaves: Array) -> PyTree:
        of_ray, first, *rest, of_all = whole.unflatten(leaves[len(search) :])
        return function(of_ray, first if at is None else (first, tuple(rest)), of_all)

    jaxpr, out = jax.make_jaxpr(one, return_shape=True)(*row_avals(values, kinds))
    how = {"jaxpr": jaxpr, "varying": tuple(kinds), "reduced": (_RAYS,) * len(jaxpr.out_avals)}
    sums = _sum_pairs_p.bind(*values, **how, structure=structure, lister=lister)
    return jax.tree.unflatten(jax.tree.structure(out), sums)


def _sum_over_all(
    function: Callable[[PyTree, PyTree, PyTree], PyTree],
    of_rays: PyTree,
    of_leaves: PyTree,
    of_pairs: PyTree,
    at: Places | None,
) -> PyTree:
    """Sums over all leaves, ray by ray: the function is zero for those that a ray misses."""
    first = at.kinds if at is not None else jax.tree.leaves(of_leaves)[0]
    numbers = jnp.arange(first.shape[0])

    def leaf_of(number: Array) -> PyTree:
        place = number if at is None else at.places[number]
        own = jax.tree.map(lambda x: row_of(x, place), of_leaves)
        return own if at is None else (at.kinds[number], own)

    @jax.checkpoint
    def one_ray(ray: PyTree) -> PyTree:
        one = lambda number: function(ray, leaf_of(number), of_pairs)
        return jax.tree.map(lambda x: jnp.sum(x, axis=0), jax.vmap(one)(numbers))

    return jax.lax.map(one_ray, of_rays)


def _as_wide(used: Array, like: Array) -> Array:
    return used.reshape(-1, *(1,) * (like.ndim - 1))


# Rays whose leaves are listed at once.
_RAYS_AT_ONCE, _RAYS_ELSEWHERE = 2**10, 2**17


def _compute(
    *values: Array,
    jaxpr: ClosedJaxpr,
    varying: tuple,
    reduced: tuple,
    structure: Any,
    lister: Lister,
) -> list[Array]:
    """Lists the leaves of rays, and sums what each pair adds to its ray, its leaf, and to all.

    Rays take turns: in each, those whose walks have not ended go on by as many leaves as a list
    holds. They stay in packets, which have a walk in common.
    """
    used, tree, rays, at = structure.unflatten(values[: structure.num_leaves])
    count, pair = rays.near.shape[0], _Pair(jaxpr, varying, reduced, values, at)
    # Of two axes, so that they stay as they lie in memory.
    front = lambda kind: _length_of(values, varying, kind) if kind != _RAYS else (count,)
    zeros = zeros_each(
        [
            jax.ShapeDtypeStruct((*front(kind), x.size), x.dtype)
            for x, kind in zip(jaxpr.out_avals, reduced, strict=True)
        ]
    )
    block = min(choose_block(_RAYS_AT_ONCE, _RAYS_ELSEWHERE), -(-count // WIDTH) * WIDTH) // WIDTH
    packets = -(-count // (WIDTH * block)) * block
    found = list_true(used, packets * WIDTH).places.reshape(packets, WIDTH)
    there, numbers = found >= 0, jnp.maximum(found, 0)
    begin = there.astype(jnp.uint32)

    def list_leaves(shared: tuple, row: tuple) -> tuple:
        (tree, rays), (number, own, place) = shared, row
        return lister(tree, jax.tree.map(lambda x: row_of(x, number), rays), own, place)

    def some_packets(i: Array, order: Array, state: tuple) -> tuple:
        places, sums = state
        listed = jax.lax.dynamic_slice(order, (i * block,), (block,))
        which, valid = jnp.maximum(listed, 0), listed >= 0
        flat = lambda x: x[which].reshape(-1, *x.shape[2:])
        number, own = flat(numbers), flat(there) & jnp.repeat(valid, WIDTH)
        # One leaf of all rays after the other, so that those without a further one are skipped.
        rows = number, own, jax.tree.map(flat, places)
        leaves, after = map_ranked(list_leaves, (tree, rays), rows)
        put = jnp.where(valid, which, packets)
        places = jax.tree.map(
            lambda x, y: x.at[put].set(y.reshape(block, WIDTH), mode="drop"), places, after
        )
        number, leaves = jnp.tile(number, leaves.shape[0]), leaves.ravel()
        added, at = pair(number, leaves)

        def add(total: Array, terms: Array, kind: int) -> Array:
            if kind == _PAIRS:
                return total + terms.ravel()
            return add_rows(total, at[kind], terms.reshape(leaves.shape[0], -1))

        return places, list(map(add, sums, added, reduced))

    def one_turn(state: tuple) -> tuple:
        walks = list_true(jnp.any(state[0].node > 0, axis=1), packets)
        go_on = lambda i, state: some_packets(i, walks.places, state)
        return jax.lax.fori_loop(0, -(-walks.total // block), go_on, state)

    start = Place(begin, jnp.zeros_like(begin)), zeros
    goes_on = lambda state: jnp.any(state[0].node > 0)
    sums = jax.lax.while_loop(goes_on, one_turn, start)[1]
    return [
        x.reshape(*front(kind), *aval.shape)
        for x, aval, kind in zip(sums, jaxpr.out_avals, reduced, strict=True)
    ]


def _length_of(values: Any, varying: tuple, kind: int) -> tuple[int, ...]:
    """Returns the length of the first axis of operands of a kind, if they have one of their own."""
    return values[varying.index(kind)].shape[:1] if kind != _PAIRS else ()


class _Pair:
    """The function of one ray and one leaf: what they add to each other's sums, and to all."""

    def __init__(
        self, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple, values: Any, at: Places | None
    ):
        # Without the operands that nothing needs, such as those of the search.
        inner, needed = dce_jaxpr(jaxpr.jaxpr, [True] * len(reduced))
        self._function = jaxpr_as_fun(ClosedJaxpr(inner, jaxpr.consts))
        some = lambda xs: [x for x, own in zip(xs, needed, strict=True) if own]
        self._tables, self._kinds = some(values), some(varying)
        self._reduced, self._at = reduced, [] if at is None else list(at)
        # Stacks to whose members something is added.
        self._stacks = sorted({kind - _STACKS for kind in reduced if kind >= _STACKS})

    def __call__(
        self, rays: Int[Array, " pairs"], leaves: Int[Array, " pairs"]
    ) -> tuple[list[Array], dict[int, Array]]:
        """Computes pairs of rays and leaves, and where what each of them adds belongs.

        Zero where a leaf is -1, which adds to nothing.
        """
        operands = [*self._at, *self._tables, rays, leaves, leaves >= 0]
        varying = (0,) * (len(operands) - 3) + (1, 1, 1)
        jaxpr = jax.make_jaxpr(self._of_row)(*row_avals(operands, varying))
        summed = (*(int(kind == _PAIRS) for kind in self._reduced), *(0 for _ in self._stacks))
        how = {"jaxpr": jaxpr, "varying": varying, "reduced": summed, "groups": 1}
        how["guard"] = len(operands) - 1
        name = "scenegraph.visibility.sum_over_pairs"
        results = map_rows_p.bind(*operands, **how, name=name)
        added, members = results[: len(self._reduced)], results[len(self._reduced) :]
        places = {_RAYS: jnp.where(leaves < 0, -1, rays), _LEAVES: leaves}
        # Of rows that are not computed, these are zero.
        for stack, place in zip(self._stacks, members, strict=True):
            places[_STACKS + stack] = place - 1
        return added, places

    def _of_row(self, *operands: Array) -> list[Array]:
        *tables, ray, leaf, _ = operands
        at, tables = tables[: len(self._at)], tables[len(self._at) :]
        kind, place = (row_of(x, leaf) for x in at) if at else (None, leaf)
        places = {_RAYS: ray, _LEAVES: leaf}
        pairs = zip(tables, self._kinds, strict=True)
        own = [x if own == _PAIRS else row_of(x, places.get(own, place)) for x, own in pairs]
        members = [jnp.where(kind == stack, place + 1, 0) for stack in self._stacks]
        return [*self._function(*own), *members]


@functools.lru_cache(64)
def _traced(avals: tuple, params: tuple) -> ClosedJaxpr:
    """Returns the jaxpr of a search, of which there is none while it is only differentiated."""
    return jax.make_jaxpr(functools.partial(_compute, **dict(params)))(*avals)


def _by_jaxpr(*values: Array, **params: Any) -> list[Array]:
    avals = tuple(jax.typeof(x) for x in values)
    return jaxpr_as_fun(_traced(avals, tuple(params.items())))(*values)


def _abstract(
    *avals: Any,
    jaxpr: ClosedJaxpr,
    varying: tuple,
    reduced: tuple,
    structure: Any,
    lister: Lister,
) -> list[Any]:
    del structure, lister
    # The first operand says which rays are used.
    front = lambda kind: _length_of(avals, varying, kind) if kind != _RAYS else avals[0].shape
    return [
        aval.update(shape=(*front(kind), *aval.shape))
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
    return transpose_map(_sum_pairs_p, keep, cotangents, used, *values, **params)


def _batch(values: Any, axes: Any, **params: Any) -> tuple[list, list[int]]:
    # One element after the other, each as these sums: they keep their derivatives.
    pairs = zip(values, axes, strict=True)
    moved = [None if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in pairs]

    def of_element(some: list[Array | None]) -> list[Array]:
        own = (x if y is None else y for x, y in zip(values, some, strict=True))
        return _sum_pairs_p.bind(*own, **params)

    results = jax.lax.map(of_element, moved)
    return results, [0] * len(results)


def _define() -> Primitive:
    """Defines the sums as a primitive."""
    primitive = Primitive("sum_pairs")
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    names = "jaxpr", "varying", "reduced", "structure", "lister"
    primitive.def_impl(jax.jit(_by_jaxpr, static_argnames=names))
    primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[primitive] = functools.partial(push_map, primitive)
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, mlir.lower_fun(_by_jaxpr, multiple_results=True))
    return primitive


if HAS_PRIMITIVES:
    _sum_pairs_p = _define()
