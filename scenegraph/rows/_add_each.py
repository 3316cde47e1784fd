"""Many arrays of zeros, and others added to them in place: one operation, however many there are.

XLA compiles a kernel for each, and a gradient has as many as a scene has leaves.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._jax import batching, HAS_PRIMITIVES, lower_when_compiled, Primitive
from .._typing import Array
from ._primitive import lower_here
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
_ADD = """
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
  %one.in = getelementptr ptr, ptr %operands, i64 %i
  %one = load ptr, ptr %one.in
  %second = add i64 %count, %i
  %other.in = getelementptr ptr, ptr %operands, i64 %second
  %other = load ptr, ptr %other.in
  %sum.in = getelementptr ptr, ptr %results, i64 %i
  %sum = load ptr, ptr %sum.in
  %one.at = getelementptr i8, ptr %one, i64 24
  %x = load ptr, ptr %one.at
  %other.at = getelementptr i8, ptr %other, i64 24
  %y = load ptr, ptr %other.at
  %sum.at = getelementptr i8, ptr %sum, i64 24
  %z = load ptr, ptr %sum.at
  %rank.at = getelementptr i8, ptr %one, i64 32
  %rank = load i64, ptr %rank.at
  %axes.at = getelementptr i8, ptr %one, i64 40
  %axes = load ptr, ptr %axes.at
  br label %axis
axis:
  %a = phi i64 [ 0, %sizes ], [ %a.next, %axis.more ]
  %n = phi i64 [ 1, %sizes ], [ %n.next, %axis.more ]
  %a.more = icmp slt i64 %a, %rank
  br i1 %a.more, label %axis.more, label %blocks
axis.more:
  %length.at = getelementptr i64, ptr %axes, i64 %a
  %length = load i64, ptr %length.at
  %n.next = mul i64 %n, %length
  %a.next = add i64 %a, 1
  br label %axis
blocks:
  %rest = urem i64 %n, 8
  %whole = sub i64 %n, %rest
  br label %block
block:
  %k = phi i64 [ 0, %blocks ], [ %k.next, %block.add ]
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
array.end:
  %i.next = add i64 %i, 1
  br label %array
end:
  ret ptr null
}
"""
_KINDS = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}


def _natively(*operands: Array) -> list[Array]:
    half, dtype = len(operands) // 2, np.dtype(operands[0].dtype)
    if dtype.name not in _KINDS:
        return _add(*operands)
    code = _ADD.replace("<kind>", _KINDS[dtype.name]).replace("<size>", str(dtype.itemsize))
    name = register(code.replace("<add>", "fadd" if dtype.kind == "f" else "add"))
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands[:half]]
    alias = {i: i for i in range(half)}
    return list(jax.ffi.ffi_call(name, out, input_output_aliases=alias)(*operands))


_ZERO = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define ptr @kernel(ptr %frame) {
  %count.at = getelementptr i8, ptr %frame, i64 96
  %count = load i64, ptr %count.at
  %results.at = getelementptr i8, ptr %frame, i64 112
  %results = load ptr, ptr %results.at
  br label %array
array:
  %i = phi i64 [ 0, %0 ], [ %i.next, %clear ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %sizes, label %end
sizes:
  %one.in = getelementptr ptr, ptr %results, i64 %i
  %one = load ptr, ptr %one.in
  %one.at = getelementptr i8, ptr %one, i64 24
  %x = load ptr, ptr %one.at
  %rank.at = getelementptr i8, ptr %one, i64 32
  %rank = load i64, ptr %rank.at
  %axes.at = getelementptr i8, ptr %one, i64 40
  %axes = load ptr, ptr %axes.at
  br label %axis
axis:
  %a = phi i64 [ 0, %sizes ], [ %a.next, %axis.more ]
  %n = phi i64 [ <size>, %sizes ], [ %n.next, %axis.more ]
  %a.more = icmp slt i64 %a, %rank
  br i1 %a.more, label %axis.more, label %clear
axis.more:
  %length.at = getelementptr i64, ptr %axes, i64 %a
  %length = load i64, ptr %length.at
  %n.next = mul i64 %n, %length
  %a.next = add i64 %a, 1
  br label %axis
clear:
  call void @llvm.memset.p0.i64(ptr %x, i8 0, i64 %n, i1 false)
  %i.next = add i64 %i, 1
  br label %array
end:
  ret ptr null
}
"""


def _zeros_natively(*, avals: tuple) -> list[Array]:
    name = register(_ZERO.replace("<size>", str(avals[0][1].itemsize)))
    out = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in avals]
    return list(jax.ffi.ffi_call(name, out)())


def _batch(values: Any, axes: Any) -> tuple[list[Array], list[int]]:
    results = jax.vmap(_add, tuple(axes))(*values)
    return results, [0] * len(results)


def _define() -> Primitive:
    primitive = Primitive("add_each")
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    primitive.def_impl(jax.jit(_add))
    primitive.def_abstract_eval(lambda *avals: list(avals[: len(avals) // 2]))
    batching.primitive_batchers[primitive] = _batch
    lower_here(primitive, _add, _natively)
    return primitive


def _define_zeros() -> Primitive:
    primitive = Primitive("zeros_each")
    primitive.multiple_results = True
    lower_when_compiled(primitive)
    primitive.def_impl(jax.jit(_zeros, static_argnames="avals"))
    zeros = lambda shape, dtype: np.broadcast_to(np.zeros((), dtype), shape)
    primitive.def_abstract_eval(lambda *, avals: [jax.typeof(zeros(*x)) for x in avals])
    lower_here(primitive, _zeros, _zeros_natively)
    return primitive


add_each_p: Any = _define() if HAS_PRIMITIVES else None
zeros_each_p: Any = _define_zeros() if HAS_PRIMITIVES else None
