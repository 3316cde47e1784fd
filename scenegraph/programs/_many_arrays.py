"""Many arrays, stacked and taken apart some at a time: XLA compiles a millisecond for each."""

import collections
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import Literal
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


class ManyNumbers:
    """Numbers that are known, as arrays: the zeros of a gradient, of which there may be many."""

    def __init__(self, literals: Sequence[Literal]):
        values: list[Any] = [np.asarray(x.val, like(x.aval).dtype) for x in literals]
        # By their bytes: NaN is not equal to itself.
        self._numbers = [((x.tobytes(), x.dtype), x) for x in values]
        counts = collections.Counter(kind for kind, _ in self._numbers)
        # The arrays of a program are made twenty times as fast, each in its own memory.
        self._some = {
            kind: Compiled(_repeat(x), (), key=("repeat", kind))
            for kind, x in dict(self._numbers).items()
            if counts[kind] > _AT_ONCE
        }

    def programs(self) -> list[Compiled]:
        return list(self._some.values())

    def __call__(self) -> Iterator[Any]:
        ready: dict[Any, list[Any]] = {kind: [] for kind in self._some}
        for kind, value in self._numbers:
            if kind not in ready:
                yield jnp.asarray(value)
                continue
            ready[kind] = ready[kind] or list(self._some[kind]())
            yield ready[kind].pop()


def _repeat(value: np.ndarray) -> Any:
    """Returns a function that returns arrays of one number."""
    return lambda: [jnp.asarray(value) for _ in range(_AT_ONCE)]


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
