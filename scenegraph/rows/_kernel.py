"""Kernels: graphs of the scalars of a row, compiled for this machine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._graph import every_node
from ._handler import write_handler
from ._operands import bytes_of, Element, has_type, NotNative, Operands, Result, ROW
from ._operations import is_native
from ._part import write_part
from ._table_sums import write_table_sum
from ._target import allowed_threads, checks_look_ups, has_halves, register


def compile_kernel(operands: Operands, results: Sequence[Result]) -> str:
    """Compiles the code of results; returns the name that XLA calls.

    **Errors:** `NotNative` if there is an operation without native code.
    """
    if not any(x.kind == ROW for x in operands.kinds):
        raise NotNative("no operands of rows")
    if any(x.reduced and _is_half(x.dtype) for x in results):
        raise NotNative("sums in half precision")
    for node in every_node([x for result in results for x in result.nodes]):
        if node.operation in _OTHERS or isinstance(node.value, Element):
            continue
        if not has_type(node.dtype) or (node.dtype == np.float16 and not has_halves()):
            raise NotNative(f"{node.operation} of {node.dtype}")
        kinds = [x.dtype for x in node.inputs]
        if not node.is_constant and not is_native(node.operation, kinds, node.params or {}):
            raise NotNative(node.operation)
    handler = write_handler(operands.kinds, results, allowed_threads())
    part = write_part(operands.kinds, results, checks=checks_look_ups())
    return register(f"{part}\n{handler}")


_OTHERS = "any_in_packet", "branch", "look_up", "loop", "result", "variable"


def compile_table_sum(places: Any, numbers: Any, stride: int, *, onto: bool = False) -> str:
    """Compiles the sum of rows of numbers into a table; returns the name that XLA calls.

    With `onto`, a table is given, to which they are added.

    **Errors:** `NotNative` if they are of half precision.
    """
    if _is_half(numbers):
        raise NotNative("sums in half precision")
    return register(write_table_sum(places, numbers, stride, allowed_threads(), onto=onto))


def _is_half(dtype: Any) -> bool:
    return bytes_of(dtype) == 2 and dtype.kind not in "iu"
