"""Functions that are traced only when they are compiled.

Under `grad`, JAX traces a function and then its derivative. Where a derivative computes the value,
too, but in another way, the first trace is for nothing: a picture's takes a second.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._jax import ad, batching, HAS_PRIMITIVES, lower_when_compiled, mlir, Primitive
from .._typing import Array, PyTree
from ._checkify import check_results


def call_late(
    function: Callable[..., PyTree],
    push: Callable[[tuple, tuple], tuple[PyTree, PyTree]],
    shapes: PyTree,
    *operands: PyTree,
) -> PyTree:
    """Calls a function that has a derivative of its own, and is traced only when it is compiled.

    `push` maps the operands and their tangents, of which those that are zero are `None`, to results
    and their tangents, as the rule of an `eqx.filter_custom_jvp` does. Neither may close over
    traced arrays. `shapes` are those of the results.
    """
    arrays, static = eqx.partition(operands, eqx.is_array)
    flat, structure = jax.tree.flatten(arrays)
    whole = lambda values: eqx.combine(structure.unflatten(values), static)

    def compute(*values: Array) -> list[Array]:
        return jax.tree.leaves(function(*whole(values)))

    def push_flat(values: Any, changes: Any) -> tuple[list[Array], list[Array | None]]:
        results, pushed = push(whole(values), structure.unflatten(changes))
        leaves, whole_tree = jax.tree.flatten(results)
        return leaves, whole_tree.flatten_up_to(pushed)

    if HAS_PRIMITIVES:
        avals = tuple((x.shape, x.dtype) for x in jax.tree.leaves(shapes))
        results = late_p.bind(*flat, function=compute, push=push_flat, avals=avals)
    else:
        results = _plain(compute, push_flat)(flat)
    return jax.tree.unflatten(jax.tree.structure(shapes), results)


def _plain(compute: Callable, push: Callable) -> Callable:
    call = eqx.filter_custom_jvp(lambda values: compute(*values))
    call.def_jvp(lambda primals, tangents: push(primals[0], tangents[0]))
    return call


def _jvp(primals: Any, tangents: Any, *, push: Callable, **_: Any) -> tuple[Any, Any]:
    changes = [None if isinstance(x, ad.Zero) else x for x in tangents]
    # Constants of a program may be no arrays of JAX.
    arrays = [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in primals]
    values, pushed = push(arrays, changes)
    zero = lambda x: ad.Zero(jax.typeof(x).to_tangent_aval())
    return values, [zero(x) if dx is None else dx for x, dx in zip(values, pushed, strict=True)]


def _batch(
    values: Any, axes: Any, *, function: Callable, push: Callable, avals: Any
) -> tuple[Any, list[int]]:
    size = next(x.shape[axis] for x, axis in zip(values, axes, strict=True) if axis is not None)

    def push_many(values: list, changes: list) -> tuple[list, list]:
        moving = [None if x is None else axis for x, axis in zip(changes, axes, strict=True)]
        return jax.vmap(push, (list(axes), moving), axis_size=size)(values, changes)

    many = jax.vmap(function, tuple(axes), axis_size=size)
    avals = tuple(((size, *shape), dtype) for shape, dtype in avals)
    return late_p.bind(*values, function=many, push=push_many, avals=avals), [0] * len(avals)


def _abstract(first: Any, *_: Any, avals: Any, **__: Any) -> list[Any]:
    return [first.update(shape=shape, dtype=dtype, weak_type=False) for shape, dtype in avals]


def _compute(*values: Array, function: Callable, **_: Any) -> list[Array]:
    return function(*values)


def _define() -> Primitive:
    primitive = Primitive("late")
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    names = "function", "push", "avals"
    primitive.def_impl(jax.jit(_compute, static_argnames=names))
    primitive.def_abstract_eval(_abstract)
    ad.primitive_jvps[primitive] = _jvp
    batching.primitive_batchers[primitive] = _batch
    check_results(primitive)
    mlir.register_lowering(primitive, mlir.lower_fun(_compute, multiple_results=True))
    return primitive


late_p: Any = _define() if HAS_PRIMITIVES else None
