"""Scalarisation: the jaxpr of one row, equation by equation, as nodes of an expression graph."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from .._jax import Literal
from .._typing import Array
from ..rows import NotNative
from ._constants import evaluate
from ._graph import Graph, hashable, Node
from ._rules import array_of, reduce_nodes, RULES


# Constants of no more numbers are told apart by these.
_FEW_NUMBERS = 64
_BODIES = ("jaxpr", "branches", "cond_jaxpr", "body_jaxpr")
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat")


class NodeArray:
    """An array of one row as a numpy array of nodes."""

    def __init__(self, nodes: np.ndarray, dtype: Any):
        self.nodes, self.dtype = nodes, dtype

    @property
    def varying(self) -> bool:
        """True if rows differ."""
        return any(node.varying for node in self.nodes.reshape(-1))


class Scalariser:
    """An interpreter of jaxprs whose values are `NodeArray`s, or arrays where all rows agree.

    `split(array, varying)` takes an operand apart, by default into arrays; without `whole`, an
    operation without a rule is an error.
    """

    def __init__(self, rows: int, split: Callable | None = None, *, whole: bool = True):
        self.graph, self._rows = Graph(), rows
        self._split, self._whole = split or _split, whole
        self._uniform: dict[tuple[int, Any], tuple[Any, NodeArray]] = {}
        self._evaluated: dict[Any, tuple[list[Any], Sequence[Any]]] = {}

    def split_rows(self, array: Array) -> NodeArray:
        """Returns the scalars of an array with a leading axis over rows, as graph inputs."""
        nodes = [self.graph.input(x, varying=True) for x in self._split(array, True)]
        return NodeArray(array_of(nodes, array.shape[1:]), array.dtype)

    def as_nodes(self, value: Any, aval: Any) -> NodeArray:
        """Returns a value as nodes, also where it is one array for all rows."""
        if isinstance(value, NodeArray):
            return value
        key = id(value), aval.dtype
        if key not in self._uniform:
            nodes = array_of(self._uniform_nodes(value, aval), aval.shape)
            # The value is kept too: while it lives, no other has its identity.
            self._uniform[key] = value, NodeArray(nodes, aval.dtype)
        return self._uniform[key][1]

    def _uniform_nodes(self, value: Any, aval: Any) -> list[Node]:
        if not isinstance(value, Tracer) and not jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            return [self.graph.constant(x, aval.dtype) for x in np.asarray(value).reshape(-1)]
        return [self.graph.input(x, varying=False) for x in self._split(value, False)]

    def run(self, jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Returns the values of the outputs of a jaxpr of one row."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
        look_up = lambda x: x.val if isinstance(x, Literal) else known[x]
        for equation in jaxpr.eqns:
            operands = [look_up(x) for x in equation.invars]
            known.update(zip(equation.outvars, self._equation(equation, operands), strict=True))
        return [look_up(x) for x in jaxpr.outvars]

    def _equation(self, equation: Any, values: list[Any]) -> Sequence[Any]:
        name, params = equation.primitive.name, equation.params
        inner = next((params[key] for key in _INNER if key in params), None)
        if name in _CALLS:
            return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values)
        if name == "optimization_barrier" and not self._whole:
            return values
        if not any(isinstance(value, NodeArray) for value in values):
            return self._evaluate_once(equation, values)
        if name == "map_rows":
            return self._unroll(equation, values)
        results = self._scalarise(equation, values)
        if results is None and not self._whole:
            raise NotNative(name)
        return results or self._vectorise(equation, values)

    def _evaluate_once(self, equation: Any, values: list[Any]) -> Sequence[Any]:
        """Computes what is the same for all rows; what was computed before is found again.

        A derivative computes its function anew. From one and the same uniform number on, all that
        rows make of it is found again in the graph, too.
        """
        if any(key in equation.params for key in _BODIES):
            return _evaluate(equation, values)
        dtypes = tuple(x.aval.dtype for x in equation.invars)
        operands = tuple(map(_identity, values))
        key = equation.primitive, hashable(equation.params), dtypes, operands
        if key not in self._evaluated:
            # The operands are kept, too: while they live, no others have their identities.
            self._evaluated[key] = values, _evaluate(equation, values)
        return self._evaluated[key][1]

    def _scalarise(self, equation: Any, values: list[Any]) -> list[NodeArray] | None:
        """Computes an equation scalar by scalar; returns `None` if there is no rule."""
        avals = [x.aval for x in equation.outvars]
        if not any(aval.size for aval in avals):
            return [NodeArray(array_of([], aval.shape), aval.dtype) for aval in avals]
        rule = RULES.get(equation.primitive.name)
        if rule is None:
            return None
        pairs = zip(values, equation.invars, strict=True)
        arrays = [self.as_nodes(value, x.aval).nodes for value, x in pairs]
        results = rule(self.graph, equation, arrays)
        if results is None:
            return None
        return [NodeArray(x, aval.dtype) for x, aval in zip(results, avals, strict=True)]

    def _vectorise(self, equation: Any, values: list[Any]) -> list[NodeArray]:
        """Binds an equation without a rule under `jax.vmap`, and splits the results."""
        items = [value for value in values if isinstance(value, NodeArray)]
        varies = [item.varying for item in items]

        def bind(*arrays: Array) -> Sequence[Array]:
            split = iter(arrays)
            return _bind(equation, [next(split) if isinstance(v, NodeArray) else v for v in values])

        def emit(*scalars: Any) -> list[Array]:
            parts = _parts(scalars, [item.nodes.shape for item in items])
            arrays = [
                join(part, item.nodes.shape, item.dtype, self._rows if x else None)
                for part, item, x in zip(parts, items, varies, strict=True)
            ]
            if not any(varies):
                return [x for array in bind(*arrays) for x in array.reshape(-1)]
            axes = [0 if x else None for x in varies]
            results = jax.vmap(bind, axes, axis_size=self._rows)(*arrays)
            return [x for array in results for x in _columns(array)]

        avals = [x.aval for x in equation.outvars]
        dtypes = [aval.dtype for aval in avals for _ in range(aval.size)]
        inputs = [node for item in items for node in item.nodes.reshape(-1)]
        results = _parts(self.graph.call(inputs, emit, dtypes), [aval.shape for aval in avals])
        return [
            NodeArray(array_of(x, aval.shape), aval.dtype)
            for x, aval in zip(results, avals, strict=True)
        ]

    def _unroll(self, equation: Any, values: list[Any]) -> list[NodeArray]:
        """Unrolls a `map_rows` within a row."""
        jaxpr, varying = equation.params["jaxpr"], equation.params["varying"]
        items = [
            self.as_nodes(value, x.aval) if varies else value
            for value, x, varies in zip(values, equation.invars, varying, strict=True)
        ]
        results = []
        for i in range(equation.invars[varying.index(True)].aval.shape[0]):
            row = [
                NodeArray(np.asarray(item.nodes[i], object), item.dtype) if varies else item
                for item, varies in zip(items, varying, strict=True)
            ]
            results.append(self.run(jaxpr.jaxpr, jaxpr.consts, row))
        outputs = zip(zip(*results, strict=True), equation.outvars, strict=True)
        return [
            self._stack(rows, x.aval, is_reduced)
            for (rows, x), is_reduced in zip(outputs, equation.params["reduced"], strict=True)
        ]

    def _stack(self, rows: Sequence[Any], aval: Any, is_reduced: bool) -> NodeArray:
        one = jax.ShapeDtypeStruct(aval.shape if is_reduced else aval.shape[1:], aval.dtype)
        nodes = np.stack([self.as_nodes(row, one).nodes for row in rows])
        nodes = reduce_nodes(self.graph, lax.add_p, nodes, (0,)) if is_reduced else nodes
        return NodeArray(nodes, aval.dtype)


def join(values: Sequence[Array], shape: tuple[int, ...], dtype: Any, rows: int | None) -> Array:
    """Returns scalars as one array, with a leading axis over rows unless `rows` is `None`.

    Those of rows are joined by selection: XLA computes a concatenation one number at a time.
    """
    if not values:
        return jnp.zeros(shape if rows is None else (rows, *shape), dtype)
    if rows is None:
        return jnp.stack(values).reshape(shape)
    wide = [lax.broadcast_in_dim(x, (rows, len(values)), range(jnp.ndim(x))) for x in values]
    place = lax.broadcasted_iota(jnp.int32, (rows, len(values)), 1)
    # select(place = 0, x_0, select(place = 1, x_1, ...))
    total = wide[-1]
    for i in reversed(range(len(values) - 1)):
        total = lax.select(place == i, wide[i], total)
    return total.reshape(rows, *shape)


def _split(array: Array, varying: bool) -> list[Array]:
    """Returns the numbers of an operand, of a row or of all rows, as arrays."""
    return _columns(array) if varying else [x[0] for x in _columns(lax.expand_dims(array, (0,)))]


def _columns(array: Array) -> list[Array]:
    if array.ndim == 1:
        return [array]
    flat = lax.reshape(array, (array.shape[0], math.prod(array.shape[1:])))
    return [lax.index_in_dim(flat, i, 1, keepdims=False) for i in range(flat.shape[1])]


def _identity(value: Any) -> Any:
    """Returns what tells a value from others: its numbers if these are known and few."""
    if isinstance(value, Tracer | jax.Array) or np.size(value) > _FEW_NUMBERS:
        return id(value)
    return np.asarray(value).tobytes(), np.shape(value), str(np.asarray(value).dtype)


def _parts(values: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[Sequence[Any]]:
    sizes = [math.prod(shape) for shape in shapes]
    ends = np.cumsum(sizes, dtype=int)
    return [values[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _bind(equation: Any, values: Sequence[Any]) -> Sequence[Array]:
    arrays = [jnp.asarray(v, x.aval.dtype) for v, x in zip(values, equation.invars, strict=True)]
    results = equation.primitive.bind(*arrays, **equation.params)
    return results if equation.primitive.multiple_results else [results]


def _evaluate(equation: Any, values: list[Any]) -> Sequence[Any]:
    """Computes an equation that is the same for all rows: at compile time, if all is known then."""
    if any(isinstance(value, Tracer) for value in values):
        return _bind(equation, values)
    pairs = zip(values, equation.invars, strict=True)
    known = [v if isinstance(v, jax.Array) else np.asarray(v, x.aval.dtype) for v, x in pairs]
    avals = [x.aval for x in equation.outvars]
    return evaluate(equation.primitive, known, equation.params, avals)
