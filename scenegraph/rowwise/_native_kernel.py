"""A graph of scalars as a native kernel: a loop over rows, shared out to threads.

`_kernel` writes the loop, which computes vectors of rows, as the function `part`; `_HANDLER` is
what XLA calls. Ranges of rows are taken from a counter by the caller's thread and by tasks in the
pool that XLA lends, so that all cores are used; sums are kept for every range and added in the
order of ranges, so that they do not depend on the number of threads.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ._graph import Node
from ._native_mathematics import constant, FLAGS
from ._native_operations import element_type, emit, I1, I8, I32, I64, memory_type, Operation


# Numbers of a vector, and rows of a range.
WIDTH, RANGE = 8, 1024
# Operands of no more numbers a row are loaded and stored as whole vectors, and then taken apart.
_SHUFFLED = 4
_POINTER = ir.PointerType()


class Element(NamedTuple):
    """A number of an operand: the value of an input of the graph."""

    operand: int
    place: int
    dtype: Any


class Operand(NamedTuple):
    """An operand: the numbers of a row, or of all of it if it is the same for all rows."""

    dtype: Any
    varying: bool
    size: int


class Result(NamedTuple):
    """A result: its nodes, which are summed over rows if it is `reduced`."""

    dtype: Any
    nodes: Sequence[Node]
    reduced: bool


def write_kernel(
    order: Sequence[Node], operands: Sequence[Operand], results: Sequence[Result], threads: int
) -> str:
    """Returns LLVM code: the function `part` of a range of rows, and what XLA calls."""
    module = ir.Module("rows")
    _Part(module, operands, results).write(order)
    return f"{module}\n{_handler(operands, results, threads)}"


class _Part:
    """The function `part`: a loop over vectors of rows."""

    def __init__(self, module: ir.Module, operands: Sequence[Operand], results: Sequence[Result]):
        kind = ir.FunctionType(ir.VoidType(), [_POINTER, I64, I64, I64, _POINTER])
        self.function = ir.Function(module, kind, "part")
        self.operands, self.results = operands, results
        self.invariant = module.add_metadata([])
        # What is the same for all rows is computed before the loop.
        self.before = ir.IRBuilder(self.function.append_basic_block("before"))
        self.loop, self.body, self.done = map(
            self.function.append_basic_block, ("loop", "body", "done")
        )
        self.inside = ir.IRBuilder(self.body)
        self.values: dict[Node, Any] = {}
        self.vectors: dict[Node, Any] = {}
        self.loaded: dict[int, list[Any]] = {}

    def write(self, order: Sequence[Node]) -> None:
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

    def _value(self, node: Node) -> Any:
        if isinstance(node.value, Element):
            return self._input(node)
        builder = self.inside if node.varying else self.before
        take = self._vector if node.varying else self._scalar
        kinds = [x.dtype for x in node.inputs]
        operation = Operation(builder, kinds, node.dtype, node.params or {})
        return emit(node.operation, operation, [take(x) for x in node.inputs])

    def _scalar(self, node: Node) -> Any:
        if node.is_constant:
            return constant(element_type(node.dtype), node.value)
        return self.values[node]

    def _vector(self, node: Node) -> Any:
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

    def _input(self, node: Node) -> Any:
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
        whole = b.load(address, typ=wide, align=_bytes(operand.dtype))
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
                total = b.load(address, typ=vector.type, align=_bytes(result.dtype))
                add = b.fadd if result.dtype.kind == "f" else b.add
                b.store(add(total, kept), address, align=_bytes(result.dtype))
                offset += WIDTH * _bytes(result.dtype)

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
            b.store(self._interleaved(vectors), address, align=_bytes(result.dtype))
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


def _bytes(dtype: Any) -> int:
    return np.dtype(dtype).itemsize


def _handler(operands: Sequence[Operand], results: Sequence[Result], threads: int) -> str:
    """Returns the code of the handler that XLA calls, and of what takes ranges of rows."""
    sizes = [x.size * _bytes(x.dtype) if x.varying else 0 for x in operands]
    sizes += [0 if x.reduced else len(x.nodes) * _bytes(x.dtype) for x in results]
    slots = [WIDTH * _bytes(x.dtype) for x in results if x.reduced for _ in x.nodes]
    first = next(k for k, x in enumerate(operands) if x.varying)
    values = {
        "pointers": len(sizes),
        "operands": len(operands),
        "row_bytes": ", ".join(f"i64 {size}" for size in sizes),
        "sum_bytes": sum(slots),
        "sums": _HEADER + 8 * len(sizes),
        "first": 8 * first,
        "threads": threads,
        "width": WIDTH,
        "range": RANGE,
        "flags": " ".join(FLAGS),
    }
    adders = [_adder(k, result, sum(slots)) for k, result in _reduced(results)]
    calls = [f"  call void @add_{k}(ptr %state, i64 %chunks)" for k, _ in _reduced(results)]
    text = _HANDLER.replace("<calls>", "\n".join(calls))
    for name, value in values.items():
        text = text.replace(f"<{name}>", str(value))
    for name, place in _PLACES.items():
        text = text.replace(f"<@{name}>", str(place))
    offset = 0
    for k, (number, result) in enumerate(_reduced(results)):
        adder = adders[k].replace("<offset>", str(offset)).replace("<sums>", str(values["sums"]))
        adder = adder.replace("<pointer>", str(_HEADER + 8 * (len(operands) + number)))
        text += adder
        offset += WIDTH * _bytes(result.dtype) * len(result.nodes)
    return text


def _reduced(results: Sequence[Result]) -> list[tuple[int, Result]]:
    return [(k, x) for k, x in enumerate(results) if x.reduced and x.nodes]


def _adder(number: int, result: Result, sum_bytes: int) -> str:
    """Returns the function that adds what the ranges have summed, in their order."""
    kind = str(element_type(result.dtype))
    vector = f"<{WIDTH} x {kind}>"
    if result.dtype.kind == "f":
        suffix = "f32" if kind == "float" else "f64"
        add = "fadd"
        reduce = (
            f"call {kind} @llvm.vector.reduce.fadd.v{WIDTH}{suffix}({kind} 0.0, {vector} %total)"
        )
    else:
        add = "add"
        reduce = f"call {kind} @llvm.vector.reduce.add.v{WIDTH}{kind}({vector} %total)"
    size = _bytes(result.dtype)
    return f"""
