"""Compiled programs: those that are compiled soon, and room for all of them.

Linux lets a process have 65,530 pieces of memory only. On a CPU, XLA maps some 1,700 for a picture
of ten balls, and 3,500 for its gradient. One piece too many would end the process, with no more
than "Cannot allocate memory".
"""

import functools
import gc
import pathlib
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import equinox as eqx
import jax
from jax._src.core import trace_state_clean
from jax._src.dispatch import BACKEND_COMPILE_EVENT


# XLA's options for programs that run once or twice: compiled several times sooner, several times
# slower; and for those that run a hundred times: compiled in half of the time, a quarter slower.
# Some versions of XLA know fewer: see `known_options`.
FOR_A_FEW_RUNS: Mapping[str, Any] = MappingProxyType(
    {
        "xla_backend_optimization_level": 0,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
)
FOR_SOME_RUNS: Mapping[str, Any] = MappingProxyType(
    {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
)

F = TypeVar("F", bound=Callable[..., Any])


def quick_jit(options: Mapping[str, Any]) -> Callable[[F], F]:
    """Compiles functions that run seldom: soon rather than well, where that can be chosen."""

    def decorate(function: F) -> F:
        fast, quick = eqx.filter_jit(function), QuickProgram(function, options)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (quick if can_be_quick() else fast)(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate


class QuickProgram:
    """A function compiled with those of some options that this version's compiler knows."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]):
        self._function, self._options = function, options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program(*args, **kwargs)

    @functools.cached_property
    def _program(self) -> Callable[..., Any]:
        # Its types lack the arguments that it passes on to `jax.jit`.
        jit: Any = eqx.filter_jit
        return jit(self._function, compiler_options=known_options(self._options))


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those options that this version's compiler knows; an unknown one ends compiling."""
    return {name: value for name, value in options.items() if _is_known(name, value)}


@functools.cache
def _is_known(name: str, value: Any) -> bool:
    program = jax.jit(lambda: 0).lower()
    try:
        program.compile(compiler_options={name: value})
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True


def can_be_quick() -> bool:
    """Returns true where a program's options can be chosen: not while tracing, and on a CPU."""
    return trace_state_clean() and jax.default_backend() == "cpu"


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
