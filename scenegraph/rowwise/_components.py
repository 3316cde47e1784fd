"""Functions of one row as expressions of its components, each an array over all rows.

A compiler for CPUs works best on long plain arrays, and `jax.vmap` gives it arrays of many short
vectors. Here every component of every vector becomes an array of its own.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import Literal

from .._typing import Array
from ._graph import Graph, Node


_ELEMENTWISE = frozenset(
    """abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp
    convert_element_type copy cos cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt
    integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not or pow rem
    round rsqrt select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor""".split()
)
_REDUCTIONS = {
    "reduce_sum": lax.add_p,
    "reduce_prod": lax.mul_p,
    "reduce_max": lax.max_p,
    "reduce_min": lax.min_p,
    "reduce_and": lax.and_p,
    "reduce_or": lax.or_p,
}
_RUNNING = {"cumsum": lax.add_p, "cumprod": lax.mul_p, "cummax": lax.max_p, "cummin": lax.min_p}
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat")


class Components:
    """An array that every row has, as an array of nodes.

    **Arguments:**

    - `nodes`: a numpy array of `Node`s.
    - `dtype`: of the numbers.
    """

    def __init__(self, nodes: np.ndarray, dtype: Any):
        self.nodes, self.dtype = nodes, dtype


class Reader:
    """Reads a jaxpr of one row as expressions of components.

    Values are `Components` where they depend on the row, and arrays where they do not.

    **Arguments:**

    - `rows`: how many rows there are.
    """

    def __init__(self, rows: int):
        self.graph = Graph(rows)
        self._split: dict[int, tuple[Any, Components]] = {}

    def rowed(self, array: Array) -> Components:
        """An array with a leading axis over rows.

        **Arguments:**

        - `array`: it.

        **Returns:**

        Its components.
        """
        shape = array.shape[1:]
        flat = lax.reshape(array, (array.shape[0], math.prod(shape)))
        nodes = [self.graph.given(x, rowed=True) for x in _columns(flat)]
        return _packed(nodes, shape, array.dtype)

    def components(self, value: Any, aval: Any) -> Components:
        """A value as components, also one that all rows share.

        **Arguments:**

        - `value`: components or an array.
        - `aval`: its shape and dtype.

        **Returns:**

        The components.
        """
        if isinstance(value, Components):
            return value
        if id(value) not in self._split:
            nodes = _packed(self._shared(value, aval), aval.shape, aval.dtype)
            self._split[id(value)] = value, nodes
        return self._split[id(value)][1]

    def _shared(self, value: Any, aval: Any) -> list[Node]:
        if not isinstance(value, Tracer):
            numbers = np.asarray(value, aval.dtype).reshape(-1)
            return [self.graph.constant(number, aval.dtype) for number in numbers]
        flat = lax.reshape(value, (math.prod(aval.shape),))
        items = [lax.index_in_dim(flat, i, 0, keepdims=False) for i in range(flat.size)]
        return [self.graph.given(item, rowed=False) for item in items]

    def read(self, jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Follows a jaxpr.

        **Arguments:**

        - `jaxpr`, `consts`: of one row.
        - `values`: of its inputs.

        **Returns:**

        The values of its outputs.
        """
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
        look_up = lambda x: x.val if isinstance(x, Literal) else known[x]
        for equation in jaxpr.eqns:
            operands = [look_up(x) for x in equation.invars]
            known.update(zip(equation.outvars, self._step(equation, operands), strict=True))
        return [look_up(x) for x in jaxpr.outvars]

    def _step(self, equation: Any, values: list[Any]) -> Sequence[Any]:
        name, params = equation.primitive.name, equation.params
        inner = next((params[key] for key in _INNER if key in params), None)
        if name in _CALLS:
            return self.read(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values)
        if not any(isinstance(value, Components) for value in values):
            return _outright(equation, values)
        if name == "map_rows":
            return self._inner_rows(equation, values)
        avals = [x.aval for x in equation.outvars]
        if not any(aval.size for aval in avals):
            return [_packed([], aval.shape, aval.dtype) for aval in avals]
        items = [self.components(v, x.aval) for v, x in zip(values, equation.invars, strict=True)]
        apart = self._apart(equation.primitive, params, items, avals)
        return self._together(equation, items) if apart is None else apart

    def _apart(
        self, primitive: Any, params: dict, items: list[Components], avals: list[Any]
    ) -> list[Components] | None:
        """An operation component by component; `None` for one that cannot be taken apart."""
        name, out, arrays = primitive.name, avals[0], [item.nodes for item in items]
        if name in _ELEMENTWISE:
            return [self._each(primitive, params, items, out)]
        moved = _MOVES[name](params, arrays, out) if name in _MOVES else None
        if moved is not None:
            return [Components(x, aval.dtype) for x, aval in zip(moved, avals, strict=True)]
        if not all(array.size for array in arrays):
            return None
        if name in _REDUCTIONS:
            return [self._reduce(_REDUCTIONS[name], arrays[0], params["axes"], out)]
        if name in _RUNNING and not params["reverse"]:
            return [self._running(_RUNNING[name], arrays[0], params["axis"], out)]
        if name == "dot_general":
            return [self._product(arrays, params["dimension_numbers"], out)]
        return None

    def _each(self, primitive: Any, params: dict, items: list[Components], out: Any) -> Components:
        nodes = [np.broadcast_to(item.nodes, out.shape).reshape(-1) for item in items]
        make = lambda *inputs: self.graph.apply(primitive, inputs, params, out.dtype)
        return _packed([make(*inputs) for inputs in zip(*nodes, strict=True)], out.shape, out.dtype)

    def _fold(self, primitive: Any, nodes: Any, dtype: Any) -> Node:
        total = nodes[0]
        for node in nodes[1:]:
            total = self.graph.apply(primitive, [total, node], {}, dtype)
        return total

    def _reduce(self, primitive: Any, nodes: np.ndarray, axes: Any, out: Any) -> Components:
        kept = [axis for axis in range(nodes.ndim) if axis not in axes]
        rows = nodes.transpose(*kept, *axes).reshape(math.prod(out.shape), -1)
        results = [self._fold(primitive, row, out.dtype) for row in rows]
        return _packed(results, out.shape, out.dtype)

    def _running(self, primitive: Any, nodes: np.ndarray, axis: int, out: Any) -> Components:
        rows = np.moveaxis(nodes, axis, -1).reshape(-1, nodes.shape[axis])
        results = [
            self._fold(primitive, row[: end + 1], out.dtype)
            for row in rows
            for end in range(len(row))
        ]
        shape = np.moveaxis(nodes, axis, -1).shape
        return Components(np.moveaxis(_packed(results, shape, None).nodes, -1, axis), out.dtype)

    def _product(self, arrays: list[np.ndarray], numbers: Any, out: Any) -> Components:
        contracted, batched = numbers
        left, right = (
            _as_stacks(array, batch, inner)
            for array, batch, inner in zip(arrays, batched, contracted, strict=True)
        )
        results = []
        for b, m, n in np.ndindex(left.shape[0], left.shape[1], right.shape[1]):
            pairs = zip(left[b, m], right[b, n], strict=True)
            terms = [self.graph.apply(lax.mul_p, pair, {}, out.dtype) for pair in pairs]
            results.append(self._fold(lax.add_p, terms, out.dtype))
        return _packed(results, out.shape, out.dtype)

    def _inner_rows(self, equation: Any, values: list[Any]) -> list[Any]:
        """A map over rows within a row."""
        jaxpr, rowed = equation.params["jaxpr"], equation.params["rowed"]
        items = [
            self.components(value, x.aval) if is_rowed else value
            for value, x, is_rowed in zip(values, equation.invars, rowed, strict=True)
        ]
        count = equation.invars[rowed.index(True)].aval.shape[0]
        results = []
        for i in range(count):
            pairs = zip(items, rowed, strict=True)
            row = [_pick(item, i) if is_rowed else item for item, is_rowed in pairs]
            results.append(self.read(jaxpr.jaxpr, jaxpr.consts, row))
        return [
            self._joined([result[i] for result in results], x.aval, is_summed)
            for i, (x, is_summed) in enumerate(
                zip(equation.outvars, equation.params["summed"], strict=True)
            )
        ]

    def _joined(self, values: list[Any], aval: Any, is_summed: bool) -> Components:
        one = jax.ShapeDtypeStruct(aval.shape if is_summed else aval.shape[1:], aval.dtype)
        nodes = np.stack([self.components(value, one).nodes for value in values])
        return (
            self._reduce(lax.add_p, nodes, (0,), aval)
            if is_summed
            else Components(nodes, aval.dtype)
        )

    def _together(self, equation: Any, items: list[Components]) -> list[Components]:
        """An operation that is not taken apart: all rows at once, then their components."""
        shapes = [item.nodes.shape for item in items]
        avals = [x.aval for x in equation.outvars]

        def make(*values: Array) -> list[Array]:
            arrays = [
                joined(part, shape, item.dtype, self.graph.rows)
                for part, shape, item in zip(_parts(values, shapes), shapes, items, strict=True)
            ]
            results = jax.vmap(lambda *x: equation.primitive.bind(*x, **equation.params))(*arrays)
            results = results if equation.primitive.multiple_results else [results]
            flat = [x.reshape(x.shape[0], math.prod(x.shape[1:])) for x in results]
            return [
                lax.index_in_dim(x, i, 1, keepdims=False) for x in flat for i in range(x.shape[1])
            ]

        dtypes = [aval.dtype for aval in avals for _ in range(math.prod(aval.shape))]
        inputs = [node for item in items for node in item.nodes.reshape(-1)]
        nodes = self.graph.combine(inputs, make, dtypes)
        parts = _parts(nodes, [aval.shape for aval in avals])
        return [
            _packed(part, aval.shape, aval.dtype) for part, aval in zip(parts, avals, strict=True)
        ]


