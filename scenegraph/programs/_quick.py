"""Functions that are compiled soon rather than well."""

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ._options import can_be_quick, FOR_A_FEW_RUNS, FOR_SOME_RUNS, known_options
from ._pieces import Cut, InPieces, INTO_PIECES
from ._traced import kind_of, known_of, Traced, TracedFunction


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
    """A function compiled in pieces, beside each other; not for traced arguments.

    By default it is for a few runs, but pieces that compute much are optimised a little. On several
    devices, the program stays whole.
    """

    def __init__(
        self,
        function: Callable[..., Any] | TracedFunction,
        options: Mapping[str, Any] = FOR_A_FEW_RUNS,
        of_much: Mapping[str, Any] = FOR_SOME_RUNS,
        cut: Cut = INTO_PIECES,
    ):
        self.traced = function if isinstance(function, TracedFunction) else TracedFunction(function)
        self._lock = threading.Lock()
        self._whole = QuickProgram(self.traced.function, options)
        self._how = options, of_much, cut

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arrays = [jnp.asarray(x) for x in jax.tree.leaves((args, kwargs)) if eqx.is_array(x)]
        devices = {device for x in arrays if x.committed for device in x.devices()}
        if len(devices) > 1:
            return self._whole(*args, **kwargs)
        device = devices.pop() if devices else None
        made = known_of(self, kind_of((args, kwargs)))
        with self._lock, jax.default_device(device):
            if device not in made:
                made[device] = self._compile(self.traced(*args, **kwargs))
            pieces, structure, static = made[device]
        return eqx.combine(jax.tree.unflatten(structure, pieces(*arrays)), static)

    def forget(self, *args: Any, **kwargs: Any) -> None:
        """Forgets the program for arguments of a kind."""
        known_of(self, kind_of((args, kwargs))).clear()

    def _compile(self, traced: Traced) -> tuple[InPieces, Any, Any]:
        """Returns the program, the structure of its results, and those that are no arrays."""
        options, of_much, cut = self._how
        pieces = InPieces(traced.jaxpr, known_options(options), known_options(of_much), cut)
        return pieces, traced.structure, traced.static
