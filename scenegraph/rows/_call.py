"""Maps over rows as native kernels, called through XLA's foreign function interface."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._jax import ClosedJaxpr
from .._typing import Array
from ._graph import Node
from ._kernel import compile_kernel, compile_table_sum
from ._operands import Result
from ._scalarise import Scalariser
from ._values import NodeArray, TableSum, Term


def call_native(
    values: Sequence[Any], jaxpr: ClosedJaxpr, varying: Any, reduced: Any
) -> list[Array]:
    """Maps a jaxpr over rows by a native kernel.

    **Errors:** `NotNative` if it has operations without native code.
    """
    rows = next(x.shape[0] for x, varies in zip(values, varying, strict=True) if varies)
    scalariser = Scalariser()
    inputs = [
        scalariser.rows_of(value) if varies else scalariser.shared(value)
        for value, varies in zip(values, varying, strict=True)
    ]
    outputs = scalariser.run_closed(jaxpr, inputs)
    results = _Results(rows)
    finish = [
        results.table(value)
        if is_reduced and isinstance(value, TableSum)
        else results.array(scalariser.as_nodes(value, aval), is_reduced)
        for value, aval, is_reduced in zip(outputs, jaxpr.out_avals, reduced, strict=True)
    ]
    name = compile_kernel(scalariser.operands, results.kinds)
    arrays = jax.ffi.ffi_call(name, results.shapes)(*scalariser.operands.arrays)
    return [make(arrays) for make in finish]


class _Results:
    """The results of a kernel, and what is made of them."""

    def __init__(self, rows: int):
        self._rows = rows
        self.kinds: list[Result] = []
        self.shapes: list[jax.ShapeDtypeStruct] = []

    def array(self, value: NodeArray, is_reduced: bool) -> Any:
        """Adds an array; returns what takes it from the results."""
        shape = value.nodes.shape
        number = self._add(list(value.nodes.reshape(-1)), value.dtype, shape, is_reduced)
        return lambda arrays: arrays[number]

    def _add(self, nodes: list[Node], dtype: Any, shape: tuple[int, ...], is_reduced: bool) -> int:
        self.kinds.append(Result(dtype, nodes, is_reduced))
        shape = shape if is_reduced else (self._rows, *shape)
        self.shapes.append(jax.ShapeDtypeStruct(shape, dtype))
        return len(self.kinds) - 1

    def table(self, value: TableSum) -> Any:
        """Adds what rows add to a table; returns what adds it up."""
        parts = []
        for part in value.parts:
            for stride in sorted({term.stride for term in part.terms}):
                terms = [x for x in part.terms if x.stride == stride]
                parts.append((*self._terms(terms, stride, value.dtype), part))

        def add_all(arrays: list[Array]) -> Array:
            total = jnp.zeros(value.shape, value.dtype)
            for places, numbers, part in parts:
                table = sum_into_table(arrays[places], arrays[numbers], part.shape)
                for function in part.then:
                    table = function(table)
                total = table if len(parts) == 1 else total + table
            return total

        return add_all

    def _terms(self, terms: list[Term], stride: int, dtype: Any) -> tuple[int, int]:
        places = [x.place for x in terms]
        numbers = [x for term in terms for x in term.numbers]
        return (
            self._add(places, places[0].dtype, (len(terms),), False),
            self._add(numbers, dtype, (len(terms), stride), False),
        )


def sum_into_table(places: Array, numbers: Array, shape: tuple[int, ...]) -> Array:
    """Adds numbers to the rows of a table of zeros, in their order; to none where a place is -1."""
    stride, dtype = numbers.shape[-1], numbers.dtype
    name = compile_table_sum(places.dtype, dtype, stride)
    size = jnp.zeros(shape, dtype).size // stride
    out = jax.ShapeDtypeStruct((size, stride), dtype)
    return jax.ffi.ffi_call(name, out)(places.reshape(-1), numbers).reshape(shape)
