"""Room for compiled programs.

Linux lets a process have 65,530 pieces of memory only. On a CPU, XLA maps some 1,700 for a picture
of ten balls, and 3,500 for its gradient. One piece too many would end the process, with no more
than "Cannot allocate memory".
"""

import gc
import pathlib
import warnings

import jax
from jax._src.core import trace_state_clean
from jax._src.dispatch import BACKEND_COMPILE_EVENT


_MAPS = pathlib.Path("/proc/self/maps")
_LIMIT = pathlib.Path("/proc/sys/vm/max_map_count")
# The part of all pieces from which on programs are forgotten: the next may need thousands; and the
# part by which there are more of them than others hold, or else forgetting gains nothing.
_PART, _GAIN = 0.6, 0.1
# Counting takes up to 40 ms, and waits until so many seconds have gone into compiling.
_SECONDS = 1.0

_compiled = {"seconds": 0.0}
_held = {"pieces": 0}


def _add_up(event: str, duration_secs: float, **_: object) -> None:
    if event == BACKEND_COMPILE_EVENT:
        _compiled["seconds"] += duration_secs


jax.monitoring.register_event_duration_secs_listener(_add_up)


def make_room_for_programs() -> None:
    """Forgets compiled programs before there are more pieces of them than the system allows.

    While something is traced, a warning says what to do instead.
    """
    if _compiled["seconds"] < _SECONDS:
        return
    _compiled["seconds"] = 0.0
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


def _count_pieces() -> int:
    return _MAPS.read_bytes().count(b"\n") if _MAPS.exists() else 0


def _most_pieces() -> int | None:
    """Returns the system's limit; `None` where it has none, or does not say."""
    return int(_LIMIT.read_text()) if _LIMIT.exists() else None
