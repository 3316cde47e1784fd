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
from .._typing import Array, Bool, Float, PyTree
from ..flat import FaceTree
from ..programs import find_within
from ..rays import Ray
from ..rows import map_rows, push_map, row_avals, transpose_map
from ..rowwise import take_rows
from ._face_pairs import add_terms, FaceSum, Sums
from ._face_search import ListedFaces, search_faces


# The kinds of operands, and of sums: what all pairs share, and what rays and faces have.
_ALL, _RAYS, _FACES = 0, 1, 2


def sum_over_faces(
    function: Callable[[PyTree, PyTree], PyTree],
    tree: FaceTree,
    listed: ListedFaces,
    rays: Ray,
    of_rays: PyTree,
    of_faces: PyTree,
    way: int,
) -> PyTree:
    """Sums a function of what a ray and a face have over the faces that each ray may touch.

    The function is zero for faces that a ray does not touch, and for those of one side that `way`
    leaves out (see `FaceVisit`). It has derivatives by both operands, of any kind and order, whose
    cost does not grow with the number of faces of a ray.
    """
    if not HAS_PRIMITIVES:
        return _sum_over_all(function, of_rays, of_faces)
    used = jnp.ones(rays.near.shape, bool)
    shared, structure = jax.tree.flatten(jax.lax.stop_gradient((used, tree, listed, rays)))
    first, first_structure = jax.tree.flatten(of_rays)
    second, second_structure = jax.tree.flatten(of_faces)
    values = [*shared, *first, *second]
    kinds = (_ALL,) * len(shared) + (_RAYS,) * len(first) + (_FACES,) * len(second)

    def one(*leaves: Array) -> PyTree:
        _, ray, face = _split(leaves, kinds)
        return function(first_structure.unflatten(ray), second_structure.unflatten(face))

    jaxpr, out = jax.make_jaxpr(one, return_shape=True)(*row_avals(values, kinds))
    how = {"jaxpr": jaxpr, "varying": kinds, "reduced": (_RAYS,) * len(jaxpr.out_avals)}
    sums = _sum_faces_p.bind(*values, **how, structure=structure, way=way)
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


def _compute(
    *values: Array, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple, structure: Any, way: int
) -> list[Array]:
    """Searches the faces of rays, and sums what each pair adds to its ray, and to its face."""
    shared, of_rays, of_faces = _split(values, varying)
    used, tree, listed, rays = structure.unflatten(shared)
    inner, needed = dce_jaxpr(jaxpr.jaxpr, [True] * len(reduced))
    kinds = tuple(kind for kind, own in zip(varying, needed, strict=True) if own)
    pair = jaxpr_as_fun(ClosedJaxpr(inner, jaxpr.consts))
    of_rays, of_faces = (
        [x for x, own in zip(some, _split(needed, varying)[kind], strict=True) if own]
        for kind, some in ((_RAYS, of_rays), (_FACES, of_faces))
    )
    _, ray_avals, face_avals = _split(jaxpr.out_avals, reduced)
    zeros = lambda aval, *shape: jnp.zeros(shape, aval.dtype)

    def add(own: PyTree, rays: Array, faces: Array, there: Array, sums: Sums) -> Sums:
        rows = take_rows(own, rays), take_rows(of_faces, faces)
        one = lambda _, row: pair(*_merge(row[0][1], row[1], kinds))
        _, by_ray, by_face = _split(map_rows(one, None, rows), reduced)
        by_ray = [jnp.moveaxis(x, 0, -1) for x in by_ray]
        # Beyond the last, nothing is added.
        of_none = lambda places: jnp.where(there, places, jnp.iinfo(jnp.int32).max)
        by_ray = add_terms(sums[0], by_ray, of_none(rays), -1)
        return by_ray, add_terms(sums[1], by_face, of_none(faces), 0)

    visit = FaceSum(
        start=lambda count: [zeros(aval, *aval.shape, count) for aval in ray_avals],
        add=add,
        finish=lambda sums: [jnp.moveaxis(x, -1, 0) for x in sums],
        way=way,
        totals=[zeros(aval, *tree.owner.shape, *aval.shape) for aval in face_avals],
    )
    (by_ray, by_face), places = search_faces(tree, listed.of(used), rays, visit, of_rays)
    return _merge(take_rows(by_ray, places), by_face, reduced)


@functools.lru_cache(64)
def _traced(avals: tuple, params: tuple) -> ClosedJaxpr:
    """Returns the jaxpr of a search, of which there is none while it is only differentiated."""
    return jax.make_jaxpr(functools.partial(_compute, **dict(params)))(*avals)


def _by_jaxpr(*values: Array, **params: Any) -> list[Array]:
    avals = tuple(jax.typeof(x) for x in values)
    return jaxpr_as_fun(_traced(avals, tuple(params.items())))(*values)


def _abstract(
    *avals: Any, jaxpr: ClosedJaxpr, varying: tuple, reduced: tuple, structure: Any, way: int
) -> list[Any]:
    del structure, way
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


def _find_within(equation: Any) -> Any:
    avals = tuple(x.aval for x in equation.invars)
    return _traced(avals, tuple(equation.params.items())).jaxpr


def _define() -> Primitive:
    """Defines the sums as a primitive."""
    primitive = Primitive("sum_faces")
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    names = "jaxpr", "varying", "reduced", "structure", "way"
    primitive.def_impl(jax.jit(_by_jaxpr, static_argnames=names))
    primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[primitive] = functools.partial(push_map, primitive)
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, mlir.lower_fun(_by_jaxpr, multiple_results=True))
    find_within(primitive, _find_within)
    return primitive


if HAS_PRIMITIVES:
    _sum_faces_p = _define()
