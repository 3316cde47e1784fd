"""Room for compiled programs, and memory for what they compute.

Compiling takes several hundred megabytes, which the C library keeps for later unless it is asked.
What programs compute with, it gives back to the system, and asks for again in every turn: a sixth
of the time of a mesh's picture went into pages that the system cleared anew.

Linux lets a process have 65,530 pieces of memory only. On a CPU, XLA maps some 1,700 for a picture
of ten balls, and 3,500 for its gradient. One piece too many would end the process, with no more
than "Cannot allocate memory".
"""

import ctypes
import functools
import gc
import os
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import jax

from .._jax import trace_state_clean


_MAPS = pathlib.Path("/proc/self/maps")
_LIMIT = pathlib.Path("/proc/sys/vm/max_map_count")
# The part of all pieces from which on programs are forgotten: the next may need thousands; and the
# part by which there are more of them than others hold, or else forgetting gains nothing.
_PART, _GAIN = 0.6, 0.1
# Both take up to 60 ms, and wait until so many seconds have gone into compiling.
_SECONDS = 1.0

# Options of GNU's `mallopt`, by the numbers that its header gives them: memory is not given back
# unless it is asked for, comes in pieces of this size, and large arrays are not kept apart.
_TRIM, _TOP_PAD, _APART = -1, -2, -4
_KEEP = {_TRIM: 2**31 - 1, _TOP_PAD: 2**26, _APART: 0}
# Who sets any of these knows better.
_OWN = "MALLOC_", "GLIBC_TUNABLES"

# The event of JAX that says how long compiling took.
_BACKEND_COMPILE = "/jax/core/compile/backend_compile_duration"

_compiled = {"seconds": 0.0}
_held = {"pieces": 0}


def _add_up(event: str, duration_secs: float, **_: object) -> None:
    if event == _BACKEND_COMPILE:
        _compiled["seconds"] += duration_secs


jax.monitoring.register_event_duration_secs_listener(_add_up)


def make_room_for_programs() -> None:
    """Gives back what compiling took, and forgets programs before the system allows no more pieces.

    While something is traced, a warning says what to do instead.
    """
    keep_memory()
    if _compiled["seconds"] < _SECONDS:
        return
    _compiled["seconds"] = 0.0
    if give_back := _of_c_library("malloc_trim"):
        give_back(0)
    pieces, most = _count_pieces(), _most_pieces()
    if most is None or pieces < max(_PART * most, _held["pieces"] + _GAIN * most):
        return
    if trace_state_clean():
        jax.clear_caches()
        gc.collect()
        _held["pieces"] = _count_pieces()
        return
    warnings.warn(
        f"compiled programs fill {pieces:,} of the {most:,} pieces of memory that this process may "
        "map, and one too many ends it: call `jax.clear_caches()` before you compile more, or "
        "raise the limit with `sysctl vm.max_map_count`.",
        stacklevel=3,
    )


@functools.cache
def keep_memory() -> bool:
    """Has GNU's C library keep freed memory for later; returns whether it does, and asks once."""
    if any(name.startswith(_OWN) for name in os.environ) or jax.default_backend() != "cpu":
        return False
    change = _of_c_library("mallopt")
    return change is not None and all(change(*option) for option in _KEEP.items())


@functools.cache
def _of_c_library(name: str) -> Callable[..., Any] | None:
    """Returns a function of GNU's C library; of others, which lack it, none."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None


def _count_pieces() -> int:
    return _MAPS.read_bytes().count(b"\n") if _MAPS.exists() else 0


def _most_pieces() -> int | None:
    """Returns the system's limit; `None` where it has none, or does not say."""
    return int(_LIMIT.read_text()) if _LIMIT.exists() else None
