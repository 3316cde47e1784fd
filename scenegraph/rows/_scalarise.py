"""Scalarisation: the jaxpr of one row, equation by equation, as nodes of an expression graph."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from .._jax import Literal
from .._typing import Array
from ._constants import evaluate
from ._control import CONTROL
from ._graph import array_of, Graph, hashable, Node
from ._look_ups import LOOK_UPS
from ._operands import has_type, NotNative, Operands
from ._rules import reduce_nodes, RULES
from ._values import NodeArray, TableSum


# Constants of no more numbers are told apart by these.
_FEW_NUMBERS = 64
# Operands of more numbers that all rows share are not taken apart.
_MANY_NUMBERS = 256
_BODIES = ("jaxpr", "branches", "cond_jaxpr", "body_jaxpr")
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "checkpoint": "jaxpr",
    "remat": "jaxpr",
    "remat2": "jaxpr",
}


class Scalariser:
    """An interpreter of jaxprs whose values are `NodeArray`s, or arrays where all rows agree."""

    def __init__(self):
        self.graph, self.operands = Graph(), Operands()
        # How many loops the code that is interpreted stands in.
        self.depth = 0
        self._uniform: dict[tuple[int, Any], tuple[Any, NodeArray]] = {}
        self._evaluated: dict[Any, tuple[list[Any], Sequence[Any]]] = {}

    def rows_of(self, array: Array) -> NodeArray:
        """Returns the numbers of an operand that has a leading axis over rows."""
        shape = array.shape[1:]
        elements = self.operands.add(array, varying=True)
        nodes = [self.graph.input(x, varying=True) for x in elements]
        return NodeArray(array_of(nodes, shape), array.dtype)

    def shared(self, array: Array) -> Any:
        """Returns an operand that all rows share: its numbers, or as it is if these are many."""
        if array.size > _MANY_NUMBERS or not has_type(array.dtype):
            return array
        return self.as_nodes(array, jax.ShapeDtypeStruct(array.shape, array.dtype))

    def as_nodes(self, value: Any, aval: Any) -> NodeArray:
        """Returns a value as nodes, also where it is one array for all rows."""
        if isinstance(value, NodeArray):
            return value
        if isinstance(value, TableSum):
            return value.as_nodes(self)
        key = id(value), aval.dtype
        if key not in self._uniform:
            nodes = array_of(self._uniform_nodes(value, aval), aval.shape)
            # The value is kept too: while it lives, no other has its identity.
            self._uniform[key] = value, NodeArray(nodes, aval.dtype, value)
        return self._uniform[key][1]

    def _uniform_nodes(self, value: Any, aval: Any) -> list[Node]:
        if not isinstance(value, Tracer) and not jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            return [self.graph.constant(x, aval.dtype) for x in np.asarray(value).reshape(-1)]
        return [self.graph.input(x, varying=False) for x in self.operands.add(value, varying=False)]

    def run_closed(self, closed: Any, values: Sequence[Any]) -> list[Any]:
        """Returns the values of the outputs of a jaxpr with its constants."""
        return self.run(getattr(closed, "jaxpr", closed), getattr(closed, "consts", ()), values)

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
        if name in _CALLS and _CALLS[name] in params:
            return self.run_closed(params[_CALLS[name]], values)
        if name == "optimization_barrier":
            return values
        if not any(isinstance(value, NodeArray | TableSum) for value in values):
            return self._evaluate_once(equation, values)
        if name in _RULES_OF_VALUES:
            return _RULES_OF_VALUES[name](self, equation, values)
        results = TableSum.deferred(equation, values) or self._scalarise(equation, values)
        if results is None:
            raise NotNative(name)
        return results

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
            results.append(self.run_closed(jaxpr, row))
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


_RULES_OF_VALUES = {**CONTROL, **LOOK_UPS, "map_rows": Scalariser._unroll}


def _identity(value: Any) -> Any:
    """Returns what tells a value from others: its numbers if these are known and few."""
    if isinstance(value, Tracer | jax.Array) or np.size(value) > _FEW_NUMBERS:
        return id(value)
    return np.asarray(value).tobytes(), np.shape(value), str(np.asarray(value).dtype)


def bind(equation: Any, values: Sequence[Any]) -> Sequence[Array]:
    """Applies an equation to arrays."""
    arrays = [jnp.asarray(v, x.aval.dtype) for v, x in zip(values, equation.invars, strict=True)]
    results = equation.primitive.bind(*arrays, **equation.params)
    return results if equation.primitive.multiple_results else [results]


def _evaluate(equation: Any, values: list[Any]) -> Sequence[Any]:
    """Computes an equation that is the same for all rows: at compile time, if all is known then."""
    if any(isinstance(value, Tracer) for value in values):
        return bind(equation, values)
    pairs = zip(values, equation.invars, strict=True)
    known = [v if isinstance(v, jax.Array) else np.asarray(v, x.aval.dtype) for v, x in pairs]
    avals = [x.aval for x in equation.outvars]
    return evaluate(equation.primitive, known, equation.params, avals)
