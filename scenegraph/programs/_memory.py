"""Room for compiled programs.

Compiling takes several hundred megabytes, which the C library keeps for later unless it is asked.

Linux lets a process have 65,530 pieces of memory only. On a CPU, XLA maps some 1,700 for a picture
of ten balls, and 3,500 for its gradient. One piece too many would end the process, with no more
than "Cannot allocate memory".
"""

import ctypes
import functools
import gc
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import jax
from jax._src.core import trace_state_clean
from jax._src.dispatch import BACKEND_COMPILE_EVENT


_MAPS = pathlib.Path("/proc/self/maps")
_LIMIT = pathlib.Path("/proc/sys/vm/max_map_count")
# The part of all pieces from which on programs are forgotten: the next may need thousands; and the
# part by which there are more of them than others hold, or else forgetting gains nothing.
_PART, _GAIN = 0.6, 0.1
# Both take up to 60 ms, and wait until so many seconds have gone into compiling.
_SECONDS = 1.0

_compiled = {"seconds": 0.0}
_held = {"pieces": 0}


def _add_up(event: str, duration_secs: float, **_: object) -> None:
    if event == BACKEND_COMPILE_EVENT:
        _compiled["seconds"] += duration_secs


jax.monitoring.register_event_duration_secs_listener(_add_up)


def make_room_for_programs() -> None:
    """Gives back what compiling took, and forgets programs before the system allows no more pieces.

    While something is traced, a warning says what to do instead.
    """
    if _compiled["seconds"] < _SECONDS:
        return
    _compiled["seconds"] = 0.0
    _give_back_memory()(0)
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
def _give_back_memory() -> Callable[[int], Any]:
    """Returns what gives free memory back to the system: a function of GNU's C library."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda kept: None


def _count_pieces() -> int:
    return _MAPS.read_bytes().count(b"\n") if _MAPS.exists() else 0


def _most_pieces() -> int | None:
    """Returns the system's limit; `None` where it has none, or does not say."""
    return int(_LIMIT.read_text()) if _LIMIT.exists() else None