def joined(values: Sequence[Array], shape: tuple[int, ...], dtype: Any, rows: int) -> Array:
    """Components as one array with a leading axis over rows.

    **Arguments:**

    - `values`: of every component, one number a row.
    - `shape`, `dtype`: of one row.
    - `rows`: how many there are.

    **Returns:**

    The array. It is put together by selection: XLA would compute what it concatenates one number
    at a time.
    """
    if not values:
        return jnp.zeros((rows, *shape), dtype)
    if not shape:
        return values[0]
    wide = [lax.broadcast_in_dim(value, (rows, len(values)), (0,)) for value in values]
    place = lax.broadcasted_iota(jnp.int32, (rows, len(values)), 1)
    total = wide[-1]
    for i in reversed(range(len(values) - 1)):
        total = lax.select(place == i, wide[i], total)
    return total.reshape(rows, *shape)


def _columns(array: Array) -> list[Array]:
    return [lax.index_in_dim(array, i, 1, keepdims=False) for i in range(array.shape[1])]


def _packed(nodes: Sequence[Node], shape: tuple[int, ...], dtype: Any) -> Components:
    array = np.empty(len(nodes), object)
    array[:] = nodes
    return Components(array.reshape(shape), dtype)


def _pick(item: Components, place: int) -> Components:
    nodes = np.empty(item.nodes.shape[1:], object)
    nodes[...] = item.nodes[place]
    return Components(nodes, item.dtype)


