"""A loop over rows: any function of scalars, compiled as one kernel, in which all is computed once.

XLA makes a kernel of every fusion of operations, and computes what several of them need again, or
stores it. The reducer of a `reduce_window` with several operands is one function, whatever it
computes, and its windows are one loop, which LLVM vectorises. Where a window has one number, the
reducer is given the initial values, which here are numbers that all rows share, and one row:

    result_i = function(numbers, (column_1[i], column_2[i], ...))
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._typing import Array


# XLA has rules of its own for a single operand.
_FEWEST = 2


def loop_over_rows(
    function: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
    numbers: Sequence[Array],
    columns: Sequence[Array],
    rows: int,
    dtypes: Sequence[Any],
) -> list[Array]:
    """Applies a function of scalars to every row.

    `function(numbers, row)` returns scalars of the types `dtypes`, of which columns are made.
    """
    # An operand is at the same time a column, an initial value and a result, all of one type.
    types: list[Any] = [x.dtype for x in columns]
    results, shared = _places(types, dtypes), _places(types, [x.dtype for x in numbers])
    types += [types[0]] * (_FEWEST - len(types))
    idle = [jnp.zeros(rows, x) for x in types[len(columns) :]]
    given = dict(zip(shared, numbers, strict=True))
    start = [given.get(i, np.zeros((), x)) for i, x in enumerate(types)]

    def reducer(initial: Sequence[Any], row: Sequence[Any]) -> tuple:
        outputs = function([initial[i] for i in shared], row[: len(columns)])
        computed = dict(zip(results, outputs, strict=True))
        return tuple(computed.get(i, x) for i, x in enumerate(row))

    everything = lax.reduce_window(
        (*columns, *idle), tuple(start), reducer, (1,), (1,), padding="VALID"
    )
    return [everything[i] for i in results]


# What operands are for: a loop reads columns and numbers.
COLUMN, NUMBER, RESULT = range(3)


class OperandCount:
    """Counts the operands of a loop by the types of what it reads and computes."""

    def __init__(self):
        # Of each type, how many columns, numbers and results there are.
        self._counts: dict[Any, list[int]] = {}
        self._operands = 0

    def change(self, changes: Sequence[tuple[Any, int, int]]) -> int:
        """Adds to the counts of types and uses; returns the number of operands.

        Each is at the same time a column, a number and a result.
        """
        for dtype, use, more in changes:
            own = self._counts.setdefault(dtype, [0, 0, 0])
            before = max(own)
            own[use] += more
            self._operands += max(own) - before
        return max(self._operands, _FEWEST)


def _places(types: list[Any], wanted: Sequence[Any]) -> list[int]:
    """Returns a place of its own for every wanted type; types that are missing are appended."""
    free: dict[Any, list[int]] = {}
    for place in reversed(range(len(types))):
        free.setdefault(types[place], []).append(place)
    places = []
    for dtype in wanted:
        if not free.get(dtype):
            free[dtype] = [len(types)]
            types.append(dtype)
        places.append(free[dtype].pop())
    return places


@functools.cache
def has_row_loops() -> bool:
    """Returns whether this process has loops over rows; finds out once."""
    return computes_windows()


def computes_windows() -> bool:
    """Returns false where the compiler takes windows of one number for their results, as it may.

    XLA only promises to compute with the initial value where it makes a difference, and it makes
    none for a sum. Versions up to 0.11.2 of jaxlib compute always; another is found out here.
    """
    x, y, step = np.arange(4, dtype=np.float32), np.ones(4, np.float32), np.float32(2)
    call = lambda numbers, row: [numbers[0] * row[0] + row[1]]
    loop = lambda x, y, step: loop_over_rows(call, [step], [x, y], 4, [x.dtype])[0]
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # Programs are made here for machines elsewhere.
        return False
    with jax.default_device(device):
        [result] = jax.tree.leaves(jax.jit(loop).lower(x, y, step).compile()(x, y, step))
    return np.array_equal(result, step * x + y)
