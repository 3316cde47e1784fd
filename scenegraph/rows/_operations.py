"""LLVM code of the elementwise primitives of JAX, for one scalar or one vector of rows."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _assembly as ir
from ._mathematics import (
    constant,
    declared,
    element_of,
    FLAGS,
    FUNCTIONS,
    integers,
    intrinsic,
    LIBRARY,
    Number,
    same_shape,
    to_integer,
)
from ._wide import FUNCTIONS_WIDE


I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
FLOAT, DOUBLE = ir.FLOAT, ir.DOUBLE
_HALVES = "float16", "bfloat16"
_TYPES = {
    # Numbers of half precision are computed with in single precision.
    "float16": FLOAT,
    "bfloat16": FLOAT,
    "bool": I1,
    "int8": I8,
    "uint8": I8,
    "int16": ir.IntType(16),
    "uint16": ir.IntType(16),
    "int32": I32,
    "uint32": I32,
    "int64": I64,
    "uint64": I64,
    "float32": FLOAT,
    "float64": DOUBLE,
}


@functools.cache
def element_type(dtype: Any) -> Any:
    """Returns the LLVM type of a number in a register."""
    return _TYPES[np.dtype(dtype).name]


@functools.cache
def memory_type(dtype: Any) -> Any:
    """Returns the LLVM type of a number in memory."""
    if np.dtype(dtype).name in _HALVES:
        return ir.IntType(16)
    return I8 if np.dtype(dtype) == np.bool_ else element_type(dtype)


def as_register(b: Any, value: Any, dtype: Any) -> Any:
    """Returns what was loaded as it is computed with."""
    if dtype == np.bool_:
        return b.trunc(value, same_shape(value.type, I1))
    single = same_shape(value.type, FLOAT)
    if dtype.name == "float16":
        return b.fpext(b.bitcast(value, same_shape(value.type, ir.HALF)), single)
    if dtype.name == "bfloat16":
        wide = same_shape(value.type, I32)
        return b.bitcast(b.shl(b.zext(value, wide), constant(wide, 16)), single)
    return value


def as_memory(b: Any, value: Any, dtype: Any) -> Any:
    """Returns what was computed as it is stored."""
    if dtype == np.bool_:
        return b.zext(value, same_shape(value.type, I8))
    words = same_shape(value.type, ir.IntType(16))
    if dtype.name == "float16":
        return b.bitcast(b.fptrunc(value, same_shape(value.type, ir.HALF)), words)
    if dtype.name == "bfloat16":
        # To the nearest of the upper 16 bits, to an even one of two; NaN stays NaN.
        wide = same_shape(value.type, I32)
        bits = b.bitcast(value, wide)
        odd = b.and_(b.lshr(bits, constant(wide, 16)), constant(wide, 1))
        rounded = b.add(b.add(bits, odd), constant(wide, 0x7FFF))
        nan = b.fcmp_unordered("uno", value, value)
        rounded = b.select(nan, constant(wide, 0x7FC00000), rounded)
        return b.trunc(b.lshr(rounded, constant(wide, 16)), words)
    return value


@functools.cache
def is_floating(dtype: Any) -> bool:
    """Returns true for floating-point numbers."""
    return np.dtype(dtype).kind == "f" or np.dtype(dtype).name in _HALVES


class Operation:
    """An equation on scalars: data types of its operands and its result, and its parameters."""

    def __init__(self, builder: Any, kinds: Sequence[Any], dtype: Any, params: dict):
        self.builder, self.dtype, self.params = builder, np.dtype(dtype), params
        self.kinds = [np.dtype(kind) for kind in kinds]

    @property
    def is_float(self) -> bool:
        """True if the first operand is a floating-point number."""
        return is_floating(self.kinds[0])

    @property
    def is_signed(self) -> bool:
        """True if the first operand is a signed integer."""
        return self.kinds[0].kind == "i"


def is_native(name: str, kinds: Sequence[Any], params: dict) -> bool:
    """Returns true for operations that have code here."""
    if name in _OPERATIONS:
        return name != "integer_pow" or is_floating(kinds[0]) or params["y"] >= 0
    return (name in FUNCTIONS or name in LIBRARY) and all(map(is_floating, kinds))


def emit(name: str, operation: Operation, x: Sequence[Any]) -> Any:
    """Writes the code of an operation on values of one type or vectors of it."""
    if name in _OPERATIONS:
        return _OPERATIONS[name](operation, *x)
    b, wide = operation.builder, element_of(x[0].type) == DOUBLE
    functions = FUNCTIONS_WIDE if wide else FUNCTIONS
    if name in functions:
        return _as_function(name, functions[name], b, x)
    return _by_library(LIBRARY[name] + "f" * (not wide), b, x)


def _as_function(name: str, code: Callable, b: Any, x: Sequence[Any]) -> Any:
    """Calls a function of mathematics, which is written when it is first needed."""
    kind = x[0].type
    count = kind.count if isinstance(kind, ir.VectorType) else 1
    wanted = f"rows.{name}.{count}{'.wide' if element_of(kind) == DOUBLE else ''}"
    function = b.module.globals.get(wanted)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(kind, [kind] * len(x)), wanted)
        function.linkage = "internal"
        inner = ir.IRBuilder(function.append_basic_block())
        operands = [Number(inner, value) for value in function.args]
        value = code(*operands).value
        inner.ret(_or_by_library(name, operands[0], value) if name in _TURNING else value)
    return b.call(function, x)


# Functions whose larger arguments than this have lost the angle's digits.
_TURNING, _LARGEST_ANGLE = ("sin", "cos", "tan"), 2.0**19


def _or_by_library(name: str, x: Number, value: Any) -> Any:
    """Returns a value, and that of the C library where an angle is very large."""
    b, large = x.builder, x.call("fabs").compare(">", _LARGEST_ANGLE)
    start = b.block
    lanes = getattr(large.type, "count", 1)
    some = b.icmp_unsigned(
        "!=", b.bitcast(large, ir.IntType(lanes)), ir.constant_of(ir.IntType(lanes), 0)
    )
    with b.if_then(some):
        suffix = "" if element_of(value.type) == DOUBLE else "f"
        other = b.select(large, _by_library(name + suffix, b, [x.value]), value)
        seldom = b.block
    result = b.phi(value.type)
    result.add_incoming(value, start)
    result.add_incoming(other, seldom)
    return result


def _by_library(name: str, b: Any, x: Sequence[Any]) -> Any:
    """Calls the C library number by number."""
    kind = x[0].type
    element = element_of(kind)
    function = declared(b.module, name, element, [element] * len(x))
    if not isinstance(kind, ir.VectorType):
        return b.call(function, x)
    result = ir.constant_of(kind, ir.UNDEFINED)
    for lane in range(kind.count):
        place = ir.constant_of(I32, lane)
        number = b.call(function, [b.extract_element(value, place) for value in x])
        result = b.insert_element(result, number, place)
    return result


def _arithmetic(of_floats: str, of_integers: str, of_booleans: str | None = None) -> Callable:
    def code(o: Operation, x: Any, y: Any) -> Any:
        if o.is_float:
            return getattr(o.builder, of_floats)(x, y, flags=FLAGS)
        name = of_booleans if o.dtype == np.bool_ and of_booleans else of_integers
        return getattr(o.builder, name)(x, y)

    return code


def _divide(o: Operation, x: Any, y: Any) -> Any:
    if o.is_float:
        return o.builder.fdiv(x, y)
    # As XLA: -1 (all bits) by zero; the least number by -1 stays.
    safe, by_zero = _safe_divisor(o, x, y)
    quotient = (o.builder.sdiv if o.is_signed else o.builder.udiv)(x, safe)
    return o.builder.select(by_zero, constant(x.type, -1), quotient)


def _remainder(o: Operation, x: Any, y: Any) -> Any:
    if o.is_float:
        return _by_library("fmod" if element_of(x.type) == DOUBLE else "fmodf", o.builder, [x, y])
    safe, by_zero = _safe_divisor(o, x, y)
    rest = (o.builder.srem if o.is_signed else o.builder.urem)(x, safe)
    return o.builder.select(by_zero, x, rest)


def _safe_divisor(o: Operation, x: Any, y: Any) -> tuple[Any, Any]:
    b, one = o.builder, constant(x.type, 1)
    by_zero = b.icmp_signed("==", y, constant(y.type, 0))
    unsafe = by_zero
    if o.is_signed:
        least = b.icmp_signed("==", x, constant(x.type, -(2 ** (element_of(x.type).width - 1))))
        lost = b.and_(least, b.icmp_signed("==", y, constant(y.type, -1)))
        unsafe = b.or_(by_zero, lost)
    return b.select(unsafe, one, y), by_zero


def _compare(sign: str) -> Callable:
    def code(o: Operation, x: Any, y: Any) -> Any:
        b = o.builder
        if o.is_float:
            return (b.fcmp_unordered if sign == "!=" else b.fcmp_ordered)(sign, x, y)
        return (b.icmp_signed if o.is_signed else b.icmp_unsigned)(sign, x, y)

    return code


def _extreme(sign: str) -> Callable:
    # NaN if either is.
    def code(o: Operation, x: Any, y: Any) -> Any:
        first = _compare(sign)(o, x, y)
        if o.is_float:
            first = o.builder.or_(first, o.builder.fcmp_unordered("uno", x, x))
        return o.builder.select(first, x, y)

    return code


def _clamp(o: Operation, low: Any, x: Any, high: Any) -> Any:
    return _extreme("<")(o, _extreme(">")(o, x, low), high)


def _negate(o: Operation, x: Any) -> Any:
    return o.builder.fneg(x) if o.is_float else o.builder.neg(x)


def _absolute(o: Operation, x: Any) -> Any:
    if o.is_float:
        return intrinsic(o.builder, "fabs", x)
    if not o.is_signed:
        return x
    negative = o.builder.icmp_signed("<", x, constant(x.type, 0))
    return o.builder.select(negative, o.builder.neg(x), x)


def _sign(o: Operation, x: Any) -> Any:
    b, zero, one = o.builder, constant(x.type, 0), constant(x.type, 1)
    if o.is_float:
        same = b.fcmp_unordered("ueq", x, zero)
        return b.select(same, x, intrinsic(b, "copysign", one, x))
    positive = b.icmp_unsigned("!=", x, zero)
    if not o.is_signed:
        return b.select(positive, one, zero)
    negative = b.icmp_signed("<", x, zero)
    return b.select(negative, constant(x.type, -1), b.select(positive, one, zero))


def _integer_power(o: Operation, x: Any) -> Any:
    multiply = _arithmetic("fmul", "mul")
    exponent, power, result = abs(o.params["y"]), x, None
    while exponent:
        if exponent & 1:
            result = power if result is None else multiply(o, result, power)
        exponent >>= 1
        power = multiply(o, power, power) if exponent else power
    if result is None:
        return constant(x.type, 1)
    return result if o.params["y"] > 0 else o.builder.fdiv(constant(x.type, 1), result)


def _select(o: Operation, which: Any, *cases: Any) -> Any:
    b = o.builder
    if o.kinds[0] == np.bool_:
        return b.select(which, cases[1], cases[0])
    result = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        result = b.select(b.icmp_signed("==", which, constant(which.type, i)), cases[i], result)
    return result


def _convert(o: Operation, x: Any) -> Any:
    b, source, target = o.builder, o.kinds[0], o.dtype
    kind = same_shape(x.type, element_type(target))
    if source == target:
        return x
    if target == np.bool_:
        zero = constant(x.type, 0)
        return b.fcmp_unordered("!=", x, zero) if o.is_float else b.icmp_signed("!=", x, zero)
    if not is_floating(target):
        if o.is_float:
            return to_integer(b, x, kind, signed=target.kind == "i")
        return _resized(b, x, kind, signed=o.is_signed)
    if not o.is_float:
        x = b.sitofp(x, kind) if o.is_signed else b.uitofp(x, kind)
    elif kind != x.type:
        x = b.fpext(x, kind) if target.itemsize > source.itemsize else b.fptrunc(x, kind)
    # A number of half precision is rounded here, and nowhere else but in memory.
    return as_register(b, as_memory(b, x, target), target) if target.name in _HALVES else x


def _resized(b: Any, x: Any, kind: Any, *, signed: bool) -> Any:
    before, after = element_of(x.type).width, element_of(kind).width
    if after > before:
        return b.sext(x, kind) if signed else b.zext(x, kind)
    return x if after == before else b.trunc(x, kind)


def _total_order(sign: str) -> Callable:
    # Negative numbers by their bits from the last to the first, -0 before 0, NaN at both ends.
    def code(o: Operation, x: Any, y: Any) -> Any:
        b = o.builder
        if not o.is_float:
            return _compare(sign)(o, x, y)
        kind = integers(x.type)
        largest = constant(kind, 2 ** (element_of(kind).width - 1) - 1)

        def rank(number: Any) -> Any:
            bits = b.bitcast(number, kind)
            negative = b.icmp_signed("<", bits, constant(kind, 0))
            return b.select(negative, b.xor(bits, largest), bits)

        return b.icmp_signed(sign, rank(x), rank(y))

    return code


def _shift(name: str, *, fills: bool = False) -> Callable:
    # Beyond a word's bits nothing is left, or its sign.
    def code(o: Operation, x: Any, y: Any) -> Any:
        b, bits = o.builder, element_of(x.type).width
        within = b.icmp_unsigned("<", y, constant(y.type, bits))
        shift = getattr(b, name)
        amount = b.select(within, y, constant(y.type, bits - 1 if fills else 0))
        value = shift(x, amount)
        return value if fills else b.select(within, value, constant(x.type, 0))

    return code


def _is_finite(o: Operation, x: Any) -> Any:
    size = intrinsic(o.builder, "fabs", x)
    return o.builder.fcmp_ordered("<", size, constant(x.type, float("inf")))


def _call(name: str) -> Callable:
    return lambda o, x: intrinsic(o.builder, name, x)


def _round(o: Operation, x: Any) -> Any:
    return intrinsic(o.builder, "roundeven" if int(o.params["rounding_method"]) else "round", x)


_OPERATIONS: dict[str, Callable] = {
    "abs": _absolute,
    "add": _arithmetic("fadd", "add", "or_"),
    "add_any": _arithmetic("fadd", "add", "or_"),
    "and": lambda o, x, y: o.builder.and_(x, y),
    "ceil": _call("ceil"),
    "clamp": _clamp,
    "convert_element_type": _convert,
    "copy": lambda o, x: x,
    "div": _divide,
    "eq": _compare("=="),
    "floor": _call("floor"),
    "ge": _compare(">="),
    "gt": _compare(">"),
    "integer_pow": _integer_power,
    "is_finite": _is_finite,
    "le": _compare("<="),
    "le_to": _total_order("<="),
    "lt": _compare("<"),
    "lt_to": _total_order("<"),
    "max": _extreme(">"),
    "min": _extreme("<"),
    "mul": _arithmetic("fmul", "mul", "and_"),
    "ne": _compare("!="),
    "neg": _negate,
    "not": lambda o, x: o.builder.not_(x),
    "one_minus_square": lambda o, x: o.builder.fsub(
        constant(x.type, 1), o.builder.fmul(x, x, flags=FLAGS), flags=FLAGS
    ),
    "or": lambda o, x, y: o.builder.or_(x, y),
    "population_count": _call("ctpop"),
    "rem": _remainder,
    "round": _round,
    "rsqrt": lambda o, x: o.builder.fdiv(constant(x.type, 1), intrinsic(o.builder, "sqrt", x)),
    "select_n": _select,
    "shift_left": _shift("shl"),
    "shift_right_arithmetic": _shift("ashr", fills=True),
    "shift_right_logical": _shift("lshr"),
    "sign": _sign,
    "sqrt": _call("sqrt"),
    "square": lambda o, x: _arithmetic("fmul", "mul")(o, x, x),
    "stop_gradient": lambda o, x: x,
    "sub": _arithmetic("fsub", "sub"),
    "xor": lambda o, x, y: o.builder.xor(x, y),
}
