"""Constant folding: primitives whose operands are known, in numpy.

An operation that JAX runs by itself is a program of its own to compile: a picture had eighty.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._movement import MOVEMENTS


# The kinds of data types that numpy computes as XLA does.
_KINDS = "biuf"
_ELEMENTWISE: dict[str, Callable] = {
    "abs": np.abs,
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "copy": np.asarray,
    "div": np.divide,
    "eq": np.equal,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "sqrt": np.sqrt,
    "square": np.square,
    "stop_gradient": np.asarray,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
}
_SHIFTS = {"shift_left": np.left_shift, "shift_right_logical": np.right_shift}
_REDUCTIONS: dict[str, Callable] = {
    "reduce_and": np.all,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_or": np.any,
    "reduce_prod": np.prod,
    "reduce_sum": np.sum,
}


def evaluate(
    primitive: Any, values: Sequence[Any], params: dict, avals: Sequence[Any]
) -> list[Any]:
    """Computes the results of a primitive, of the shapes and data types `avals`."""
    if all(_is_plain(x.dtype) for x in (*values, *avals)):
        with np.errstate(all="ignore"):
            results = _in_numpy(primitive.name, [np.asarray(x) for x in values], params, avals[0])
        if results is not None:
            return [np.asarray(x, aval.dtype) for x, aval in zip(results, avals, strict=True)]
    with jax.ensure_compile_time_eval():
        results = primitive.bind(*map(jnp.asarray, values), **params)
    return list(results) if primitive.multiple_results else [results]


def _is_plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in _KINDS


def _in_numpy(name: str, values: list[np.ndarray], params: dict, aval: Any) -> Any:
    """Returns the results, or `None` if numpy might compute others than XLA."""
    if name in MOVEMENTS:
        return MOVEMENTS[name](params, values, aval.shape)
    # Quotients of integers, and numbers too large for an integer, are rounded in other ways.
    to_integer = values and values[0].dtype.kind == "f" and aval.dtype.kind in "iu"
    if name == "convert_element_type" and not to_integer:
        return [values[0].astype(aval.dtype)]
    if name == "select_n" and len(values) == 3:
        return [np.where(values[0], values[2], values[1])]
    if name in _REDUCTIONS and values[0].size:
        return [_REDUCTIONS[name](values[0], axis=params["axes"])]
    if name == "iota":
        return [_count_along(params["dimension"], aval.shape)]
    function = _elementwise(name, values, params, aval)
    return None if function is None else [function(*values)]


def _elementwise(name: str, values: list[np.ndarray], params: dict, aval: Any) -> Any:
    if name in _SHIFTS:
        # Beyond a word's bits, what numpy returns is not said.
        within = aval.dtype.kind == "u" and np.all(values[1] < 8 * aval.dtype.itemsize)
        return _SHIFTS[name] if within else None
    if name == "integer_pow":
        return np.square if params["y"] == 2 else None
    return None if name == "div" and aval.dtype.kind != "f" else _ELEMENTWISE.get(name)


def _count_along(axis: int, shape: Sequence[int]) -> np.ndarray:
    ones = [1] * len(shape)
    ones[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).reshape(ones), shape)
