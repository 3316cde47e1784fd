"""Functions that are compiled soon rather than well."""

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax._src.util import weakref_lru_cache

from .._typing import PyTree
from ._options import can_be_quick, FOR_A_FEW_RUNS, FOR_SOME_RUNS, known_options
from ._pieces import InPieces


F = TypeVar("F", bound=Callable[..., Any])


def quick_jit(options: Mapping[str, Any]) -> Callable[[F], F]:
    """Compiles functions that run seldom: soon rather than well, where that can be chosen."""

    def decorate(function: F) -> F:
        fast = eqx.filter_jit(function)
        in_pieces = options is FOR_A_FEW_RUNS
        quick = ProgramInPieces(function) if in_pieces else QuickProgram(function, options)

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


class ProgramInPieces:
    """A function compiled in pieces, beside each other, for a few runs; not for traced arguments.

    Pieces that compute much are optimised a little. On several devices, the program stays whole.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function, self._lock = function, threading.Lock()
        self._whole = QuickProgram(function, FOR_A_FEW_RUNS)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arrays = [jnp.asarray(x) for x in jax.tree.leaves((args, kwargs)) if eqx.is_array(x)]
        devices = {device for x in arrays if x.committed for device in x.devices()}
        if len(devices) > 1:
            return self._whole(*args, **kwargs)
        device = devices.pop() if devices else None
        made = _made(self, kind_of((args, kwargs)))
        with self._lock, jax.default_device(device):
            if device not in made:
                made[device] = self._compile(args, kwargs)
            pieces, structure, static = made[device]
        return eqx.combine(jax.tree.unflatten(structure, pieces(*arrays)), static)

    def length(self, *args: Any, **kwargs: Any) -> int:
        """Returns the number of equations of arguments of a kind, if they are compiled."""
        made = _made(self, kind_of((args, kwargs))).values()
        return max((pieces.length for pieces, *_ in made), default=0)

    def forget(self, *args: Any, **kwargs: Any) -> None:
        """Forgets the program for arguments of a kind."""
        _made(self, kind_of((args, kwargs))).clear()

    def _compile(self, args: Any, kwargs: Any) -> tuple[InPieces, Any, PyTree]:
        """Returns the program, the structure of its results, and those that are no arrays."""
        jaxpr, results, static = eqx.filter_make_jaxpr(self._function)(*args, **kwargs)
        options = known_options(FOR_A_FEW_RUNS), known_options(FOR_SOME_RUNS)
        return InPieces(jaxpr, *options), jax.tree.structure(results), static


@weakref_lru_cache
def _made(program: ProgramInPieces, kind: Any) -> dict[Any, Any]:
    """Holds what was compiled for a kind, by device, until JAX's caches are cleared."""
    return {}


def kind_of(tree: PyTree) -> Any:
    """Returns what trees have in common that are compiled to the same program."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(map(_kind_of_leaf, leaves))


def _kind_of_leaf(x: Any) -> Any:
    if isinstance(x, jax.Array):
        # What is weak takes the type of what it is combined with.
        return jax.typeof(x)
    # Numbers of different types are equal, but need not give the same program.
    return (x.shape, x.dtype) if isinstance(x, np.ndarray) else (type(x), x)
