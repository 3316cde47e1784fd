"""Operands, results and numbers of a kernel."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


# Kinds of operands: the same for all rows, one for every row, and one for every group of rows. What
# is said of results by the same numbers: one for every row, and sums over all rows or every group.
SHARED, ROW, GROUP = 0, 1, 2
# Numbers of a vector, and rows of a range.
WIDTH, RANGE = 8, 1024
# Lengths of shorter tables are not told apart from other small numbers.
LONG = 64
_NATIVE = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32
    float64""".split()


class NotNative(Exception):
    """A function of one row has something for which there is no native code."""


def has_type(dtype: Any) -> bool:
    """Returns true for data types that are computed natively."""
    return getattr(dtype, "name", None) in _NATIVE


def bytes_of(dtype: Any) -> int:
    """Returns how many bytes a number takes in memory."""
    return np.dtype(dtype).itemsize


class Element(NamedTuple):
    """A number of an operand: the value of an input of the graph."""

    operand: int
    place: int
    dtype: Any


class Operand(NamedTuple):
    """An operand: its kind, and how many numbers it has of a row, of a group or of all rows.

    A `long` table of a group has as many numbers times its length, which comes from the call.
    """

    dtype: Any
    kind: int
    size: int
    long: bool = False


class Result(NamedTuple):
    """A result: its nodes, and over which rows they are summed, if over any."""

    dtype: Any
    nodes: Sequence[Any]
    reduced: int


class Operands:
    """The operands of a kernel, in the order in which they are first needed."""

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.kinds: list[Operand] = []
        self._tables: dict[int, int] = {}

    def add(self, array: Any, kind: int) -> list[Element]:
        """Adds an array; returns its numbers: of one row, of one group, or of all rows."""
        number = self._add(array, kind)
        if kind != ROW:
            self._tables[id(array)] = number
        count = math.prod(array.shape[1:] if kind else array.shape)
        return [Element(number, place, array.dtype) for place in range(count)]

    def table(self, array: Any, kind: int) -> int:
        """Returns the number of an operand that is looked up in; adds it if it is new."""
        # Arrays are kept, so that while a number is known, no other array has its identity.
        if id(array) not in self._tables:
            self._tables[id(array)] = self._add(array, kind)
        return self._tables[id(array)]

    def leave_out_unused(self, nodes: Sequence[Any]) -> None:
        """Leaves out operands that no node reads, but for the first of rows, which counts them.

        The others are put in the order in which nodes read them: which tables are small enough to
        be taken apart makes no other kernel.
        """
        read = lambda x: x.value.operand if isinstance(x.value, Element) else x.params["operand"]
        reading = [x for x in nodes if isinstance(x.value, Element) or x.operation == "look_up"]
        rows = [k for k, operand in enumerate(self.kinds) if operand.kind == ROW]
        order = list(dict.fromkeys([*map(read, reading), *rows[:1]]))
        number = {old: new for new, old in enumerate(order)}
        for node in reading:
            if isinstance(node.value, Element):
                node.value = node.value._replace(operand=number[node.value.operand])
            else:
                node.params = node.params | {"operand": number[node.params["operand"]]}
        self.arrays = [self.arrays[k] for k in order]
        self.kinds = [self.kinds[k] for k in order]

    def _add(self, array: Any, kind: int) -> int:
        if not has_type(array.dtype):
            raise NotNative(f"numbers of type {array.dtype}")
        long = kind == GROUP and array.ndim > 1 and array.shape[1] > LONG
        size = math.prod(array.shape[1 + long :] if kind else array.shape)
        self.arrays.append(array)
        self.kinds.append(Operand(array.dtype, kind, size, long))
        return len(self.arrays) - 1
