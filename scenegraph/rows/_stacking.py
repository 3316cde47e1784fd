"""Many arrays of one shape as one, and back: one operation, whatever their number.

XLA compiles a kernel for each of a thousand arrays that are stacked, and for each of a thousand
slices: 40 s for the gradient of a thousand nodes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .._jax import ad, batching, HAS_PRIMITIVES, lower_when_compiled, Primitive
from .._typing import Array
from ._operands import bytes_of
from ._primitive import lower_here
from ._target import register


def stack_alike(arrays: Sequence[Array]) -> Array:
    """Stacks arrays of one shape and type along a new first axis."""
    return stack_p.bind(*arrays) if HAS_PRIMITIVES else jnp.stack(arrays)


# Offsets are those of `_handler`: numbers of operands and of results are at 56 and 96.
_COPIES = """
declare ptr @memcpy(ptr, ptr, i64)

define ptr @kernel(ptr %frame) {
  %many.at = getelementptr i8, ptr %frame, i64 <many>
  %many = load ptr, ptr %many.at
  %count.at = getelementptr i8, ptr %frame, i64 <count>
  %count = load i64, ptr %count.at
  %one.at = getelementptr i8, ptr %frame, i64 <one>
  %ones = load ptr, ptr %one.at
  %whole = load ptr, ptr %ones
  %whole.data.at = getelementptr i8, ptr %whole, i64 24
  %whole.data = load ptr, ptr %whole.data.at
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %copy ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %copy, label %end
copy:
  %own.at = getelementptr ptr, ptr %many, i64 %i
  %own = load ptr, ptr %own.at
  %own.data.at = getelementptr i8, ptr %own, i64 24
  %own.data = load ptr, ptr %own.data.at
  %offset = mul i64 %i, <bytes>
  %part = getelementptr i8, ptr %whole.data, i64 %offset
  %copied = call ptr @memcpy(ptr %<to>, ptr %<from>, i64 <bytes>)
  %next = add i64 %i, 1
  br label %loop
end:
  ret ptr null
}
"""


def _code(size: int, *, stacks: bool) -> str:
    """Returns the code that copies arrays of so many bytes into one, or one into these."""
    values = {"many": 72, "count": 56, "one": 112, "to": "part", "from": "own.data"}
    if not stacks:
        values = {"many": 112, "count": 96, "one": 72, "to": "own.data", "from": "part"}
    code = _COPIES.replace("<bytes>", str(size))
    for name, value in values.items():
        code = code.replace(f"<{name}>", str(value))
    return code


def _stack(*arrays: Array) -> Array:
    return jnp.stack(arrays)


def _unstack(whole: Array, *, count: int) -> list[Array]:
    del count
    return list(jnp.unstack(whole))


def _native_stack(*arrays: Array) -> Array:
    name = register(_code(arrays[0].size * bytes_of(arrays[0].dtype), stacks=True))
    out = jax.ShapeDtypeStruct((len(arrays), *arrays[0].shape), arrays[0].dtype)
    return jax.ffi.ffi_call(name, out)(*arrays)


def _native_unstack(whole: Array, *, count: int) -> list[Array]:
    name = register(_code(whole.size // count * bytes_of(whole.dtype), stacks=False))
    out = [jax.ShapeDtypeStruct(whole.shape[1:], whole.dtype)] * count
    return list(jax.ffi.ffi_call(name, out)(whole))


def _define(name: str, multiple: bool, plain: Callable, native: Callable) -> Primitive:
    primitive = Primitive(name)
    primitive.multiple_results = multiple
    lower_when_compiled(primitive)
    primitive.def_impl(jax.jit(plain, static_argnames="count" if multiple else ()))
    lower_here(primitive, plain, native)
    return primitive


def _without_zeros(values: Sequence[Any]) -> list[Array]:
    zeros = lambda aval: jnp.zeros(aval.shape, aval.dtype)
    return [zeros(x.aval) if isinstance(x, ad.Zero) else x for x in values]


def _stack_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    whole = stack_p.bind(*primals)
    if all(isinstance(x, ad.Zero) for x in tangents):
        return whole, ad.Zero(jax.typeof(whole).to_tangent_aval())
    return whole, stack_p.bind(*_without_zeros(tangents))


def _stack_transpose(cotangent: Any, *arrays: Any) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in arrays]
    parts = unstack_p.bind(cotangent, count=len(arrays))
    return [
        part if ad.is_undefined_primal(x) else None for x, part in zip(arrays, parts, strict=True)
    ]


def _unstack_jvp(primals: Any, tangents: Any, *, count: int) -> tuple[Any, Any]:
    parts = unstack_p.bind(primals[0], count=count)
    if isinstance(tangents[0], ad.Zero):
        return parts, [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in parts]
    return parts, unstack_p.bind(tangents[0], count=count)


def _unstack_transpose(cotangents: Any, whole: Any, *, count: int) -> list[Any]:
    del count
    if all(isinstance(x, ad.Zero) for x in cotangents):
        return [ad.Zero(whole.aval)]
    return [stack_p.bind(*_without_zeros(cotangents))]


def _stack_batch(arrays: Any, axes: Any) -> tuple[Any, int]:
    return jax.vmap(_stack, tuple(axes))(*arrays), 0


def _unstack_batch(arrays: Any, axes: Any, *, count: int) -> tuple[Any, list[int]]:
    parts = jax.vmap(lambda whole: _unstack(whole, count=count), axes[0])(arrays[0])
    return parts, [0] * count


if HAS_PRIMITIVES:
    stack_p = _define("stack_alike", False, _stack, _native_stack)
    stack_p.def_abstract_eval(lambda *avals: avals[0].update(shape=(len(avals), *avals[0].shape)))
    ad.primitive_jvps[stack_p] = _stack_jvp
    ad.primitive_transposes[stack_p] = _stack_transpose
    batching.primitive_batchers[stack_p] = _stack_batch
    unstack_p = _define("unstack_alike", True, _unstack, _native_unstack)
    unstack_p.def_abstract_eval(lambda aval, *, count: [aval.update(shape=aval.shape[1:])] * count)
    ad.primitive_jvps[unstack_p] = _unstack_jvp
    ad.primitive_transposes[unstack_p] = _unstack_transpose
    batching.primitive_batchers[unstack_p] = _unstack_batch
