"""LLVM's assembly as text: types, values, and a builder of instructions.

Names and arguments are those of `llvmlite.ir`, of which this is what kernels need. There an
instruction is an object that becomes text at the end, which takes half of the time in which kernels
are written; here it is text at once.
"""

import contextlib
import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any


# --- Types


class _Type:
    """A type, which is its text."""

    __slots__ = ("text",)

    def __init__(self, text: str):
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


class IntType(_Type):
    """Integers of some bits."""

    __slots__ = ("width",)

    def __init__(self, width: int):
        self.text, self.width = f"i{width}", width


class VectorType(_Type):
    """Vectors of some numbers of one type."""

    __slots__ = ("count", "element")

    def __init__(self, element: Any, count: int):
        self.text, self.element, self.count = f"<{count} x {element.text}>", element, count


HALF, FLOAT, DOUBLE = map(_Type, ("half", "float", "double"))
POINTER, VOID = map(_Type, ("ptr", "void"))


class FunctionType:
    """The types of a function's result and its arguments."""

    def __init__(self, result: Any, arguments: Sequence[Any]):
        self.result, self.arguments = result, list(arguments)


# --- Values


class Value:
    """A value: its type, and the text that stands for it, with the type before it and without."""

    __slots__ = ("ref", "type", "typed")

    def __init__(self, kind: Any, ref: str):
        self.type, self.ref, self.typed = kind, ref, f"{kind.text} {ref}"


UNDEFINED = object()


def constant_of(kind: Any, value: Any) -> Value:
    """Returns a number, several as a vector, or any value at all."""
    return Value(kind, _text_of(kind, value))


def _text_of(kind: Any, value: Any) -> str:
    if value is UNDEFINED:
        return "undef"
    if isinstance(kind, VectorType):
        return f"<{', '.join(x.typed for x in value)}>"
    if isinstance(kind, IntType):
        return str(int(value))
    # Bits as of double precision, whatever the type: of NaN, too.
    number = float(value)
    if kind == FLOAT:
        [number] = struct.unpack("f", struct.pack("f", number))
    return f"0x{int.from_bytes(struct.pack('>d', number), 'big'):016x}"


# --- Functions


class Module:
    """Functions by their names."""

    def __init__(self, name: str):
        self.name = name
        self.globals: dict[str, Function] = {}

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.globals.values()))


class Function:
    """A function: declared alone, unless it has blocks."""

    def __init__(self, module: Module, kind: FunctionType, name: str):
        self.module, self.kind, self.name, self.linkage = module, kind, name, ""
        self.args = [Value(x, f"%a{k}") for k, x in enumerate(kind.arguments)]
        self.blocks: list[Block] = []
        self.count = 0
        module.globals[name] = self

    def append_basic_block(self, name: str = "block") -> "Block":
        """Appends a block, which has a name of its own."""
        self.count += 1
        self.blocks.append(Block(self, f"{name}.{self.count}"))
        return self.blocks[-1]

    def __str__(self) -> str:
        arguments = ", ".join(x.typed for x in self.args)
        if not self.blocks:
            kinds = ", ".join(x.text for x in self.kind.arguments)
            return f"declare {self.kind.result} @{self.name}({kinds})"
        body = "\n".join(map(str, self.blocks))
        return f"define {self.linkage} {self.kind.result} @{self.name}({arguments}) {{\n{body}\n}}"


class Block:
    """A block: lines, or what becomes one."""

    __slots__ = ("function", "lines", "name")

    def __init__(self, function: Function, name: str):
        self.function, self.name = function, name
        self.lines: list[Any] = []

    def __str__(self) -> str:
        return f"{self.name}:\n" + "\n".join(map(str, self.lines))


class Phi(Value):
    """A value by the block that its code comes from."""

    __slots__ = ("_incoming",)

    def __init__(self, kind: Any, ref: str):
        self.type, self.ref, self.typed = kind, ref, f"{kind.text} {ref}"
        self._incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """Says what comes from a block."""
        self._incoming.append(f"[ {value.ref}, %{block.name} ]")

    def __str__(self) -> str:
        return f"  {self.ref} = phi {self.type.text} {', '.join(self._incoming)}"


class Switch:
    """The end of a block, which goes on at the block of a case."""

    def __init__(self, value: Value, default: Block):
        self._value, self._default = value, default
        self._cases: list[str] = []

    def add_case(self, value: Value, block: Block) -> None:
        """Says where a number goes on."""
        self._cases.append(f"{value.typed}, label %{block.name}")

    def __str__(self) -> str:
        cases = " ".join(self._cases)
        return f"  switch {self._value.typed}, label %{self._default.name} [ {cases} ]"


# --- Instructions

_SIGNED = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_UNSIGNED = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}
_FLOATING = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_FLAG = IntType(1)


def _binary(name: str) -> Callable:
    def code(self: "IRBuilder", x: Value, y: Value, flags: Sequence[str] = ()) -> Value:
        return self._new(x.type, f"{' '.join((name, *flags))} {x.typed}, {y.ref}")

    return code


def _cast(name: str) -> Callable:
    def code(self: "IRBuilder", x: Value, kind: Any) -> Value:
        return x if x.type == kind else self._new(kind, f"{name} {x.typed} to {kind.text}")

    return code


