"""Many arrays of zeros, and others added to them in place: one operation, however many there are.

XLA compiles a kernel for each, and a gradient has as many as a scene has leaves.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import HAS_PRIMITIVES
from .._typing import Array
from ._handler import filled
from ._primitive import define_operation
from ._target import register


def add_each(totals: Sequence[Array], terms: Sequence[Array]) -> list[Array]:
    """Adds terms to as many totals of the same shapes and types. It has no derivatives."""
    results, places = list(totals), {}
    for i, x in enumerate(totals):
        places.setdefault(x.dtype, []).append(i)
    for some in places.values():
        operands = [*(totals[i] for i in some), *(terms[i] for i in some)]
        added = add_each_p.bind(*operands) if HAS_PRIMITIVES else _add(*operands)
        for i, x in zip(some, added, strict=True):
            results[i] = x
    return results


def _add(*operands: Array) -> list[Array]:
    half = len(operands) // 2
    return [x + y for x, y in zip(operands[:half], operands[half:], strict=True)]


def zeros_each(shapes: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    """Returns arrays of zeros of some shapes and types."""
    results: list[Any] = [jnp.zeros(x.shape, x.dtype) for x in shapes]
    sizes = [np.dtype(x.dtype).itemsize for x in shapes] if HAS_PRIMITIVES else []
    for size in set(sizes):
        some = [i for i, x in enumerate(sizes) if x == size]
        avals = tuple((shapes[i].shape, np.dtype(shapes[i].dtype)) for i in some)
        for i, x in zip(some, zeros_each_p.bind(avals=avals), strict=True):
            results[i] = x
    return results


def _zeros(*, avals: tuple) -> list[Array]:
    return [jnp.zeros(shape, dtype) for shape, dtype in avals]


# Offsets are those of `_handler`: operands are at 72, results at 112, and their number at 96; of
# each array, its data is at 24, the number of its axes at 32, and their lengths at 40.
_EACH = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define ptr @kernel(ptr %frame) {
  %operands.at = getelementptr i8, ptr %frame, i64 72
  %operands = load ptr, ptr %operands.at
  %count.at = getelementptr i8, ptr %frame, i64 96
  %count = load i64, ptr %count.at
  %results.at = getelementptr i8, ptr %frame, i64 112
  %results = load ptr, ptr %results.at
  br label %array
array:
  %i = phi i64 [ 0, %0 ], [ %i.next, %array.end ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %sizes, label %end
sizes:
  %one.in = getelementptr ptr, ptr %results, i64 %i
  %one = load ptr, ptr %one.in
  %one.at = getelementptr i8, ptr %one, i64 24
  %z = load ptr, ptr %one.at
  %rank.at = getelementptr i8, ptr %one, i64 32
  %rank = load i64, ptr %rank.at
  %axes.at = getelementptr i8, ptr %one, i64 40
  %axes = load ptr, ptr %axes.at
  br label %axis
axis:
  %a = phi i64 [ 0, %sizes ], [ %a.next, %axis.more ]
  %n = phi i64 [ 1, %sizes ], [ %n.next, %axis.more ]
  %a.more = icmp slt i64 %a, %rank
  br i1 %a.more, label %axis.more, label %numbers
axis.more:
  %length.at = getelementptr i64, ptr %axes, i64 %a
  %length = load i64, ptr %length.at
  %n.next = mul i64 %n, %length
  %a.next = add i64 %a, 1
  br label %axis
numbers:
<numbers>
array.end:
  %i.next = add i64 %i, 1
  br label %array
end:
  ret ptr null
}
"""
# What is done with the `%n` numbers at `%z` of result `%i`.
_ADD = """
  %first.in = getelementptr ptr, ptr %operands, i64 %i
  %first = load ptr, ptr %first.in
  %place = add i64 %count, %i
  %second.in = getelementptr ptr, ptr %operands, i64 %place
  %second = load ptr, ptr %second.in
  %first.at = getelementptr i8, ptr %first, i64 24
  %x = load ptr, ptr %first.at
  %second.at = getelementptr i8, ptr %second, i64 24
  %y = load ptr, ptr %second.at
  %rest = urem i64 %n, 8
  %whole = sub i64 %n, %rest
  br label %block
block:
  %k = phi i64 [ 0, %numbers ], [ %k.next, %block.add ]
  %k.more = icmp slt i64 %k, %whole
  br i1 %k.more, label %block.add, label %number
block.add:
  %x.k = getelementptr <kind>, ptr %x, i64 %k
  %y.k = getelementptr <kind>, ptr %y, i64 %k
  %z.k = getelementptr <kind>, ptr %z, i64 %k
  %x.v = load <8 x <kind>>, ptr %x.k, align <size>
  %y.v = load <8 x <kind>>, ptr %y.k, align <size>
  %z.v = <add> <8 x <kind>> %x.v, %y.v
  store <8 x <kind>> %z.v, ptr %z.k, align <size>
  %k.next = add i64 %k, 8
  br label %block
number:
  %j = phi i64 [ %whole, %block ], [ %j.next, %number.add ]
  %j.more = icmp slt i64 %j, %n
  br i1 %j.more, label %number.add, label %array.end
number.add:
  %x.j = getelementptr <kind>, ptr %x, i64 %j
  %y.j = getelementptr <kind>, ptr %y, i64 %j
  %z.j = getelementptr <kind>, ptr %z, i64 %j
  %x.s = load <kind>, ptr %x.j, align <size>
  %y.s = load <kind>, ptr %y.j, align <size>
  %z.s = <add> <kind> %x.s, %y.s
  store <kind> %z.s, ptr %z.j, align <size>
  %j.next = add i64 %j, 1
  br label %number
"""
_ZERO = """
  %bytes = mul i64 %n, <size>
  call void @llvm.memset.p0.i64(ptr %z, i8 0, i64 %bytes, i1 false)
  br label %array.end
"""
_KINDS = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}


def _natively(*operands: Array) -> list[Array]:
    half, dtype = len(operands) // 2, np.dtype(operands[0].dtype)
    if dtype.name not in _KINDS:
        return _add(*operands)
    values = {"numbers": _ADD, "kind": _KINDS[dtype.name], "size": dtype.itemsize}
    name = register(filled(_EACH, values | {"add": "fadd" if dtype.kind == "f" else "add"}))
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands[:half]]
    alias = {i: i for i in range(half)}
    return list(jax.ffi.ffi_call(name, out, input_output_aliases=alias)(*operands))


def _zeros_natively(*, avals: tuple) -> list[Array]:
    name = register(filled(_EACH, {"numbers": _ZERO, "size": avals[0][1].itemsize}))
    out = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in avals]
    return list(jax.ffi.ffi_call(name, out)())


def _shapes_of_zeros(*, avals: tuple) -> list[Any]:
    return [jax.typeof(np.broadcast_to(np.zeros((), dtype), shape)) for shape, dtype in avals]


def _shapes_of_sums(*avals: Any) -> list[Any]:
    return list(avals[: len(avals) // 2])


add_each_p: Any = None
zeros_each_p: Any = None
if HAS_PRIMITIVES:
    add_each_p = define_operation("add_each", _shapes_of_sums, _add, _natively, multiple=True)
    zeros_each_p = define_operation(
        "zeros_each", _shapes_of_zeros, _zeros, _zeros_natively, multiple=True, static=("avals",)
    )
