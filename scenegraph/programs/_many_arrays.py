"""Many arrays, stacked and taken apart some at a time: XLA compiles a millisecond for each."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._compiled import Compiled, like


_NAMES = "stack", "unstack"
# Arrays that one program handles; it compiles in a twentieth of a second.
_AT_ONCE = 128


def has_many_arrays(equation: Any, fewest: float) -> bool:
    """Returns true if an equation stacks, or takes apart, more than so many arrays."""
    many = len(equation.invars) + len(equation.outvars) > fewest
    return many and equation.primitive.name in _NAMES


class ManyArrays:
    """A `stack` or an `unstack`, computed by programs that each handle some of the arrays."""

    def __init__(self, equation: Any):
        axis, few = equation.params["axis"], max(equation.invars, equation.outvars, key=len)
        self._stacks, self._count = equation.primitive.name == "stack", len(few)
        size = self._size = min(self._count, _AT_ONCE)
        # The last ones overlap with those before.
        self._starts = [*range(0, self._count - size, size), self._count - size]
        own = like(few[0].aval)
        key = own.shape, own.dtype, own.weak_type, axis
        if self._stacks:
            stack = lambda *rows: jnp.stack(rows, axis)
            self._some = Compiled(stack, [own] * size, weight=size, key=("stack", size, *key))
            block = jax.ShapeDtypeStruct(
                (*own.shape[:axis], size, *own.shape[axis:]), own.dtype, weak_type=own.weak_type
            )
            blocks = [block] * len(self._starts)
            rest = self._count - size * (len(blocks) - 1)
            self._join = Compiled(_join(axis, rest), blocks, key=("join", self._count, *key))
        else:
            operands = like(equation.invars[0].aval), jax.ShapeDtypeStruct((), jnp.int32)
            key = "unstack", self._count, *key
            self._some = Compiled(_take(axis, size), operands, weight=size, key=key)

    def programs(self) -> list[Compiled]:
        joined = self._stacks and len(self._starts) > 1
        return [self._some, self._join] if joined else [self._some]

    def __call__(self, *values: Any) -> Sequence[Any]:
        if self._stacks:
            blocks = [self._some(*values[i : i + self._size]) for i in self._starts]
            return [self._join(*blocks)] if len(blocks) > 1 else blocks
        parts: list[Any] = [None] * self._count
        for i in self._starts:
            parts[i : i + self._size] = self._some(values[0], np.int32(i))
        return parts


def _join(axis: int, rest: int) -> Any:
    """Returns a function that joins blocks, of the last of which only the rest is new."""

    def join(*blocks: Any) -> Any:
        *others, last = blocks
        first = last.shape[axis] - rest
        return jnp.concatenate([*others, jax.lax.slice_in_dim(last, first, None, axis=axis)], axis)

    return join


def _take(axis: int, size: int) -> Any:
    """Returns a function that takes so many arrays apart, from some place on."""

    def take(whole: Any, start: Any) -> Any:
        return jnp.unstack(jax.lax.dynamic_slice_in_dim(whole, start, size, axis), axis=axis)

    return take
