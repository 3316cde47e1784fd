"""Maps over rows as native kernels, called through XLA's foreign function interface."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import ClosedJaxpr
from .._typing import Array
from ._control import zeros_unless
from ._graph import every_node, Node
from ._kernel import compile_kernel, compile_table_sum
from ._operands import GROUP, LONG, Result, ROW, SHARED
from ._scalarise import Scalariser
from ._values import NodeArray, TableSum, Term


def call_native(
    values: Sequence[Any],
    jaxpr: ClosedJaxpr,
    varying: Any,
    reduced: Any,
    groups: int,
    guard: int | None,
) -> tuple[list[Array], int]:
    """Maps a jaxpr over rows by a native kernel; returns the number of its expressions, too.

    **Errors:** `NotNative` if it has operations without native code.
    """
    rows = values[varying.index(ROW)].shape[0]
    scalariser = Scalariser()
    inputs = [scalariser.operand(x, kind) for x, kind in zip(values, varying, strict=True)]
    outputs = scalariser.run_closed(jaxpr, inputs)
    if guard is not None:
        outputs = zeros_unless(scalariser, inputs[guard], outputs, jaxpr.out_avals)
    results = _Results(rows, groups)
    finish = [
        results.table(value, kind)
        if kind and isinstance(value, TableSum)
        else results.array(scalariser.as_nodes(value, aval), kind)
        for value, aval, kind in zip(outputs, jaxpr.out_avals, reduced, strict=True)
    ]
    nodes = every_node([node for x in results.kinds for node in x.nodes])
    _open_lengths(scalariser, results, nodes)
    scalariser.operands.leave_out_unused(nodes)
    name = compile_kernel(scalariser.operands, results.kinds)
    arrays = jax.ffi.ffi_call(name, results.shapes)(*scalariser.operands.arrays)
    return [make(arrays) for make in finish], len(nodes)


# Look-ups of windows of so many rows end as many rows before a table does.
_MOST_ROWS = 4


def _open_lengths(scalariser: Scalariser, results: "_Results", nodes: Sequence[Node]) -> None:
    """Makes operands of numbers that are lengths of tables: other lengths are the same kernel."""
    operands = scalariser.operands
    tables = {x.params["operand"] for x in nodes if x.operation == "look_up"}
    lengths = {operands.arrays[k].shape[int(operands.kinds[k].kind == GROUP)] for k in tables}
    lengths |= results.lengths
    numbers = {n - k for n in lengths if n > LONG for k in range(_MOST_ROWS + 1)}
    found: dict[Any, list[Node]] = {}
    for node in nodes:
        is_index = node.is_constant and node.dtype.kind in "iu" and node.dtype.itemsize >= 4
        if is_index and int(node.value) in numbers:
            found.setdefault(node.dtype, []).append(node)
    for dtype, same in found.items():
        same.sort(key=lambda node: int(node.value))
        elements = operands.add(np.array([node.value for node in same], dtype), SHARED)
        for node, element in zip(same, elements, strict=True):
            node.operation, node.value = "input", element


class _Results:
    """The results of a kernel, and what is made of them."""

    def __init__(self, rows: int, groups: int):
        self._rows, self._groups = rows, groups
        self.kinds: list[Result] = []
        self.shapes: list[jax.ShapeDtypeStruct] = []
        # Of the tables that rows add to.
        self.lengths: set[int] = set()

    def array(self, value: NodeArray, kind: int) -> Any:
        """Adds an array; returns what takes it from the results."""
        number = self._add(list(value.nodes.reshape(-1)), value.dtype, value.nodes.shape, kind)
        return lambda arrays: arrays[number]

    def _add(self, nodes: list[Node], dtype: Any, shape: tuple[int, ...], kind: int) -> int:
        self.kinds.append(Result(dtype, nodes, kind))
        front = {SHARED: (self._rows,), ROW: (), GROUP: (self._groups,)}[kind]
        self.shapes.append(jax.ShapeDtypeStruct((*front, *shape), dtype))
        return len(self.kinds) - 1

    def table(self, value: TableSum, kind: int) -> Any:
        """Adds what rows add to a table, or to one of their group; returns what adds it up."""
        parts = []
        for part in value.parts:
            self.lengths.update(part.shape[:1])
            for stride in sorted({term.stride for term in part.terms}):
                terms = [x for x in part.terms if x.stride == stride]
                parts.append((*self._terms(terms, stride, part.dtype), part))
        groups = self._groups if kind == GROUP else 1

        def add_all(arrays: list[Array]) -> Array:
            total = jnp.zeros((groups, *value.shape), value.dtype)
            for places, numbers, part in parts:
                table = sum_into_tables(arrays[places], arrays[numbers], groups, part.shape)
                for function in part.then:
                    table = jax.vmap(function)(table)
                total = table if len(parts) == 1 else total + table
            return total if kind == GROUP else total[0]

        return add_all

    def _terms(self, terms: list[Term], stride: int, dtype: Any) -> tuple[int, int]:
        places = [x.place for x in terms]
        numbers = [x for term in terms for x in term.numbers]
        return (
            self._add(places, places[0].dtype, (len(terms),), SHARED),
            self._add(numbers, dtype, (len(terms), stride), SHARED),
        )


def sum_into_tables(places: Array, numbers: Array, groups: int, shape: tuple[int, ...]) -> Array:
    """Adds numbers to the rows of tables of zeros, in their order; to none where a place is -1."""
    stride, dtype = numbers.shape[-1], numbers.dtype
    name = compile_table_sum(places.dtype, dtype, stride)
    rows = math.prod(shape) // stride
    if groups > 1:
        places = places.reshape(groups, -1)
        first = jnp.arange(groups, dtype=places.dtype)[:, None] * rows
        places = jnp.where(places < 0, places, places + first)
    out = jax.ShapeDtypeStruct((groups * rows, stride), dtype)
    table = jax.ffi.ffi_call(name, out)(places.reshape(-1), numbers)
    return table.reshape(groups, *shape)
