"""Scalarisation rules: JAX primitives on arrays of nodes, scalar by scalar.

A rule maps the graph, the equation and the operands to the results; it returns `None` for
parameters that it does not handle.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from ._graph import array_of, Graph, hashable, Node
from ._movement import MOVEMENTS
from ._sorts import find_extreme, sort_arrays, take_largest


_ELEMENTWISE = """abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp
    convert_element_type copy cos cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt
    integer_pow is_finite le le_to lgamma log log1p log2 logistic lt lt_to max min mul ne neg
    nextafter not one_minus_square or population_count rem round rsqrt select_n shift_left
    shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan
    tanh xor""".split()
_REDUCTIONS = {
    "reduce_sum": lax.add_p,
    "reduce_prod": lax.mul_p,
    "reduce_max": lax.max_p,
    "reduce_min": lax.min_p,
    "reduce_and": lax.and_p,
    "reduce_or": lax.or_p,
}
_SCANS = {"cumsum": lax.add_p, "cumprod": lax.mul_p, "cummax": lax.max_p, "cummin": lax.min_p}

_Arrays = list[np.ndarray]


def reduce_nodes(graph: Graph, primitive: Any, nodes: np.ndarray, axes: Any) -> Any:
    """Returns the reduction of an array of nodes by a binary primitive, along some axes."""
    kept = [axis for axis in range(nodes.ndim) if axis not in axes]
    shape = [nodes.shape[axis] for axis in kept]
    lists = nodes.transpose(*kept, *axes).reshape(math.prod(shape), -1)
    return array_of([_accumulate(graph, primitive, x)[-1] for x in lists], shape)


def _accumulate(graph: Graph, primitive: Any, nodes: Any) -> list[Node]:
    totals = [nodes[0]]
    for node in nodes[1:]:
        totals.append(graph.apply(primitive, [totals[-1], node], {}, node.dtype))
    return totals


def _elementwise(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays:
    out, shape = equation.outvars[0].aval, equation.outvars[0].aval.shape
    lists = [x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays]
    lists = [x.reshape(-1).tolist() for x in lists]
    key = hashable(equation.params)
    how = {"params": equation.params, "dtype": out.dtype, "key": key}
    apply = lambda *nodes: graph.apply(equation.primitive, nodes, **how)
    return [array_of(list(map(apply, *lists)), shape)]


def _movement(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays | None:
    del graph
    return MOVEMENTS[equation.primitive.name](
        equation.params, arrays, equation.outvars[0].aval.shape
    )


def _of_nothing(primitive: Any, dtype: Any) -> Any:
    """Returns the number that a binary primitive leaves others as they are with."""
    if primitive in (lax.add_p, lax.or_p):
        return np.zeros((), dtype)
    if primitive in (lax.mul_p, lax.and_p):
        return np.ones((), dtype)
    is_integer = np.issubdtype(dtype, np.integer)
    ends = (np.iinfo(dtype).min, np.iinfo(dtype).max) if is_integer else (-np.inf, np.inf)
    return np.asarray(ends[0] if primitive is lax.max_p else ends[1], dtype)


def _reduction(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays | None:
    primitive = _REDUCTIONS[equation.primitive.name]
    if not arrays[0].size and primitive is lax.add_p:
        # The sum over nothing, such as over no lights.
        out = equation.outvars[0].aval
        return [array_of([graph.constant(0, out.dtype)] * math.prod(out.shape), out.shape)]
    if not arrays[0].size:
        # Of nothing, a reduction is what changes nothing.
        aval = equation.outvars[0].aval
        nothing = graph.constant(np.asarray(_of_nothing(primitive, aval.dtype)), aval.dtype)
        return [array_of([nothing] * math.prod(aval.shape), list(aval.shape))]
    return [reduce_nodes(graph, primitive, arrays[0], equation.params["axes"])]


def _scan(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays:
    primitive, axis = _SCANS[equation.primitive.name], equation.params["axis"]
    step = -1 if equation.params["reverse"] else 1
    # y[k] = x[0] o x[1] o ... o x[k], or from the end
    front = np.moveaxis(arrays[0], axis, -1)[..., ::step]
    lists = front.reshape(-1, front.shape[-1])
    totals = [x for nodes in lists for x in _accumulate(graph, primitive, nodes)]
    return [np.moveaxis(array_of(totals, front.shape)[..., ::step], -1, axis)]


def _power(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays:
    base, exponent = (x.aval.dtype for x in equation.invars)
    if base != exponent:
        params = {"new_dtype": base, "weak_type": False, "sharding": None}
        convert = lambda x: graph.apply(lax.convert_element_type_p, [x], params, base)
        arrays = [arrays[0], np.vectorize(convert, otypes=[object])(arrays[1])]
    return _elementwise(graph, equation, arrays)


def _contraction(graph: Graph, equation: Any, arrays: _Arrays) -> _Arrays | None:
    # c[b, m, n] = sum over k of l[b, m, k] r[b, n, k]
    dtype = equation.outvars[0].aval.dtype
    if not all(array.size for array in arrays) or any(
        x.aval.dtype != dtype for x in equation.invars
    ):
        return None
    contracted, batched = equation.params["dimension_numbers"]
    left, right = map(_as_stack, arrays, batched, contracted)
    apply = lambda pair: graph.apply(lax.mul_p, pair, {}, dtype)
    terms = [
        [apply(pair) for pair in zip(left[b, m], right[b, n], strict=True)]
        for b, m, n in np.ndindex(left.shape[0], left.shape[1], right.shape[1])
    ]
    results = [_accumulate(graph, lax.add_p, x)[-1] for x in terms]
    return [array_of(results, equation.outvars[0].aval.shape)]


def _as_stack(nodes: np.ndarray, batch: Any, inner: Any) -> np.ndarray:
    """Returns an operand of a product with the axes `batch, free, inner`."""
    free = [axis for axis in range(nodes.ndim) if axis not in (*batch, *inner)]
    sizes = [math.prod(nodes.shape[axis] for axis in axes) for axes in (batch, free, inner)]
    return nodes.transpose(*batch, *free, *inner).reshape(sizes)


RULES: dict[str, Callable[[Graph, Any, _Arrays], _Arrays | None]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(MOVEMENTS, _movement),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(_SCANS, _scan),
    "argmax": find_extreme,
    "argmin": find_extreme,
    "dot_general": _contraction,
    "pow": _power,
    "sort": sort_arrays,
    "top_k": take_largest,
}