define internal void @add_{number}(ptr %state, i64 %chunks) {{
  %at = getelementptr i8, ptr %state, i64 <pointer>
  %out = load ptr, ptr %at
  br label %each
each:
  %i = phi i64 [ 0, %0 ], [ %i.next, %stored ]
  %place = mul i64 %i, {WIDTH * size}
  %offset = add i64 %place, <sums>
  %start = add i64 %offset, <offset>
  br label %ranges
ranges:
  %k = phi i64 [ 0, %each ], [ %k.next, %ranges ]
  %total.before = phi {vector} [ zeroinitializer, %each ], [ %total, %ranges ]
  %skip = mul i64 %k, {sum_bytes}
  %there = add i64 %start, %skip
  %address = getelementptr i8, ptr %state, i64 %there
  %part = load {vector}, ptr %address, align {size}
  %total = {add} {vector} %total.before, %part
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %chunks
  br i1 %more, label %ranges, label %stored
stored:
  %sum = {reduce}
  %target = getelementptr {kind}, ptr %out, i64 %i
  store {kind} %sum, ptr %target
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, {len(result.nodes)}
  br i1 %again, label %each, label %end
end:
  ret void
}}
"""


# Offsets of the state of a call, and its size without pointers and sums.
_PLACES = {"next": 0, "done": 8, "users": 16, "rows": 24, "chunks": 32}
_HEADER = 40
# Offsets in the structures of XLA's FFI are those of its `c_api.h`, major version 0:
#   call frame: extension 8, api 16, context 24, operands 72 (an array), results 112 (an array)
#   buffer: data 24, dimensions 40; metadata (by the extension): at 24, its version at 24 and 28
#   api: schedule a task 136, number of threads 144
_HANDLER = """
@row_bytes = internal constant [<pointers> x i64] [<row_bytes>]

