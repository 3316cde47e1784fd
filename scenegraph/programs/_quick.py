"""Functions that are compiled soon rather than well."""

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ._options import can_be_quick, FOR_A_FEW_RUNS, FOR_MUCH_IN_PIECES, known_options
from ._pieces import Cut, InPieces, INTO_PIECES
from ._traced import Call, known_of, take_apart, Traced, TracedFunction


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
        of_much: Mapping[str, Any] = FOR_MUCH_IN_PIECES,
        cut: Cut = INTO_PIECES,
    ):
        self.traced = function if isinstance(function, TracedFunction) else TracedFunction(function)
        self._lock = threading.Lock()
        self._whole = QuickProgram(self.traced.function, options)
        self._how = options, of_much, cut

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(take_apart(args, kwargs))

    def run(self, call: Call) -> Any:
        """Computes a call."""
        arrays = [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in call.arrays]
        devices = {device for x in arrays if x.committed for device in x.devices()}
        if len(devices) > 1:
            return self._whole(*call.args, **call.kwargs)
        device = devices.pop() if devices else None
        made = known_of(self, call.kind)
        with self._lock, jax.default_device(device):
            if device not in made:
                traced = self.traced(call)
                # Without the equations, which take much memory.
                made[device] = self._compile(traced), traced._replace(jaxpr=None)
            pieces, traced = made[device]
        return traced.put_together(pieces(*arrays))

    def forget(self, call: Call) -> None:
        """Forgets the program for arguments of a kind."""
        known_of(self, call.kind).clear()

    def _compile(self, traced: Traced) -> InPieces:
        options, of_much, cut = self._how
        return InPieces(traced.jaxpr, known_options(options), known_options(of_much), cut)
