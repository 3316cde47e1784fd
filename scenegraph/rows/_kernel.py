"""Kernels: graphs of the scalars of a row, compiled for this machine."""

from collections.abc import Sequence
from typing import Any

from ._operands import Element, has_type, Operand, Result
from ._target import allowed_threads, register


class NotNative(Exception):
    """A function of one row has something for which there is no native code."""


def compile_kernel(
    order: Sequence[Any], operands: Sequence[Operand], results: Sequence[Result]
) -> str:
    """Compiles the nodes of a graph, each after its inputs; returns the name that XLA calls.

    **Errors:** `NotNative` if there is an operation without native code.
    """
    # These need llvmlite, which may be missing.
    from ._handler import write_handler
    from ._operations import is_native
    from ._part import write_part

    if not any(x.varying for x in operands):
        raise NotNative("no operands of rows")
    for node in order:
        if not has_type(node.dtype):
            raise NotNative(f"{node.operation} of {node.dtype}")
        if node.is_constant or isinstance(node.value, Element):
            continue
        if not is_native(node.operation, [x.dtype for x in node.inputs], node.params or {}):
            raise NotNative(node.operation)
    handler = write_handler(operands, results, allowed_threads())
    return register(f"{write_part(order, operands, results)}\n{handler}")
