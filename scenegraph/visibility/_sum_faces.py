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
from ..rows import as_operands, map_rows, push_map, row_avals, transpose_map
from ..rowwise import take_rows
from ._faces import row_of, walk_faces


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


# Rays whose faces are listed at once, and faces of a ray in a list.
_RAYS_AT_ONCE, _RAYS_ELSEWHERE, _LISTED = 2**12, 2**17, 16


def _compute(
    *values: Array, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple, structure: Any
) -> list[Array]:
    """Lists the faces of rays, and sums what each pair adds to its ray, and to its face."""
    shared, of_rays, of_faces = _split(values, varying)
    used, tree, rays = structure.unflatten(shared)
    pair = _Pair(jaxpr, varying, reduced)
    _, by_ray, by_face = _split(jaxpr.out_avals, reduced)
    count = rays.near.shape[0]
    zeros = lambda aval, length: jnp.zeros((length, *aval.shape), aval.dtype)
    start = [zeros(x, count) for x in by_ray], [zeros(x, tree.owner.shape[0]) for x in by_face]

    size = min(choose_block(_RAYS_AT_ONCE, _RAYS_ELSEWHERE), count)
    chosen = compact(used, -(-count // size) * size).indices.reshape(-1, size)
    total = jnp.sum(used, dtype=jnp.int32)

    def some_rays(i: Array, sums: tuple) -> tuple:
        numbers = chosen[i]
        there = i * size + jnp.arange(size, dtype=jnp.int32) < total
        rows = take_rows((rays, of_rays), numbers)

        def some_faces(state: tuple) -> tuple:
            begin, _, sums = state
            faces, known = map_rows(_listed_faces, tree, (rows[0], there, begin))
            # One face of all rays after the other, so that those without a further one are skipped.
            again = jnp.tile(jnp.arange(size, dtype=jnp.int32), _LISTED)
            own = take_rows(rows[1], again)
            to_rays, to_faces = pair(own, of_faces, faces.T.ravel())
            by_rays = [x.reshape(_LISTED, size, *x.shape[1:]).sum(axis=0) for x in to_rays]
            # Beyond the last ray, nothing is added.
            place = jnp.where(there, numbers, count)
            add = lambda x, y, at: x.at[at].add(y, mode="drop")
            at_faces = jnp.where(faces.T.ravel() < 0, tree.owner.shape[0], faces.T.ravel())
            sums = (
                [add(x, y, place) for x, y in zip(sums[0], by_rays, strict=True)],
                [add(x, y, at_faces) for x, y in zip(sums[1], to_faces, strict=True)],
            )
            return begin + _LISTED, jnp.any(known > begin + _LISTED), sums

        state = jnp.zeros(size, jnp.int32), jnp.ones((), bool), sums
        return jax.lax.while_loop(lambda state: state[1], some_faces, state)[2]

    by_ray, by_face = jax.lax.fori_loop(0, -(-total // size), some_rays, start)
    return _merge(by_ray, by_face, reduced)


def _listed_faces(
    tree: FaceTree, row: tuple[Ray, Bool[Array, ""], Int[Array, ""]]
) -> tuple[Int[Array, " listed"], Int[Array, ""]]:
    """Returns a ray's faces from the one of a number on, -1 beyond the last, and how many it has"""
    ray, used, begin = row

    def visit(face: Int[Array, ""], _: Array, there: Bool[Array, ""], found: tuple) -> tuple:
        faces, count = found
        here = there & (jnp.arange(_LISTED, dtype=jnp.int32) == count - begin)
        return jnp.where(here, face.astype(jnp.int32), faces), count + there

    nothing = jnp.full(_LISTED, -1, jnp.int32), jnp.zeros((), jnp.int32)
    return walk_faces(tree, ray, used, visit, nothing)


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
        self, of_rays: list[Array], of_faces: list[Array], faces: Int[Array, " pairs"]
    ) -> tuple[list[Array], list[Array]]:
        """Computes pairs of a row of what rays have and a face; zero where it is -1."""
        some = [
            [x for x, own in zip(values, needed, strict=True) if own]
            for values, needed in zip((of_rays, of_faces), self._needed, strict=True)
        ]
        results = map_rows(self._of_row, as_operands(some[1]), (some[0], faces))
        _, to_rays, to_faces = _split(results, self._reduced)
        return to_rays, to_faces

    def _of_row(self, table: list[Array], row: tuple[list[Array], Int[Array, ""]]) -> list[Array]:
        own, face = row

        def compute() -> list[Array]:
            its = [row_of(x, face) for x in table]
            return self._function(*_merge(own, its, self._kinds))

        nothing = lambda: [jnp.zeros(x.shape, x.dtype) for x in self._avals]
        return jax.lax.cond(face >= 0, compute, nothing)


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
