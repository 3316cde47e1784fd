"""Maps over rows as native kernels, called through XLA's foreign function interface."""

import math
from collections.abc import Sequence
from typing import Any

import jax

from .._jax import ClosedJaxpr
from .._typing import Array
from ..rows import compile_kernel, Element, has_type, NotNative, Operand, Result
from ._graph import topological_order
from ._scalarise import Scalariser


# Operands of more numbers that all rows share are not taken apart.
_MANY_NUMBERS = 256


class _Operands:
    """The operands of a kernel, in the order in which they are first needed."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.kinds: list[Operand] = []

    def split(self, array: Any, varying: bool) -> list[Element]:
        """Adds an array to the operands; returns its numbers, of one row if it is `varying`."""
        if not has_type(array.dtype):
            raise NotNative(f"numbers of type {array.dtype}")
        size = math.prod(array.shape[1:] if varying else array.shape)
        self.arrays.append(array)
        self.kinds.append(Operand(array.dtype, varying, size))
        return [Element(len(self.arrays) - 1, place, array.dtype) for place in range(size)]


def call_native(
    values: Sequence[Any], jaxpr: ClosedJaxpr, varying: Any, reduced: Any
) -> list[Array]:
    """Maps a jaxpr over rows by a native kernel.

    **Errors:** `NotNative` if it has operations without native code.
    """
    rows = next(x.shape[0] for x, varies in zip(values, varying, strict=True) if varies)
    operands = _Operands()
    scalariser = Scalariser(rows, operands.split, whole=False)
    inputs = [
        _as_input(scalariser, value, varies) for value, varies in zip(values, varying, strict=True)
    ]
    results = scalariser.run(jaxpr.jaxpr, jaxpr.consts, inputs)
    pairs = zip(results, jaxpr.out_avals, strict=True)
    arrays = [scalariser.as_nodes(x, aval) for x, aval in pairs]
    order = topological_order([node for x in arrays for node in x.nodes.reshape(-1)])
    outputs = [
        Result(x.dtype, list(x.nodes.reshape(-1)), is_reduced)
        for x, is_reduced in zip(arrays, reduced, strict=True)
    ]
    name = compile_kernel(order, operands.kinds, outputs)
    shapes = [
        jax.ShapeDtypeStruct(x.shape if is_reduced else (rows, *x.shape), x.dtype)
        for x, is_reduced in zip(jaxpr.out_avals, reduced, strict=True)
    ]
    return list(jax.ffi.ffi_call(name, shapes)(*operands.arrays))


def _as_input(scalariser: Scalariser, value: Any, varies: bool) -> Any:
    if varies:
        return scalariser.split_rows(value)
    if value.size > _MANY_NUMBERS or not has_type(value.dtype):
        return value
    return scalariser.as_nodes(value, jax.ShapeDtypeStruct(value.shape, value.dtype))
