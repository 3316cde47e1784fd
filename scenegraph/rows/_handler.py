"""The function that XLA calls: it shares out ranges of rows to threads.

Ranges are taken from a counter by the caller's thread and by tasks in the pool that XLA lends, so
that all cores are used; sums are kept for every range and added in the order of ranges, so that
they do not depend on the number of threads.
"""

from collections.abc import Sequence
from typing import Any

from ._operands import bytes_of, GROUP, Operand, RANGE, Result, ROW, WIDTH
from ._operations import element_type


def write_handler(operands: Sequence[Operand], results: Sequence[Result], threads: int) -> str:
    """Returns the code that shares out ranges of rows, and adds up their sums."""
    sizes, group = _row_bytes(operands, results), _group_bytes(operands, results)
    sums = sum(WIDTH * bytes_of(x.dtype) * len(x.nodes) for x in results if x.reduced)
    values: dict[str, Any] = {
        "count": len(sizes),
        "operands": len(operands),
        "row_bytes": ", ".join(f"i64 {size}" for size in sizes),
        "group_bytes": ", ".join(f"i64 {size}" for size in group),
        "sum_bytes": sums,
        "sums": _PLACES["pointers"] + 16 * len(sizes),
        "width": WIDTH,
        "range": RANGE,
    }
    texts, offset = [filled(_RANGES, values), filled(_GROUPS if any(group) else _ALL, values)], 0
    for k, result in _reduced(results):
        pointer = _PLACES["pointers"] + 8 * (len(operands) + k)
        texts.append(_adder(k, result, values | {"offset": offset, "pointer": pointer}))
        offset += WIDTH * bytes_of(result.dtype) * len(result.nodes)
    return "".join([*texts, write_calls(operands, results, threads)])


def write_calls(
    operands: Sequence[Operand], results: Sequence[Result], threads: int, *, by_thread: bool = False
) -> str:
    """Returns the function that XLA calls, which has `compute` called for every range of rows.

    Or `by_thread`, for as many numbers as there are threads, to the next lower power of two.
    """
    sums = sum(WIDTH * bytes_of(x.dtype) * len(x.nodes) for x in results if x.reduced)
    values = {
        "count": len(operands) + len(results),
        "operands": len(operands),
        "sum_bytes": sums,
        "sums": _PLACES["pointers"] + 16 * (len(operands) + len(results)),
        "lengths": 8 * (len(operands) + len(results)),
        "long": ", ".join(f"i1 {int(x.long)}" for x in operands),
        "first": 8 * next(k for k, x in enumerate(operands) if x.kind == ROW),
        "grouped": _first_of_groups(operands, results),
        "threads": threads,
        "range": RANGE,
        "most_beyond": RANGE - 1,
        "by_thread": int(by_thread),
        "calls": "\n".join(_call_of_adder(k, x) for k, x in _reduced(results)),
    }
    grouped = values["grouped"]
    values["array"] = "operands" if grouped < len(operands) else "results"
    values["place"] = 8 * (grouped if grouped < len(operands) else grouped - len(operands))
    count = "  %groups = add i64 0, 1" if grouped < 0 else filled(_COUNT_GROUPS, values)
    return filled(_CALL, {"count_groups": count} | values)


def _call_of_adder(number: int, result: Result) -> str:
    groups, ranges = ("%groups", "%per") if result.reduced == GROUP else ("1", "%chunks")
    return f"  call void @add_{number}(ptr %state, i64 {groups}, i64 {ranges})"


def _first_of_groups(operands: Sequence[Operand], results: Sequence[Result]) -> int:
    """Returns where the buffer is whose leading axis is that over groups, or -1 for one group."""
    kinds = [x.kind == GROUP for x in operands] + [x.reduced == GROUP for x in results]
    return kinds.index(True) if any(kinds) else -1


def _row_bytes(operands: Sequence[Operand], results: Sequence[Result]) -> list[int]:
    """Returns how many bytes a row has of every operand and result, or zero."""
    sizes = [x.size * bytes_of(x.dtype) if x.kind == ROW else 0 for x in operands]
    return sizes + [0 if x.reduced else len(x.nodes) * bytes_of(x.dtype) for x in results]


def _group_bytes(operands: Sequence[Operand], results: Sequence[Result]) -> list[int]:
    """Returns how many bytes a group has of every operand, or a row of its table, or zero."""
    sizes = [x.size * bytes_of(x.dtype) if x.kind == GROUP else 0 for x in operands]
    return sizes + [0 for _ in results]


def _reduced(results: Sequence[Result]) -> list[tuple[int, Result]]:
    return [(k, x) for k, x in enumerate(results) if x.reduced and x.nodes]


