"""Rows that change places, and their cotangents, which change them back.

The derivative of a look-up adds what arrives for every row, one after the other, because several
may have looked up one row. Where it is known which did, cotangents are looked up, too, several
times as fast.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray

from .._jax import ad, batching, HAS_PRIMITIVES, mlir, Primitive
from .._typing import Array, Int, PyTree


def exchange_rows(tree: PyTree, places: Int[Array, "*new"], back: Int[Array, " old"]) -> PyTree:
    """Returns the rows of arrays at places, and zeros for places beyond the last.

    `back[i]` is the one new row whose cotangent old row `i` receives, or a number beyond the last
    for none. Cotangents of all other new rows are dropped: the caller must not need them, nor what
    such rows hold in second derivatives.
    """
    exchange = _exchange_p.bind if HAS_PRIMITIVES else _gather
    return jax.tree.map(lambda x: exchange(x, places, back), tree)


def _gather(x: Array, places: Array, back: Array) -> Array:
    del back
    return x.at[places].get(mode="fill", fill_value=0, wrap_negative_indices=False)


def _shape(x: ShapedArray, places: ShapedArray, back: ShapedArray) -> ShapedArray:
    del back
    return x.update(shape=(*places.shape, *x.shape[1:]))


def _jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    x, *how = primals
    moved, change = _exchange_p.bind(x, *how), tangents[0]
    if isinstance(change, ad.Zero):
        return moved, ad.Zero(jax.typeof(moved).to_tangent_aval())
    return moved, _exchange_p.bind(change, *how)


def _transpose(cotangent: Any, x: Any, places: Array, back: Array) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(x.aval), None, None]
    # Not -1: rows may hold nothing.
    rows = cotangent.reshape(places.size, *x.aval.shape[1:])
    return [_exchange_p.bind(rows, back, places.ravel()), None, None]


def _batch(operands: Any, axes: Any) -> tuple[Any, int]:
    if axes[1] is None and axes[2] is None:
        # All have the same places.
        moved = _exchange_p.bind(jnp.moveaxis(operands[0], axes[0], -1), *operands[1:])
        return moved, moved.ndim - 1
    return jax.vmap(_gather, axes)(*operands), 0


def _define() -> Primitive:
    """Defines the exchange as a primitive."""
    primitive = Primitive("exchange_rows")
    primitive.def_impl(jax.jit(_gather))
    primitive.def_abstract_eval(_shape)
    mlir.register_lowering(primitive, mlir.lower_fun(_gather, multiple_results=False))
    ad.primitive_jvps[primitive] = _jvp
    ad.primitive_transposes[primitive] = _transpose
    batching.primitive_batchers[primitive] = _batch
    return primitive


if HAS_PRIMITIVES:
    _exchange_p = _define()