def _parts(values: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[Sequence[Any]]:
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=int)
    return [values[end - math.prod(shape) : end] for end, shape in zip(ends, shapes, strict=True)]


def _outright(equation: Any, values: list[Any]) -> Sequence[Any]:
    """An equation that has nothing to do with rows; one that is known beforehand is not traced."""
    arrays = [jnp.asarray(v, x.aval.dtype) for v, x in zip(values, equation.invars, strict=True)]
    bind = lambda: equation.primitive.bind(*arrays, **equation.params)
    if any(isinstance(value, Tracer) for value in values):
        results = bind()
    else:
        with jax.ensure_compile_time_eval():
            results = bind()
    return results if equation.primitive.multiple_results else [results]


def _as_stacks(nodes: np.ndarray, batch: Sequence[int], inner: Sequence[int]) -> np.ndarray:
    """Operands of a product as `batch, free, inner`."""
    free = [axis for axis in range(nodes.ndim) if axis not in (*batch, *inner)]
    sizes = [math.prod(nodes.shape[axis] for axis in axes) for axes in (batch, free, inner)]
    return nodes.transpose(*batch, *free, *inner).reshape(sizes)


def _broadcast(params: dict, arrays: list[np.ndarray], out: Any) -> list[np.ndarray]:
    shape = [1] * len(out.shape)
    for axis, size in zip(params["broadcast_dimensions"], arrays[0].shape, strict=True):
        shape[axis] = size
    return [np.broadcast_to(arrays[0].reshape(shape), out.shape)]


def _sliced(params: dict, arrays: list[np.ndarray], out: Any) -> list[np.ndarray]:
    del out
    steps = params["strides"] or (1,) * arrays[0].ndim
    ends = zip(params["start_indices"], params["limit_indices"], steps, strict=True)
    return [arrays[0][tuple(slice(*end) for end in ends)]]


def _split(params: dict, arrays: list[np.ndarray], out: Any) -> list[np.ndarray]:
    del out
    return np.split(arrays[0], np.cumsum(params["sizes"])[:-1], params["axis"])


def _unstacked(params: dict, arrays: list[np.ndarray], out: Any) -> list[np.ndarray]:
    front = np.moveaxis(arrays[0], params["axis"], 0)
    return [front[i : i + 1].reshape(out.shape) for i in range(front.shape[0])]


def _padded(params: dict, arrays: list[np.ndarray], out: Any) -> list[np.ndarray] | None:
    sides = params["padding_config"]
    if any(low < 0 or high < 0 or inner for low, high, inner in sides):
        return None
    whole = np.empty(out.shape, object)
    whole[...] = arrays[1].item()
    sizes = zip(sides, arrays[0].shape, strict=True)
    whole[tuple(slice(low, low + size) for (low, _, _), size in sizes)] = arrays[0]
    return [whole]


_MOVES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda params, arrays, out: [arrays[0].reshape(out.shape)],
    "squeeze": lambda params, arrays, out: [arrays[0].reshape(out.shape)],
    "expand_dims": lambda params, arrays, out: [arrays[0].reshape(out.shape)],
    "transpose": lambda params, arrays, out: [arrays[0].transpose(params["permutation"])],
    "rev": lambda params, arrays, out: [np.flip(arrays[0], params["dimensions"])],
    "concatenate": lambda params, arrays, out: [np.concatenate(arrays, params["dimension"])],
    "stack": lambda params, arrays, out: [np.stack(arrays, params["axis"])],
    "slice": _sliced,
    "split": _split,
    "unstack": _unstacked,
    "pad": _padded,
}
