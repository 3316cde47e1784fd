"""Operands, results and numbers of a kernel."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


# Numbers of a vector, and rows of a range.
WIDTH, RANGE = 8, 1024
_NATIVE = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


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
    """An operand: the numbers of a row, or of all of it if it is the same for all rows."""

    dtype: Any
    varying: bool
    size: int


class Result(NamedTuple):
    """A result: its nodes, which are summed over rows if it is `reduced`."""

    dtype: Any
    nodes: Sequence[Any]
    reduced: bool
