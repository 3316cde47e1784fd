"""Numbers added to rows of a table, in place: `table.at[places].add(numbers)`, by all cores."""

from typing import Any

import jax

from .._jax import HAS_PRIMITIVES
from .._typing import Array
from ._kernel import compile_table_sum
from ._operands import NotNative
from ._primitive import define_operation


def add_rows(table: Array, places: Array, numbers: Array) -> Array:
    """Adds rows of numbers to those of a table, in their order; to none where a place is -1.

    There are as many places, integers, as rows of numbers. It has no derivatives.
    """
    return (
        add_rows_p.bind(table, places, numbers) if HAS_PRIMITIVES else _add(table, places, numbers)
    )


def _add(table: Array, places: Array, numbers: Array) -> Array:
    # Beyond the last row, nothing is added.
    places = jax.numpy.where(places < 0, table.shape[0], places)
    return table.at[places].add(numbers, mode="drop")


def _natively(table: Array, places: Array, numbers: Array) -> Array:
    rows = table.reshape(table.shape[0], -1)
    try:
        name = compile_table_sum(places.dtype, table.dtype, rows.shape[1], onto=True)
    except NotNative:
        return _add(table, places, numbers)
    out = jax.ShapeDtypeStruct(rows.shape, rows.dtype)
    call = jax.ffi.ffi_call(name, out, input_output_aliases={2: 0})
    return call(places, numbers.reshape(places.shape[0], -1), rows).reshape(table.shape)


add_rows_p: Any = None
if HAS_PRIMITIVES:
    add_rows_p = define_operation(
        "add_rows", lambda table, *_: table, _add, _natively, multiple=False
    )
