"""Entries: what XLA calls while a kernel's machine code is still being made, in another thread.

Tracing and XLA's own compilation take as long as LLVM: with two cores, they go on beside each
other. An entry answers XLA's question about its version at once, and waits for the kernel when it
is called; it returns an error if the kernel could not be compiled.
"""

import ctypes
from typing import Any, NamedTuple


# Entries that are compiled at a time.
_TOGETHER = 32


class Entry(NamedTuple):
    """The function that stands for one kernel."""

    address: int
    slot: int  # where it looks for the kernel's address
    broken: int  # the address of what returns an error
    put: Any  # the function that puts an address into a slot

    def open(self, kernel: int | None) -> None:
        """Passes all calls on to a kernel; without one, they return an error."""
        self.put(self.slot, self.broken if kernel is None else kernel)


def entries_of(engine: Any) -> list[Entry]:
    """Returns the entries of a compiled `ENTRIES`."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
    put, broken = (
        kind(engine.get_function_address("put")),
        engine.get_function_address("broken"),
    )
    return [
        Entry(
            engine.get_function_address(f"entry_{k}"),
            engine.get_global_value_address(f"slot_{k}"),
            broken,
            put,
        )
        for k in range(_TOGETHER)
    ]


# Offsets are those of `_handler`; of `api`, that of the function that makes an error is 48, whose
# arguments are the size of their structure, an extension, a message and a code (13: internal).
_COMMON = """
declare i32 @sched_yield()

@message = internal constant [45 x i8] c"LLVM could not compile a kernel: see the log\\00"

define void @put(ptr %slot, ptr %kernel) {
  store atomic ptr %kernel, ptr %slot release, align 8
  ret void
}

define ptr @broken(ptr %frame) {
  %request = alloca [4 x i64]
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %error.at = getelementptr i8, ptr %api, i64 48
  %error = load ptr, ptr %error.at
  %size.at = getelementptr i8, ptr %request, i64 0
  store i64 32, ptr %size.at
  %extension.at = getelementptr i8, ptr %request, i64 8
  store ptr null, ptr %extension.at
  %message.at = getelementptr i8, ptr %request, i64 16
  store ptr @message, ptr %message.at
  %code.at = getelementptr i8, ptr %request, i64 24
  store i64 13, ptr %code.at
  %made = call ptr %error(ptr %request)
  ret ptr %made
}

define internal ptr @enter(ptr %frame, ptr %slot) {
  %extension.at = getelementptr i8, ptr %frame, i64 8
  %extension = load ptr, ptr %extension.at
  %is.call = icmp eq ptr %extension, null
  br i1 %is.call, label %wait, label %version
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
wait:
  %kernel = load atomic ptr, ptr %slot acquire, align 8
  %missing = icmp eq ptr %kernel, null
  br i1 %missing, label %yield, label %go
yield:
  %yielded = call i32 @sched_yield()
  br label %wait
go:
  %result = call ptr %kernel(ptr %frame)
  ret ptr %result
}
"""

_ENTRY = """
@slot_{k} = global ptr null, align 8

define ptr @entry_{k}(ptr %frame) {{
  %result = call ptr @enter(ptr %frame, ptr @slot_{k})
  ret ptr %result
}}
"""

ENTRIES = _COMMON + "".join(_ENTRY.format(k=k) for k in range(_TOGETHER))