declare ptr @calloc(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @sched_yield()

define internal void @compute(ptr %state, i64 %k) {
  %rows.at = getelementptr i8, ptr %state, i64 <@rows>
  %rows = load i64, ptr %rows.at
  %first = mul i64 %k, <range>
  %next = add i64 %first, <range>
  %short = icmp slt i64 %next, %rows
  %last = select i1 %short, i64 %next, i64 %rows
  %count = sub i64 %last, %first
  %rest = urem i64 %count, <width>
  %full = sub i64 %last, %rest
  %pointers = getelementptr i8, ptr %state, i64 40
  %sums.place = mul i64 %k, <sum_bytes>
  %sums.start = add i64 %sums.place, <sums>
  %sums = getelementptr i8, ptr %state, i64 %sums.start
  call void @part(ptr %pointers, i64 %first, i64 %full, i64 %full, ptr %sums)
  %is.whole = icmp eq i64 %rest, 0
  br i1 %is.whole, label %end, label %some
some:
  call void @remainder(ptr %pointers, i64 %full, i64 %rest, ptr %sums)
  br label %end
end:
  ret void
}

; The last few rows, in a copy that has as many as a vector: the last row fills it.
define internal void @remainder(ptr %pointers, i64 %first, i64 %rest, ptr %sums) {
  %copies = alloca [<pointers> x ptr]
  br label %copy
copy:
  %p = phi i64 [ 0, %0 ], [ %p.next, %copied ]
  %size.at = getelementptr i64, ptr @row_bytes, i64 %p
  %size = load i64, ptr %size.at
  %from.at = getelementptr ptr, ptr %pointers, i64 %p
  %from = load ptr, ptr %from.at
  %to.at = getelementptr ptr, ptr %copies, i64 %p
  %same = icmp eq i64 %size, 0
  br i1 %same, label %keep, label %fill
keep:
  store ptr %from, ptr %to.at
  br label %copied
fill:
  %bytes = mul i64 %size, <width>
  %buffer = call ptr @malloc(i64 %bytes)
  store ptr %buffer, ptr %to.at
  %is.result = icmp sge i64 %p, <operands>
  br i1 %is.result, label %copied, label %lane
lane:
  %l = phi i64 [ 0, %fill ], [ %l.next, %lane ]
  %beyond = icmp sge i64 %l, %rest
  %least = sub i64 %rest, 1
  %which = select i1 %beyond, i64 %least, i64 %l
  %row = add i64 %first, %which
  %source.place = mul i64 %row, %size
  %source = getelementptr i8, ptr %from, i64 %source.place
  %target.place = mul i64 %l, %size
  %target = getelementptr i8, ptr %buffer, i64 %target.place
  %copied.to = call ptr @memcpy(ptr %target, ptr %source, i64 %size)
  %l.next = add i64 %l, 1
  %more.lanes = icmp slt i64 %l.next, <width>
  br i1 %more.lanes, label %lane, label %copied
copied:
  %p.next = add i64 %p, 1
  %more = icmp slt i64 %p.next, <pointers>
  br i1 %more, label %copy, label %run
run:
  call void @part(ptr %copies, i64 0, i64 <width>, i64 %rest, ptr %sums)
  br label %back
back:
  %q = phi i64 [ 0, %run ], [ %q.next, %kept ]
  %q.size.at = getelementptr i64, ptr @row_bytes, i64 %q
  %q.size = load i64, ptr %q.size.at
  %q.same = icmp eq i64 %q.size, 0
  br i1 %q.same, label %kept, label %take
take:
  %q.buffer.at = getelementptr ptr, ptr %copies, i64 %q
  %q.buffer = load ptr, ptr %q.buffer.at
  %q.operand = icmp slt i64 %q, <operands>
  br i1 %q.operand, label %release, label %give
give:
  %q.to.at = getelementptr ptr, ptr %pointers, i64 %q
  %q.to = load ptr, ptr %q.to.at
  %q.place = mul i64 %first, %q.size
  %q.target = getelementptr i8, ptr %q.to, i64 %q.place
  %q.bytes = mul i64 %rest, %q.size
  %q.given = call ptr @memcpy(ptr %q.target, ptr %q.buffer, i64 %q.bytes)
  br label %release
release:
  call void @free(ptr %q.buffer)
  br label %kept
kept:
  %q.next = add i64 %q, 1
  %q.more = icmp slt i64 %q.next, <pointers>
  br i1 %q.more, label %back, label %end
end:
  ret void
}

; Takes ranges until none is left.
define internal void @work(ptr %state) {
  %chunks.at = getelementptr i8, ptr %state, i64 <@chunks>
  %chunks = load i64, ptr %chunks.at
  %next.at = getelementptr i8, ptr %state, i64 <@next>
  %done.at = getelementptr i8, ptr %state, i64 <@done>
  br label %take
take:
  %k = atomicrmw add ptr %next.at, i64 1 seq_cst
  %there = icmp slt i64 %k, %chunks
  br i1 %there, label %go, label %end
go:
  call void @compute(ptr %state, i64 %k)
  %before = atomicrmw add ptr %done.at, i64 1 seq_cst
  br label %take
end:
  ret void
}

; The state lives until its last user has let it go.
define internal void @release(ptr %state) {
  %users.at = getelementptr i8, ptr %state, i64 <@users>
  %before = atomicrmw sub ptr %users.at, i64 1 seq_cst
  %last = icmp eq i64 %before, 1
  br i1 %last, label %gone, label %end
gone:
  call void @free(ptr %state)
  br label %end
end:
  ret void
}

define internal void @task(ptr %state) {
  call void @work(ptr %state)
  call void @release(ptr %state)
  ret void
}

define ptr @kernel(ptr %frame) {
  %number = alloca i64
  %query = alloca [4 x i64]
  %request = alloca [5 x i64]
  %extension.at = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %extension.at
  %is.call = icmp eq ptr %extension, null
  br i1 %is.call, label %start, label %version
version:
  %metadata.at = getelementptr i8, ptr %extension, i64 24
  %metadata = load ptr, ptr %metadata.at
  %major = getelementptr i8, ptr %metadata, i64 24
  %minor = getelementptr i8, ptr %metadata, i64 28
  %traits = getelementptr i8, ptr %metadata, i64 32
  store i32 0, ptr %major
  store i32 3, ptr %minor
  store i32 0, ptr %traits
  ret ptr null
start:
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %context.at = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context.at
  %operands.at = getelementptr i8, ptr %frame, i64 72
  %operands = load ptr, ptr %operands.at
  %results.at = getelementptr i8, ptr %frame, i64 112
  %results = load ptr, ptr %results.at
  %first.at = getelementptr i8, ptr %operands, i64 <first>
  %first = load ptr, ptr %first.at
  %dimensions.at = getelementptr i8, ptr %first, i64 40
  %dimensions = load ptr, ptr %dimensions.at
  %rows = load i64, ptr %dimensions
  %up = add i64 %rows, 1023
  %chunks = sdiv i64 %up, <range>
  %sum.bytes = mul i64 %chunks, <sum_bytes>
  %bytes = add i64 %sum.bytes, <sums>
  %state = call ptr @calloc(i64 1, i64 %bytes)
  %rows.at = getelementptr i8, ptr %state, i64 <@rows>
  store i64 %rows, ptr %rows.at
  %chunks.at = getelementptr i8, ptr %state, i64 <@chunks>
  store i64 %chunks, ptr %chunks.at
  br label %point
point:
  %p = phi i64 [ 0, %start ], [ %p.next, %point ]
  %is.operand = icmp slt i64 %p, <operands>
  %p.result = sub i64 %p, <operands>
  %array = select i1 %is.operand, ptr %operands, ptr %results
  %index = select i1 %is.operand, i64 %p, i64 %p.result
  %buffer.at = getelementptr ptr, ptr %array, i64 %index
  %buffer = load ptr, ptr %buffer.at
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %data = load ptr, ptr %data.at
  %p.place = mul i64 %p, 8
  %p.offset = add i64 %p.place, 40
  %p.at = getelementptr i8, ptr %state, i64 %p.offset
  store ptr %data, ptr %p.at
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, <pointers>
  br i1 %p.more, label %point, label %ask
ask:
  store i64 1, ptr %number
  %query.size = getelementptr i64, ptr %query, i64 0
  store i64 32, ptr %query.size
  %query.extension = getelementptr i64, ptr %query, i64 1
  store ptr null, ptr %query.extension
  %query.context = getelementptr i64, ptr %query, i64 2
  store ptr %context, ptr %query.context
  %query.out = getelementptr i64, ptr %query, i64 3
  store ptr %number, ptr %query.out
  %count.at = getelementptr i8, ptr %api, i64 144
  %count = load ptr, ptr %count.at
  %error = call ptr %count(ptr %query)
  %all = load i64, ptr %number
  %few = icmp slt i64 %all, <threads>
  %allowed = select i1 %few, i64 %all, i64 <threads>
  %less = icmp slt i64 %allowed, %chunks
  %some = select i1 %less, i64 %allowed, i64 %chunks
  %none = icmp slt i64 %some, 1
  %users = select i1 %none, i64 1, i64 %some
  %users.at = getelementptr i8, ptr %state, i64 <@users>
  store i64 %users, ptr %users.at
  %request.size = getelementptr i64, ptr %request, i64 0
  store i64 40, ptr %request.size
  %request.extension = getelementptr i64, ptr %request, i64 1
  store ptr null, ptr %request.extension
  %request.context = getelementptr i64, ptr %request, i64 2
  store ptr %context, ptr %request.context
  %request.task = getelementptr i64, ptr %request, i64 3
  store ptr @task, ptr %request.task
  %request.state = getelementptr i64, ptr %request, i64 4
  store ptr %state, ptr %request.state
  %schedule.at = getelementptr i8, ptr %api, i64 136
  %schedule = load ptr, ptr %schedule.at
  br label %next
next:
  %t = phi i64 [ 1, %ask ], [ %t.next, %one ]
  %t.more = icmp slt i64 %t, %users
  br i1 %t.more, label %one, label %begin
one:
  %request.error = call ptr %schedule(ptr %request)
  %t.next = add i64 %t, 1
  br label %next
begin:
  call void @work(ptr %state)
  %done.at = getelementptr i8, ptr %state, i64 <@done>
  br label %wait
wait:
  %done = load atomic i64, ptr %done.at seq_cst, align 8
  %waiting = icmp slt i64 %done, %chunks
  br i1 %waiting, label %yield, label %ready
yield:
  %yielded = call i32 @sched_yield()
  br label %wait
ready:
<calls>
  call void @release(ptr %state)
  ret ptr null
}
"""
