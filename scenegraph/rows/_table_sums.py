"""Sums of numbers into the rows of a table: cotangents of look-ups.

A table is divided into as many parts as there are threads, blocks of rows in turns. A thread takes
a part, goes through the places of all numbers, and adds those of its part. So every row receives
its numbers in their order, whatever the number of threads.
"""

from typing import Any

from ._handler import filled, write_calls
from ._operands import bytes_of, Operand, Result, ROW, SHARED
from ._operations import element_type


# Rows of a block, and places that are looked at together; powers of two.
_BLOCK, _TOGETHER = 64, 16


def write_table_sum(
    places: Any, numbers: Any, stride: int, threads: int, *, onto: bool = False
) -> str:
    """Returns the code of a kernel of two operands, places and rows of numbers.

    Or of three: it adds `onto` a table, which is the result, too.
    """
    kind, index = str(element_type(numbers)), str(element_type(places))
    values = {
        "kind": f"<{stride} x {kind}>",
        "size": bytes_of(numbers),
        "row_bytes": stride * bytes_of(numbers),
        "add": "fadd" if numbers.kind == "f" else "add",
        "index": index,
        "indices": f"<{_TOGETHER} x {index}>",
        "shift.all": _same(index, _BLOCK.bit_length() - 1),
        "narrowed": "trunc" if index == "i32" else "bitcast",
        "widened": f"{'zext' if index == 'i32' else 'bitcast'} {index} %narrow to i64",
        "index_bytes": bytes_of(places),
        "count": _TOGETHER,
        "block": _BLOCK,
        "shift": _BLOCK.bit_length() - 1,
        "clear": "scan" if onto else "clear",
    }
    operands = [Operand(places, ROW, 1), Operand(numbers, ROW, stride)]
    if onto:
        operands.append(Operand(numbers, SHARED, stride))
    calls = write_calls(
        operands, [Result(numbers, [None] * stride, SHARED)], threads, by_thread=True
    )
    return f"{filled(_COMPUTE, values)}\n{calls}"


def _same(kind: str, number: int) -> str:
    """Returns a vector of one number as a constant."""
    return f"<{', '.join([f'{kind} {number}'] * _TOGETHER)}>"


_COMPUTE = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i<count> @llvm.cttz.i<count>(i<count>, i1)

define internal void @compute(ptr %state, i64 %k) {
  %rows.at = getelementptr i8, ptr %state, i64 <@rows>
  %n = load i64, ptr %rows.at
  %length.at = getelementptr i8, ptr %state, i64 <@length>
  %length = load i64, ptr %length.at
  %parts.at = getelementptr i8, ptr %state, i64 <@chunks>
  %parts = load i64, ptr %parts.at
  %pointers = getelementptr i8, ptr %state, i64 <@pointers>
  %places = load ptr, ptr %pointers
  %numbers.at = getelementptr ptr, ptr %pointers, i64 1
  %numbers = load ptr, ptr %numbers.at
  %table.at = getelementptr ptr, ptr %pointers, i64 2
  %table = load ptr, ptr %table.at
  br label %block
block:
  %j = phi i64 [ %k, %0 ], [ %j.next, %clear ]
  %first = mul i64 %j, <block>
  %there = icmp slt i64 %first, %length
  br i1 %there, label %<clear>, label %scan
clear:
  %left = sub i64 %length, %first
  %few = icmp slt i64 %left, <block>
  %count = select i1 %few, i64 %left, i64 <block>
  %bytes = mul i64 %count, <row_bytes>
  %offset = mul i64 %first, <row_bytes>
  %start = getelementptr i8, ptr %table, i64 %offset
  call void @llvm.memset.p0.i64(ptr %start, i8 0, i64 %bytes, i1 false)
  %j.next = add i64 %j, %parts
  br label %block
scan:
  %rest = urem i64 %n, <count>
  %vectors = sub i64 %n, %rest
  %own = <narrowed> i64 %k to <index>
  %own.one = insertelement <indices> undef, <index> %own, i32 0
  %own.all = shufflevector <indices> %own.one, <indices> undef, <<count> x i32> zeroinitializer
  %last = sub i64 %parts, 1
  %last.own = <narrowed> i64 %last to <index>
  %last.one = insertelement <indices> undef, <index> %last.own, i32 0
  %last.all = shufflevector <indices> %last.one, <indices> undef, <<count> x i32> zeroinitializer
  %is.only = icmp eq i64 %parts, 1
  %full = select i1 %is.only, i64 0, i64 %vectors
  br label %vector
vector:
  %i = phi i64 [ 0, %scan ], [ %i.next, %next ]
  %more = icmp slt i64 %i, %full
  br i1 %more, label %some, label %one
some:
  %at = getelementptr <index>, ptr %places, i64 %i
  %indices = load <indices>, ptr %at, align <index_bytes>
  %blocks = lshr <indices> %indices, <shift.all>
  %part = and <indices> %blocks, %last.all
  %same = icmp eq <indices> %part, %own.all
  %valid = icmp sge <indices> %indices, zeroinitializer
  %mine = and <<count> x i1> %same, %valid
  %bits = bitcast <<count> x i1> %mine to i<count>
  br label %bit
bit:
  %b = phi i<count> [ %bits, %some ], [ %b.next, %add ]
  %any = icmp ne i<count> %b, 0
  br i1 %any, label %add, label %next
add:
  %lane = call i<count> @llvm.cttz.i<count>(i<count> %b, i1 true)
  %lane.wide = zext i<count> %lane to i64
  %which = add i64 %i, %lane.wide
  call void @add_row(ptr %places, ptr %numbers, ptr %table, i64 %which)
  %b.less = sub i<count> %b, 1
  %b.next = and i<count> %b, %b.less
  br label %bit
next:
  %i.next = add i64 %i, <count>
  br label %vector
one:
  %o = phi i64 [ %full, %vector ], [ %o.next, %o.done ]
  %o.more = icmp slt i64 %o, %n
  br i1 %o.more, label %o.test, label %end
o.test:
  %o.at = getelementptr <index>, ptr %places, i64 %o
  %o.index = load <index>, ptr %o.at
  %o.block = lshr <index> %o.index, <shift>
  %o.part = and <index> %o.block, %last.own
  %o.same = icmp eq <index> %o.part, %own
  %o.valid = icmp sge <index> %o.index, 0
  %o.mine = and i1 %o.same, %o.valid
  br i1 %o.mine, label %o.add, label %o.done
o.add:
  call void @add_row(ptr %places, ptr %numbers, ptr %table, i64 %o)
  br label %o.done
o.done:
  %o.next = add i64 %o, 1
  br label %one
end:
  ret void
}

define internal void @add_row(ptr %places, ptr %numbers, ptr %table, i64 %i) alwaysinline {
  %at = getelementptr <index>, ptr %places, i64 %i
  %narrow = load <index>, ptr %at
  %wide = <widened>
  %place = mul i64 %wide, <row_bytes>
  %target = getelementptr i8, ptr %table, i64 %place
  %from = mul i64 %i, <row_bytes>
  %source = getelementptr i8, ptr %numbers, i64 %from
  %more = load <kind>, ptr %source, align <size>
  %before = load <kind>, ptr %target, align <size>
  %total = <add> <kind> %before, %more
  store <kind> %total, ptr %target, align <size>
  ret void
}
"""
