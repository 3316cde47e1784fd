"""Values of a row while its jaxpr is interpreted."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._typing import Array
from ._graph import Graph, Node
from ._operands import NotNative


# Tables of no more numbers may be added to number by number.
_FEW_PLACES = 256


class NodeArray:
    """An array of one row as a numpy array of nodes; `source` is the operand that it is, if any."""

    def __init__(self, nodes: np.ndarray, dtype: Any, source: Any = None):
        self.nodes, self.dtype, self.source = nodes, dtype, source

    @property
    def varying(self) -> bool:
        """True if rows differ."""
        return any(node.varying for node in self.nodes.reshape(-1))


class GroupArray:
    """An array of every group of rows, which has a leading axis over groups."""

    def __init__(self, array: Any):
        self.array, self.dtype = array, array.dtype


class TableRow(NamedTuple):
    """A part of a table from a place of a row's own on, whose numbers are not loaded yet."""

    source: Any  # the table: an array, or a `GroupArray`
    place: Node  # in units of `stride` numbers
    stride: int
    shape: tuple[int, ...]
    dtype: Any


class Term(NamedTuple):
    """Numbers that a row adds to a table, from a place on; to nothing where the place is -1."""

    place: Node  # in units of `stride` numbers
    stride: int
    numbers: list[Node]


class _Later(NamedTuple):
    """An equation that is linear in a table; `values` has nothing where the table stands."""

    equation: Any
    values: list[Any]

    def __call__(self, table: Array) -> Array:
        """Applies it to the sum over rows."""
        pairs = zip(self.values, self.equation.invars, strict=True)
        operands = [
            table if x is None else jnp.asarray(_as_array(x), variable.aval.dtype)
            for x, variable in pairs
        ]
        return self.equation.primitive.bind(*operands, **self.equation.params)

    def of_nodes(self, scalariser: Any, table: NodeArray) -> NodeArray:
        """Applies it to a row's own table."""
        values = [table if x is None else x for x in self.values]
        [result] = scalariser.apply(self.equation, values)
        return result


class TablePart(NamedTuple):
    """Terms of a table, of its own shape and data type, and what is done with it then."""

    shape: tuple[int, ...]
    dtype: Any
    terms: list[Term]
    then: tuple[_Later, ...]


class TableSum:
    """The sum of what all rows add to a table of zeros, and linear functions of it."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, parts: Sequence[TablePart]):
        self.shape, self.dtype, self.parts = shape, dtype, list(parts)

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: Any, terms: list[Term]) -> "TableSum":
        """Returns a table of zeros to which terms are added."""
        return cls(shape, dtype, [TablePart(shape, dtype, terms, ())])

    @classmethod
    def from_nodes(cls, graph: Graph, array: NodeArray) -> "TableSum":
        """Returns what adds the numbers of an array that are not known to be zero."""
        nodes, kind = array.nodes.reshape(-1), np.dtype(np.int32)
        moving = [k for k, x in enumerate(nodes) if not (x.is_constant and x.value == 0)]
        if len(moving) > _FEW_PLACES:
            raise NotNative("a sum of a table and a large array of a row")
        terms = [Term(graph.constant(k, kind), 1, [nodes[k]]) for k in moving]
        return cls.of(array.nodes.shape, array.dtype, terms)

    @classmethod
    def deferred(cls, graph: Graph, equation: Any, values: list[Any]) -> "list[Any] | None":
        """Applies an equation to tables once all rows are added; `None` if it is not linear."""
        tables = [x for x in values if isinstance(x, TableSum)]
        if not tables:
            return None
        others = [x for x in values if not isinstance(x, TableSum)]
        name, aval = equation.primitive.name, equation.outvars[0].aval
        if name in ("add", "add_any"):
            others = [x for x in others if not is_zero(x)]
            if not all(isinstance(x, NodeArray) for x in others):
                return None
            tables += [cls.from_nodes(graph, x) for x in others]
            return [cls(aval.shape, aval.dtype, [part for x in tables for part in x.parts])]
        if len(tables) > 1 or name not in _LINEAR or len(equation.outvars) > 1:
            return None
        unknown = any(_as_array(x) is None for x in others)
        if unknown or (name == "div" and values[0] is not tables[0]):
            return None
        later = _Later(equation, [None if x is tables[0] else x for x in values])
        parts = [x._replace(then=(*x.then, later)) for x in tables[0].parts]
        return [cls(aval.shape, aval.dtype, parts)]

    def as_nodes(self, scalariser: Any) -> NodeArray:
        """Returns the row's own table, number by number."""
        total = add_terms(scalariser.graph, self.shape, self.dtype, [])
        for part in self.parts:
            if math.prod(part.shape) > _FEW_PLACES:
                raise NotNative("a large table of one row")
            nodes = add_terms(scalariser.graph, part.shape, part.dtype, part.terms)
            array = NodeArray(nodes, part.dtype)
            for later in part.then:
                array = later.of_nodes(scalariser, array)
            apply = lambda x, y: scalariser.graph.apply(lax.add_p, [x, y], {}, self.dtype)
            total = np.vectorize(apply, otypes=[object])(total, array.nodes)
        return NodeArray(total, self.dtype)


# Equations that are linear in their one operand that is a table, or in each of two.
_LINEAR = """broadcast_in_dim concatenate convert_element_type copy div dot_general expand_dims mul
    neg pad reduce_sum reshape rev slice squeeze transpose""".split()


def is_zero(value: Any) -> bool:
    """Returns true for numbers that are known, and all zero."""
    if isinstance(value, NodeArray):
        return all(x.is_constant and x.value == 0 for x in value.nodes.reshape(-1))
    if not isinstance(value, np.ndarray | np.generic | float | int):
        return False
    value = np.asarray(value)
    if value.ndim and value.size and not any(value.strides):
        # One number that was broadcast.
        value = value[(0,) * value.ndim]
    return not np.any(value)


def _as_array(value: Any) -> Any:
    """Returns what all rows share as an array for XLA, or `None` if it is not known as one."""
    if isinstance(value, GroupArray | TableRow):
        return None
    if not isinstance(value, NodeArray):
        return value
    if value.source is not None and not isinstance(value.source, GroupArray):
        return value.source
    nodes = value.nodes.reshape(-1)
    if all(x.is_constant for x in nodes):
        return np.array([x.value for x in nodes], value.dtype).reshape(value.nodes.shape)
    return None


def add_terms(graph: Graph, shape: tuple[int, ...], dtype: Any, terms: Sequence[Term]) -> Any:
    """Returns the nodes of a table to which terms are added."""
    nodes = np.empty(math.prod(shape), object)
    nodes[:] = [graph.constant(0, dtype)] * nodes.size
    for term in terms:
        rows = nodes.reshape(-1, term.stride)
        for i in range(len(rows)):
            row = graph.constant(i, term.place.dtype)
            here = graph.apply(lax.eq_p, [term.place, row], {}, np.dtype(bool))
            for k, number in enumerate(term.numbers):
                total = graph.apply(lax.add_p, [rows[i, k], number], {}, dtype)
                rows[i, k] = graph.apply(lax.select_n_p, [here, rows[i, k], total], {}, dtype)
    return nodes.reshape(shape)
