"""The loop of a kernel: vectors of rows, of which all scalars are computed one after the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ._mathematics import constant
from ._operands import bytes_of, Element, Operand, Result, WIDTH
from ._operations import element_type, emit, I1, I8, I32, I64, memory_type, Operation


# Operands of no more numbers a row are loaded and stored as whole vectors, and then taken apart.
_SHUFFLED = 4
_POINTER = ir.PointerType()


def write_part(order: Sequence[Any], operands: Sequence[Operand], results: Sequence[Result]) -> str:
    """Returns LLVM code: the function `part`, which computes the nodes of a range of rows."""
    module = ir.Module("rows")
    _Part(module, operands, results).write(order)
    return str(module)


class _Part:
    """The function `part`: a loop over vectors of rows."""

    def __init__(self, module: ir.Module, operands: Sequence[Operand], results: Sequence[Result]):
        kind = ir.FunctionType(ir.VoidType(), [_POINTER, I64, I64, I64, _POINTER])
        self.function = ir.Function(module, kind, "part")
        self.operands, self.results = operands, results
        # What is the same for all rows is computed before the loop.
        self.before = ir.IRBuilder(self.function.append_basic_block("before"))
        self.loop, self.body, self.done = map(
            self.function.append_basic_block, ("loop", "body", "done")
        )
        self.inside = ir.IRBuilder(self.body)
        self.values: dict[Any, Any] = {}
        self.vectors: dict[Any, Any] = {}
        self.loaded: dict[int, list[Any]] = {}

    def write(self, order: Sequence[Any]) -> None:
        pointers, first, last, end, sums = self.function.args
        self.pointers = [
            self._load(self.before, pointers, k, _POINTER)
            for k in range(len(self.operands) + len(self.results))
        ]
        loop = ir.IRBuilder(self.loop)
        self.row = loop.phi(I64)
        self.row.add_incoming(first, self.before.block)
        loop.cbranch(loop.icmp_signed("<", self.row, last), self.body, self.done)
        for node in order:
            if not node.is_constant:
                self.values[node] = self._value(node)
        self._store_all(end, sums)
        self.row.add_incoming(self.inside.add(self.row, constant(I64, WIDTH)), self.inside.block)
        self.inside.branch(self.loop)
        self.before.branch(self.loop)
        ir.IRBuilder(self.done).ret_void()

    def _load(self, builder: Any, base: Any, place: int, kind: Any) -> Any:
        address = builder.gep(base, [constant(I64, place)], source_etype=kind)
        return builder.load(address, typ=kind)

    def _value(self, node: Any) -> Any:
        if isinstance(node.value, Element):
            return self._input(node)
        builder = self.inside if node.varying else self.before
        take = self._vector if node.varying else self._scalar
        kinds = [x.dtype for x in node.inputs]
        operation = Operation(builder, kinds, node.dtype, node.params or {})
        return emit(node.operation, operation, [take(x) for x in node.inputs])

    def _scalar(self, node: Any) -> Any:
        if node.is_constant:
            return constant(element_type(node.dtype), node.value)
        return self.values[node]

    def _vector(self, node: Any) -> Any:
        """Returns a node's value for all rows of the vector."""
        kind = ir.VectorType(element_type(node.dtype), WIDTH)
        if node.is_constant:
            return constant(kind, node.value)
        if node.varying:
            return self.values[node]
        if node not in self.vectors:
            empty = ir.Constant(kind, ir.Undefined)
            first = self.before.insert_element(empty, self.values[node], constant(I32, 0))
            same = constant(ir.VectorType(I32, WIDTH), 0)
            self.vectors[node] = self.before.shuffle_vector(first, empty, same)
        return self.vectors[node]

    def _input(self, node: Any) -> Any:
        number, place, dtype = node.value
        if not node.varying:
            value = self._load(self.before, self.pointers[number], place, memory_type(dtype))
            return self.before.trunc(value, I1) if dtype == np.bool_ else value
        if number not in self.loaded:
            self.loaded[number] = self._load_rows(self.operands[number], self.pointers[number])
        lanes = self.loaded[number][place]
        if lanes is None:
            lanes = self._load_apart(self.operands[number], self.pointers[number], place)
        kind = ir.VectorType(I1, WIDTH)
        return self.inside.trunc(lanes, kind) if dtype == np.bool_ else lanes

    def _address(self, size: int, place: int, pointer: Any, kind: Any) -> Any:
        b = self.inside
        index = b.add(b.mul(self.row, constant(I64, size)), constant(I64, place))
        return b.gep(pointer, [index], source_etype=kind)

    def _load_rows(self, operand: Operand, pointer: Any) -> list[Any]:
        """Loads whole vectors and takes their numbers apart; `None` for what is loaded later."""
        if operand.size > _SHUFFLED:
            return [None] * operand.size
        b, kind = self.inside, memory_type(operand.dtype)
        address = self._address(operand.size, 0, pointer, kind)
        wide = ir.VectorType(kind, WIDTH * operand.size)
        whole = b.load(address, typ=wide, align=bytes_of(operand.dtype))
        if operand.size == 1:
            return [whole]
        empty = ir.Constant(wide, ir.Undefined)
        places = lambda c: _mask(range(c, WIDTH * operand.size, operand.size))
        return [b.shuffle_vector(whole, empty, places(c)) for c in range(operand.size)]

    def _load_apart(self, operand: Operand, pointer: Any, place: int) -> Any:
        b, kind = self.inside, memory_type(operand.dtype)
        address = self._address(operand.size, place, pointer, kind)
        vector = ir.Constant(ir.VectorType(kind, WIDTH), ir.Undefined)
        for lane in range(WIDTH):
            at = b.gep(address, [constant(I64, lane * operand.size)], source_etype=kind)
            vector = b.insert_element(vector, b.load(at, typ=kind), constant(I32, lane))
        return vector

    def _store_all(self, end: Any, sums: Any) -> None:
        b, offset = self.inside, 0
        there = self._rows_that_are_there(end) if any(x.reduced for x in self.results) else None
        for result, pointer in zip(self.results, self.pointers[len(self.operands) :], strict=True):
            vectors = [self._vector(node) for node in result.nodes]
            if not result.reduced:
                self._store_rows(result, pointer, vectors)
                continue
            for vector in vectors:
                address = b.gep(sums, [constant(I64, offset)], source_etype=I8)
                kept = b.select(there, vector, constant(vector.type, 0))
                total = b.load(address, typ=vector.type, align=bytes_of(result.dtype))
                add = b.fadd if result.dtype.kind == "f" else b.add
                b.store(add(total, kept), address, align=bytes_of(result.dtype))
                offset += WIDTH * bytes_of(result.dtype)

    def _rows_that_are_there(self, end: Any) -> Any:
        """Returns which rows of the vector are none that only fill it."""
        b, kind = self.inside, ir.VectorType(I64, WIDTH)
        empty = ir.Constant(kind, ir.Undefined)
        left = b.insert_element(empty, b.sub(end, self.row), constant(I32, 0))
        left = b.shuffle_vector(left, empty, constant(ir.VectorType(I32, WIDTH), 0))
        numbers = ir.Constant(kind, [constant(I64, lane) for lane in range(WIDTH)])
        return b.icmp_signed("<", numbers, left)

    def _store_rows(self, result: Result, pointer: Any, vectors: list[Any]) -> None:
        b, size, kind = self.inside, len(result.nodes), memory_type(result.dtype)
        if not size:
            return
        if result.dtype == np.bool_:
            vectors = [b.zext(x, ir.VectorType(I8, WIDTH)) for x in vectors]
        if size <= _SHUFFLED:
            address = self._address(size, 0, pointer, kind)
            b.store(self._interleaved(vectors), address, align=bytes_of(result.dtype))
            return
        for place, vector in enumerate(vectors):
            address = self._address(size, place, pointer, kind)
            for lane in range(WIDTH):
                at = b.gep(address, [constant(I64, lane * size)], source_etype=kind)
                b.store(b.extract_element(vector, constant(I32, lane)), at)

    def _interleaved(self, vectors: list[Any]) -> Any:
        """Returns one vector of numbers row by row."""
        b, whole = self.inside, vectors[0]
        if len(vectors) == 1:
            return whole
        # Pairs of vectors are joined until one is left, whose numbers are then put in order.
        parts, count, width = list(vectors), len(vectors), WIDTH
        while len(parts) & (len(parts) - 1):
            parts.append(ir.Constant(vectors[0].type, ir.Undefined))
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            width *= 2
            parts = [b.shuffle_vector(x, y, _mask(range(width))) for x, y in pairs]
        empty = ir.Constant(parts[0].type, ir.Undefined)
        order = [WIDTH * (k % count) + k // count for k in range(WIDTH * count)]
        return b.shuffle_vector(parts[0], empty, _mask(order))


def _mask(places: Sequence[int]) -> Any:
    places = list(places)
    return ir.Constant(ir.VectorType(I32, len(places)), [constant(I32, k) for k in places])