def _adder(number: int, result: Result, values: dict[str, int]) -> str:
    """Returns the function that adds what the ranges have summed, in their order."""
    kind = str(element_type(result.dtype))
    vector = f"<{WIDTH} x {kind}>"
    is_float, size = result.dtype.kind == "f", bytes_of(result.dtype)
    name = f"v{WIDTH}{ {'float': 'f32', 'double': 'f64'}.get(kind, kind) }"
    whole = f"call {kind} @llvm.vector.reduce.add.{name}({vector} %total)"
    if is_float:
        whole = f"call {kind} @llvm.vector.reduce.fadd.{name}({kind} 0.0, {vector} %total)"
    return filled(
        _ADDER,
        values
        | {
            "number": number,
            "slot_bytes": WIDTH * size,
            "vector": vector,
            "size": size,
            "add": "fadd" if is_float else "add",
            "reduce": whole,
            "kind": kind,
            "count": len(result.nodes),
        },
    )


def filled(text: str, values: dict) -> str:
    """Returns a text with values in the places of their names."""
    places = {f"@{name}": place for name, place in _PLACES.items()}
    for name, value in (values | places).items():
        text = text.replace(f"<{name}>", str(value))
    return text


# Offsets of the state of a call; lengths of tables and sums follow the pointers to operands and
# results.
_PLACES = {
    "next": 0,
    "done": 8,
    "users": 16,
    "rows": 24,
    "chunks": 32,
    "length": 40,
    "per": 48,
    "pointers": 56,
}
# Offsets in the structures of XLA's FFI are those of its `c_api.h`, major version 0:
#   call frame: extension 8, api 16, context 24, operands 72 (an array), results 112 (an array)
#   buffer: data 24, dimensions 40; metadata (by the extension): at 24, its version at 24 and 28
#   api: schedule a task 136, number of threads 144
_RANGES = """
@row_bytes = internal constant [<count> x i64] [<row_bytes>]

declare ptr @malloc(i64)
declare ptr @memcpy(ptr, ptr, i64)

define internal void @compute(ptr %state, i64 %k) {
  %rows.at = getelementptr i8, ptr %state, i64 <@rows>
  %rows = load i64, ptr %rows.at
  %per.at = getelementptr i8, ptr %state, i64 <@per>
  %per = load i64, ptr %per.at
  %group = sdiv i64 %k, %per
  %number = srem i64 %k, %per
  %start = mul i64 %group, %rows
  %end.of.group = add i64 %start, %rows
  %skipped = mul i64 %number, <range>
  %first = add i64 %start, %skipped
  %next = add i64 %first, <range>
  %short = icmp slt i64 %next, %end.of.group
  %last = select i1 %short, i64 %next, i64 %end.of.group
  %count = sub i64 %last, %first
  %rest = urem i64 %count, <width>
  %full = sub i64 %last, %rest
  %copy = alloca [<count> x ptr]
  %all = getelementptr i8, ptr %state, i64 <@pointers>
  %pointers = call ptr @of_group(ptr %all, ptr %copy, i64 %group)
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
  %copies = alloca [<count> x ptr]
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
  %more = icmp slt i64 %p.next, <count>
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
  %q.more = icmp slt i64 %q.next, <count>
  br i1 %q.more, label %back, label %end
end:
  ret void
}
"""

