"""Scalarisation: the jaxpr of one row, equation by equation, as nodes of an expression graph."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from .._jax import Literal
from .._typing import Array
from ._by_vmap import CALLS
from ._constants import evaluate
from ._control import CONTROL, zeros_unless
from ._graph import array_of, Graph, hashable, Node
from ._look_ups import load_row, LOOK_UPS
from ._operands import GROUP, has_type, NotNative, Operands, ROW, SHARED
from ._rules import reduce_nodes, RULES
from ._values import GroupArray, NodeArray, TableRow, TableSum


# Constants of no more numbers are told apart by these.
_FEW_NUMBERS = 64
# Operands of more numbers that all rows share are not taken apart.
_MANY_NUMBERS = 256
# Those of a group of rows that are looked up in are not either, but for what else is done to them.
_MOST_OF_A_GROUP = 4096
# Primitives that leave the order of numbers in memory as it is.
_RESHAPES = "expand_dims", "reshape", "squeeze"
_BODIES = ("jaxpr", "branches", "cond_jaxpr", "body_jaxpr")


class Scalariser:
    """An interpreter of jaxprs whose values are `NodeArray`s, or arrays where all rows agree."""

    def __init__(self):
        self.graph, self.operands = Graph(), Operands()
        # How many loops the code that is interpreted stands in.
        self.depth = 0
        self._uniform: dict[tuple[int, Any], tuple[Any, NodeArray]] = {}
        self._evaluated: dict[Any, tuple[list[Any], Sequence[Any]]] = {}

    def operand(self, array: Array, kind: int) -> Any:
        """Returns an operand: its numbers, or as it is if these are many and no row's own."""
        if kind == SHARED and (array.size > _MANY_NUMBERS or not has_type(array.dtype)):
            return array
        shape = array.shape[1:] if kind else array.shape
        if kind == GROUP and math.prod(shape) > _MANY_NUMBERS:
            return GroupArray(array)
        if kind != ROW:
            value = GroupArray(array) if kind == GROUP else array
            return self.as_nodes(value, jax.ShapeDtypeStruct(shape, array.dtype))
        nodes = [self.graph.input(x, varying=True) for x in self.operands.add(array, ROW)]
        return NodeArray(array_of(nodes, shape), array.dtype)

    def as_nodes(self, value: Any, aval: Any) -> NodeArray:
        """Returns a value as nodes, also where it is one array for all rows."""
        if isinstance(value, NodeArray):
            return value
        if isinstance(value, TableSum):
            return value.as_nodes(self)
        if isinstance(value, TableRow):
            return load_row(self, value)
        key = id(value), aval.dtype
        if key not in self._uniform:
            nodes = array_of(self._uniform_nodes(value, aval), aval.shape)
            # The value is kept too: while it lives, no other has its identity.
            self._uniform[key] = value, NodeArray(nodes, aval.dtype, value)
        return self._uniform[key][1]

    def _uniform_nodes(self, value: Any, aval: Any) -> list[Node]:
        if isinstance(value, GroupArray):
            if aval.size > _MOST_OF_A_GROUP:
                raise NotNative("a large array of a group of rows")
            return [
                self.graph.input(x, varying=False) for x in self.operands.add(value.array, GROUP)
            ]
        if not isinstance(value, Tracer) and not jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            return [self.graph.constant(x, aval.dtype) for x in np.asarray(value).reshape(-1)]
        return [self.graph.input(x, varying=False) for x in self.operands.add(value, SHARED)]

    def run_closed(self, closed: Any, values: Sequence[Any]) -> list[Any]:
        """Returns the values of the outputs of a jaxpr with its constants."""
        return self.run(getattr(closed, "jaxpr", closed), getattr(closed, "consts", ()), values)

    def run(self, jaxpr: Any, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Returns the values of the outputs of a jaxpr of one row."""
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *values], strict=True))
        look_up = lambda x: x.val if isinstance(x, Literal) else known[x]
        for equation in jaxpr.eqns:
            operands = [look_up(x) for x in equation.invars]
            known.update(zip(equation.outvars, self.apply(equation, operands), strict=True))
        return [look_up(x) for x in jaxpr.outvars]

    def apply(self, equation: Any, values: list[Any]) -> Sequence[Any]:
        """Returns the values of the results of an equation."""
        name, params = equation.primitive.name, equation.params
        if name in CALLS and CALLS[name] in params:
            return self.run_closed(params[CALLS[name]], values)
        if name == "optimization_barrier":
            return values
        if name in _RESHAPES and isinstance(values[0], TableRow):
            return [values[0]._replace(shape=equation.outvars[0].aval.shape)]
        if not any(isinstance(value, NodeArray | TableRow | TableSum) for value in values):
            if any(isinstance(value, GroupArray) for value in values):
                return _evaluate_groups(equation, values)
            return self._evaluate_once(equation, values)
        if name in _RULES_OF_VALUES:
            return _RULES_OF_VALUES[name](self, equation, values)
        results = TableSum.deferred(self.graph, equation, values)
        results = results or self._scalarise(equation, values)
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
        params = equation.params
        kinds, groups = params["varying"], params["groups"]
        operands = list(zip(values, equation.invars, kinds, strict=True))
        items = [self.as_nodes(x, variable.aval) if kind else x for x, variable, kind in operands]
        rows = equation.invars[kinds.index(ROW)].aval.shape[0]
        results = []
        for i in range(rows):
            places = {ROW: i, GROUP: i * groups // rows}
            row = [
                NodeArray(np.asarray(x.nodes[places[kind]], object), x.dtype) if kind else x
                for x, kind in zip(items, kinds, strict=True)
            ]
            outputs, avals = self.run_closed(params["jaxpr"], row), params["jaxpr"].out_avals
            if params["guard"] is not None:
                outputs = zeros_unless(self, row[params["guard"]], outputs, avals)
            results.append(outputs)
        outputs = zip(zip(*results, strict=True), params["jaxpr"].out_avals, strict=True)
        return [
            self._stack(values, aval, kind, groups)
            for (values, aval), kind in zip(outputs, params["reduced"], strict=True)
        ]

    def _stack(self, rows: Sequence[Any], aval: Any, kind: int, groups: int) -> NodeArray:
        """Joins the results of rows, or adds them."""
        nodes = np.stack([self.as_nodes(row, aval).nodes for row in rows])
        if kind == GROUP:
            nodes = nodes.reshape(groups, -1, *nodes.shape[1:])
        if kind != SHARED:
            nodes = reduce_nodes(self.graph, lax.add_p, nodes, (0 if kind == ROW else 1,))
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


def _evaluate_groups(equation: Any, values: list[Any]) -> list[GroupArray]:
    """Computes an equation for every group of rows."""
    arrays = [x.array if isinstance(x, GroupArray) else x for x in values]
    axes = [0 if isinstance(x, GroupArray) else None for x in values]
    return list(map(GroupArray, jax.vmap(lambda *x: bind(equation, x), axes)(*arrays)))


def _evaluate(equation: Any, values: list[Any]) -> Sequence[Any]:
    """Computes an equation that is the same for all rows: at compile time, if all is known then."""
    if any(isinstance(value, Tracer) for value in values):
        return bind(equation, values)
    pairs = zip(values, equation.invars, strict=True)
    known = [v if isinstance(v, jax.Array) else np.asarray(v, x.aval.dtype) for v, x in pairs]
    avals = [x.aval for x in equation.outvars]
    return evaluate(equation.primitive, known, equation.params, avals)