class IRBuilder:
    """Writes instructions at the end of a block."""

    def __init__(self, block: Block):
        self.block = block

    @property
    def function(self) -> Function:
        """The function that is being written."""
        return self.block.function

    @property
    def module(self) -> Module:
        """The module of the function."""
        return self.block.function.module

    def position_at_end(self, block: Block) -> None:
        """Goes on at the end of a block."""
        self.block = block

    def _new(self, kind: Any, text: str) -> Value:
        value = Value(kind, self._name())
        self.block.lines.append(f"  {value.ref} = {text}")
        return value

    def _name(self) -> str:
        function = self.block.function
        function.count += 1
        return f"%v{function.count}"

    def _do(self, line: Any) -> None:
        self.block.lines.append(line)

    add, sub, mul, shl, lshr, ashr = map(_binary, ("add", "sub", "mul", "shl", "lshr", "ashr"))
    sdiv, udiv, srem, urem = map(_binary, ("sdiv", "udiv", "srem", "urem"))
    and_, or_, xor = map(_binary, ("and", "or", "xor"))
    fadd, fsub, fmul, fdiv = map(_binary, ("fadd", "fsub", "fmul", "fdiv"))
    trunc, zext, sext, bitcast = map(_cast, ("trunc", "zext", "sext", "bitcast"))
    fptrunc, fpext, sitofp, uitofp = map(_cast, ("fptrunc", "fpext", "sitofp", "uitofp"))

    def neg(self, x: Value) -> Value:
        return self._new(x.type, f"sub {x.type.text} zeroinitializer, {x.ref}")

    def not_(self, x: Value) -> Value:
        return self._new(x.type, f"xor {x.typed}, {_ones(x.type)}")

    def fneg(self, x: Value) -> Value:
        return self._new(x.type, f"fneg {x.typed}")

    def _compare(self, name: str, x: Value, y: Value) -> Value:
        vector = isinstance(x.type, VectorType)
        kind = VectorType(_FLAG, x.type.count) if vector else _FLAG
        return self._new(kind, f"{name} {x.typed}, {y.ref}")

    def icmp_signed(self, sign: str, x: Value, y: Value) -> Value:
        return self._compare(f"icmp {_SIGNED[sign]}", x, y)

    def icmp_unsigned(self, sign: str, x: Value, y: Value) -> Value:
        return self._compare(f"icmp {_UNSIGNED[sign]}", x, y)

    def fcmp_ordered(self, sign: str, x: Value, y: Value) -> Value:
        return self._compare(f"fcmp o{_FLOATING[sign]}", x, y)

    def fcmp_unordered(self, sign: str, x: Value, y: Value) -> Value:
        name = f"u{_FLOATING[sign]}" if sign in _FLOATING else sign
        return self._compare(f"fcmp {name}", x, y)

    def select(self, which: Value, x: Value, y: Value) -> Value:
        return self._new(x.type, f"select {which.typed}, {x.typed}, {y.typed}")

    def load(self, address: Value, typ: Any, align: int | None = None) -> Value:
        return self._new(typ, f"load {typ.text}, {address.typed}{_aligned(align)}")

    def store(self, value: Value, address: Value, align: int | None = None) -> None:
        self._do(f"  store {value.typed}, {address.typed}{_aligned(align)}")

    def gep(self, address: Value, indices: Sequence[Value], source_etype: Any) -> Value:
        places = ", ".join(x.typed for x in indices)
        text = f"getelementptr {source_etype.text}, {address.typed}, {places}"
        return self._new(address.type, text)

    def extract_element(self, vector: Value, place: Value) -> Value:
        return self._new(vector.type.element, f"extractelement {vector.typed}, {place.typed}")

    def insert_element(self, vector: Value, value: Value, place: Value) -> Value:
        text = f"insertelement {vector.typed}, {value.typed}, {place.typed}"
        return self._new(vector.type, text)

    def shuffle_vector(self, x: Value, y: Value, mask: Value) -> Value:
        kind = VectorType(x.type.element, mask.type.count)
        return self._new(kind, f"shufflevector {x.typed}, {y.typed}, {mask.typed}")

    def call(self, function: Function, operands: Sequence[Value]) -> Value:
        values = ", ".join(x.typed for x in operands)
        result = function.kind.result
        text = f"call {result.text} @{function.name}({values})"
        if result == VOID:
            self._do(f"  {text}")
            return Value(result, "")
        return self._new(result, text)

    def phi(self, kind: Any) -> Phi:
        phi = Phi(kind, self._name())
        self._do(phi)
        return phi

    # --- Ends of blocks

    def branch(self, block: Block) -> None:
        self._do(f"  br label %{block.name}")

    def cbranch(self, which: Value, then: Block, otherwise: Block) -> None:
        self._do(f"  br {which.typed}, label %{then.name}, label %{otherwise.name}")

    def switch(self, value: Value, default: Block) -> Switch:
        switch = Switch(value, default)
        self._do(switch)
        return switch

    def ret(self, value: Value) -> None:
        self._do(f"  ret {value.typed}")

    def ret_void(self) -> None:
        self._do("  ret void")

    @contextlib.contextmanager
    def if_then(self, which: Value) -> Iterator[None]:
        """Writes what is done if a flag is true; goes on behind it."""
        then, end = (self.function.append_basic_block(name) for name in ("then", "end"))
        self.cbranch(which, then, end)
        self.position_at_end(then)
        yield
        self.branch(end)
        self.position_at_end(end)


def _aligned(align: int | None) -> str:
    return "" if align is None else f", align {align}"


@functools.cache
def _ones(kind: Any) -> str:
    """Returns the text of an integer of ones, or a vector of them."""
    if isinstance(kind, VectorType):
        return f"<{', '.join([f'{kind.element.text} -1'] * kind.count)}>"
    return "-1"
