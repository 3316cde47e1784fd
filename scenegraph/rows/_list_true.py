"""The true entries of a mask as a list, in one pass: work of static shape that depends on data."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .._jax import HAS_PRIMITIVES
from .._typing import Array
from ._primitive import define_operation
from ._target import register


class TrueEntries(NamedTuple):
    """The places of the true entries of a mask, in order."""

    places: Array  # integers, `length`; -1 beyond the last
    ranks: Array  # `n`; of every entry its place in the list, -1 for those that are false
    total: Array  # how many there are, however long the list is


def list_true(mask: Array, length: int) -> TrueEntries:
    """Lists the places of the first true entries of a mask, `n`, as many as the list is long."""
    if HAS_PRIMITIVES:
        return TrueEntries(*list_true_p.bind(mask, length=length))
    return TrueEntries(*_list(mask, length=length))


def _list(mask: Array, *, length: int) -> tuple[Array, ...]:
    ends = jnp.cumsum(mask, dtype=jnp.int32)
    ranks = jnp.where(mask, ends - 1, -1)
    # What is false, or does not fit, is put beyond the end.
    slots = jnp.where(mask, ends - 1, length)
    numbers = jnp.arange(mask.shape[0], dtype=jnp.int32)
    places = jnp.full(length, -1, jnp.int32).at[slots].set(numbers, mode="drop")
    return places, ranks, jnp.sum(mask, dtype=jnp.int32)


# Offsets are those of `_handler`: operands are at 72 and results at 112; of each, its data is at 24
# and the lengths of its axes at 40.
_LIST = """
define ptr @kernel(ptr %frame) {
  %operands.at = getelementptr i8, ptr %frame, i64 72
  %operands = load ptr, ptr %operands.at
  %mask.of = load ptr, ptr %operands
  %mask.at = getelementptr i8, ptr %mask.of, i64 24
  %mask = load ptr, ptr %mask.at
  %axes.at = getelementptr i8, ptr %mask.of, i64 40
  %axes = load ptr, ptr %axes.at
  %n = load i64, ptr %axes
  %results.at = getelementptr i8, ptr %frame, i64 112
  %results = load ptr, ptr %results.at
  %places.of = load ptr, ptr %results
  %places.at = getelementptr i8, ptr %places.of, i64 24
  %places = load ptr, ptr %places.at
  %length.at = getelementptr i8, ptr %places.of, i64 40
  %lengths = load ptr, ptr %length.at
  %length = load i64, ptr %lengths
  %ranks.in = getelementptr ptr, ptr %results, i64 1
  %ranks.of = load ptr, ptr %ranks.in
  %ranks.at = getelementptr i8, ptr %ranks.of, i64 24
  %ranks = load ptr, ptr %ranks.at
  %count.in = getelementptr ptr, ptr %results, i64 2
  %count.of = load ptr, ptr %count.in
  %count.at = getelementptr i8, ptr %count.of, i64 24
  %count = load ptr, ptr %count.at
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %found = phi i64 [ 0, %0 ], [ %found.next, %next ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %test, label %rest
test:
  %flag.at = getelementptr i8, ptr %mask, i64 %i
  %flag = load i8, ptr %flag.at
  %is = icmp ne i8 %flag, 0
  %rank.at = getelementptr i32, ptr %ranks, i64 %i
  br i1 %is, label %true, label %false
true:
  %rank = trunc i64 %found to i32
  store i32 %rank, ptr %rank.at
  %fits = icmp slt i64 %found, %length
  br i1 %fits, label %put, label %true.end
put:
  %place.at = getelementptr i32, ptr %places, i64 %found
  %number = trunc i64 %i to i32
  store i32 %number, ptr %place.at
  br label %true.end
true.end:
  %found.more = add i64 %found, 1
  br label %next
false:
  store i32 -1, ptr %rank.at
  br label %next
next:
  %found.next = phi i64 [ %found.more, %true.end ], [ %found, %false ]
  %i.next = add i64 %i, 1
  br label %loop
rest:
  %total = trunc i64 %found to i32
  store i32 %total, ptr %count
  br label %fill
fill:
  %k = phi i64 [ %found, %rest ], [ %k.next, %none ]
  %left = icmp slt i64 %k, %length
  br i1 %left, label %none, label %end
none:
  %none.at = getelementptr i32, ptr %places, i64 %k
  store i32 -1, ptr %none.at
  %k.next = add i64 %k, 1
  br label %fill
end:
  ret ptr null
}
"""


def _shapes(mask: Any, *, length: int) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((length,), mask.shape, ())]


def _natively(mask: Array, *, length: int) -> list[Array]:
    return list(jax.ffi.ffi_call(register(_LIST), _shapes(mask, length=length))(mask))


def _abstract(mask: Any, *, length: int) -> list[Any]:
    shapes = _shapes(mask, length=length)
    return [mask.update(shape=x.shape, dtype=x.dtype) for x in shapes]


list_true_p: Any = None
if HAS_PRIMITIVES:
    list_true_p = define_operation(
        "list_true", _abstract, _list, _natively, multiple=True, static=("length",)
    )