_CALL = """
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare i32 @sched_yield()
declare i64 @llvm.ctlz.i64(i64, i1)

@is_long = internal constant [<operands> x i1] [<long>]

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
  br label %start
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
  %rows.of.all = load i64, ptr %dimensions
<count_groups>
  %rows = sdiv i64 %rows.of.all, %groups
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
  %up = add i64 %rows, <most_beyond>
  %per.divided = sdiv i64 %up, <range>
  %one.thread = icmp slt i64 %allowed, 1
  %some.threads = select i1 %one.thread, i64 1, i64 %allowed
  %zeros = call i64 @llvm.ctlz.i64(i64 %some.threads, i1 true)
  %shift = sub i64 63, %zeros
  %parts = shl i64 1, %shift
  %per = select i1 <by_thread>, i64 %parts, i64 %per.divided
  %chunks = mul i64 %groups, %per
  %sum.bytes = mul i64 %chunks, <sum_bytes>
  %bytes = add i64 %sum.bytes, <sums>
  %state = call ptr @calloc(i64 1, i64 %bytes)
  %rows.at = getelementptr i8, ptr %state, i64 <@rows>
  store i64 %rows, ptr %rows.at
  %chunks.at = getelementptr i8, ptr %state, i64 <@chunks>
  store i64 %chunks, ptr %chunks.at
  %per.at = getelementptr i8, ptr %state, i64 <@per>
  store i64 %per, ptr %per.at
  br i1 <by_thread>, label %measure, label %begin.points
measure:
  %target = load ptr, ptr %results
  %target.dimensions.at = getelementptr i8, ptr %target, i64 40
  %target.dimensions = load ptr, ptr %target.dimensions.at
  %length = load i64, ptr %target.dimensions
  %length.at = getelementptr i8, ptr %state, i64 <@length>
  store i64 %length, ptr %length.at
  br label %begin.points
begin.points:
  br label %point
point:
  %p = phi i64 [ 0, %begin.points ], [ %p.next, %pointed ]
  %is.operand = icmp slt i64 %p, <operands>
  %p.result = sub i64 %p, <operands>
  %array = select i1 %is.operand, ptr %operands, ptr %results
  %index = select i1 %is.operand, i64 %p, i64 %p.result
  %buffer.at = getelementptr ptr, ptr %array, i64 %index
  %buffer = load ptr, ptr %buffer.at
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %data = load ptr, ptr %data.at
  %p.place = mul i64 %p, 8
  %p.offset = add i64 %p.place, <@pointers>
  %p.at = getelementptr i8, ptr %state, i64 %p.offset
  store ptr %data, ptr %p.at
  br i1 %is.operand, label %table, label %pointed
table:
  %long.at = getelementptr i1, ptr @is_long, i64 %p
  %long = load i1, ptr %long.at
  br i1 %long, label %second.axis, label %pointed
second.axis:
  %axes.at = getelementptr i8, ptr %buffer, i64 40
  %axes = load ptr, ptr %axes.at
  %second.at = getelementptr i64, ptr %axes, i64 1
  %second = load i64, ptr %second.at
  br label %pointed
pointed:
  %times = phi i64 [ 1, %point ], [ 1, %table ], [ %second, %second.axis ]
  %times.at = getelementptr i8, ptr %p.at, i64 <lengths>
  store i64 %times, ptr %times.at
  %p.next = add i64 %p, 1
  %p.more = icmp slt i64 %p.next, <count>
  br i1 %p.more, label %point, label %ask
ask:
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

_COUNT_GROUPS = """  %grouped.at = getelementptr i8, ptr %<array>, i64 <place>
  %grouped = load ptr, ptr %grouped.at
  %grouped.dimensions.at = getelementptr i8, ptr %grouped, i64 40
  %grouped.dimensions = load ptr, ptr %grouped.dimensions.at
  %groups = load i64, ptr %grouped.dimensions"""

_ALL = """
define internal ptr @of_group(ptr %pointers, ptr %copy, i64 %group) {
  ret ptr %pointers
}
"""

_GROUPS = """
@group_bytes = internal constant [<count> x i64] [<group_bytes>]

; Pointers to what a group of rows has.
define internal ptr @of_group(ptr %pointers, ptr %copy, i64 %group) {
  br label %each
each:
  %p = phi i64 [ 0, %0 ], [ %p.next, %each ]
  %size.at = getelementptr i64, ptr @group_bytes, i64 %p
  %size = load i64, ptr %size.at
  %from.at = getelementptr ptr, ptr %pointers, i64 %p
  %from = load ptr, ptr %from.at
  %length.place = add i64 %p, <count>
  %length.at = getelementptr i64, ptr %pointers, i64 %length.place
  %length = load i64, ptr %length.at
  %bytes = mul i64 %size, %length
  %skipped = mul i64 %group, %bytes
  %own = getelementptr i8, ptr %from, i64 %skipped
  %to.at = getelementptr ptr, ptr %copy, i64 %p
  store ptr %own, ptr %to.at
  %p.next = add i64 %p, 1
  %more = icmp slt i64 %p.next, <count>
  br i1 %more, label %each, label %end
end:
  ret ptr %copy
}
"""

_ADDER = """define internal void @add_<number>(ptr %state, i64 %groups, i64 %chunks) {
  %at = getelementptr i8, ptr %state, i64 <pointer>
  %out.of.all = load ptr, ptr %at
  br label %of.group
of.group:
  %g = phi i64 [ 0, %0 ], [ %g.next, %group.done ]
  %g.before = mul i64 %g, <count>
  %out = getelementptr <kind>, ptr %out.of.all, i64 %g.before
  %g.first = mul i64 %g, %chunks
  %g.last = add i64 %g.first, %chunks
  br label %each
each:
  %i = phi i64 [ 0, %of.group ], [ %i.next, %stored ]
  %place = mul i64 %i, <slot_bytes>
  %offset = add i64 %place, <sums>
  %start = add i64 %offset, <offset>
  br label %ranges
ranges:
  %k = phi i64 [ %g.first, %each ], [ %k.next, %ranges ]
  %total.before = phi <vector> [ zeroinitializer, %each ], [ %total, %ranges ]
  %skip = mul i64 %k, <sum_bytes>
  %there = add i64 %start, %skip
  %address = getelementptr i8, ptr %state, i64 %there
  %part = load <vector>, ptr %address, align <size>
  %total = <add> <vector> %total.before, %part
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k.next, %g.last
  br i1 %more, label %ranges, label %stored
stored:
  %sum = <reduce>
  %target = getelementptr <kind>, ptr %out, i64 %i
  store <kind> %sum, ptr %target
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, <count>
  br i1 %again, label %each, label %group.done
group.done:
  %g.next = add i64 %g, 1
  %g.more = icmp slt i64 %g.next, %groups
  br i1 %g.more, label %of.group, label %end
end:
  ret void
}
"""
