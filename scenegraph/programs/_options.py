"""XLA's options for programs that run seldom, and where they can be chosen."""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax

from .._jax import HAS_PRIMITIVES, trace_state_clean


# XLA keeps to half of the widest vectors, because the first processors that had them lower their
# clock for them. Results are the same but for rounding.
FOR_MANY_RUNS: Mapping[str, Any] = MappingProxyType({"xla_cpu_prefer_vector_width": 512})

# For programs that run once or twice: compiled several times sooner, several times slower; and for
# those that run a hundred times: compiled in half of the time, a quarter slower. Some versions of
# XLA know fewer: see `known_options`.
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
# For pieces that compute much: they are small, so that XLA need not split them for its threads.
FOR_MUCH_IN_PIECES: Mapping[str, Any] = MappingProxyType(
    {**FOR_SOME_RUNS, "xla_cpu_parallel_codegen_split_count": 1}
)

# For long programs that run often. Without XLA's newer emitters, those of more equations than this
# outside of kernels are compiled a fifth sooner, in a third of the memory, and run as fast.
FOR_LONG_PROGRAMS: Mapping[str, Any] = MappingProxyType(
    {"xla_cpu_use_fusion_emitters": False, **FOR_MANY_RUNS}
)
_LONG = 4_000


def options_by_length(equations: int) -> Mapping[str, Any]:
    """Returns the options for a program of so many equations that runs often."""
    return FOR_LONG_PROGRAMS if equations > _LONG else FOR_MANY_RUNS


def known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those options that this version's compiler knows; an unknown one ends compiling."""
    if _are_known(*options.items()):
        return dict(options)
    return {name: value for name, value in options.items() if _are_known((name, value))}


@functools.cache
def _are_known(*options: tuple[str, Any]) -> bool:
    program = jax.jit(lambda: 0).lower()
    try:
        program.compile(compiler_options=dict(options))
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        return False
    return True


def can_be_quick() -> bool:
    """Returns true where a program's options can be chosen: not while tracing, and on a CPU.

    And where JAX was not asked to find what goes wrong, for which it needs the function itself.
    """
    config: Any = jax.config  # its type lacks the settings
    searching = config.jax_disable_jit or config.jax_debug_nans or config.jax_debug_infs
    known = HAS_PRIMITIVES and not searching
    return known and trace_state_clean() and jax.default_backend() == "cpu"
