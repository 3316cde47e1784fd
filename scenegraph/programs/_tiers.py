"""Tiered compilation: a first program is compiled soon, and one that runs fast once it pays.

Compiling is most of the time of a first picture, or of a first gradient. Without optimisations and
in pieces it takes a third to a half, but then the program takes several times as long. Whether
there will be many calls is not known, so a function's first ones are computed by the first program.
Once their running has taken as long as optimising would have, the second is compiled: no sequence
of calls takes much more than twice as long as with the better choice.

The second is one program, but for loops of independent turns, which threads share.
"""

import contextlib
import contextvars
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax

from .._garbage import defer_garbage_collection, keep_new_objects
from ._memory import make_room_for_programs
from ._options import can_be_quick, options_by_length
from ._pieces import AT_SHARED_TURNS, shares_turns
from ._quick import ProgramInPieces, QuickProgram
from ._traced import Call, take_apart, TracedFunction
from ._work import count_outside_of_kernels


# Optimising takes so many times what all else of a first call does, apart from running.
_LONGER = 2.0

# So many calls are computed by the first program, where their number is known.
_FEW = 8

# False where more calls than that are expected.
_few_expected = contextvars.ContextVar("few_expected", default=True)

F = TypeVar("F", bound=Callable[..., Any])


def tiered_jit(function: F) -> F:
    """Compiles a function soon at first, and well once that pays.

    Like `equinox.filter_jit`, for a gradient or a picture that may be wanted only a few times. The
    first program is not optimised; it is cut into pieces that are compiled beside each other, so
    that a first call takes about half as long, and later ones several times as long. As soon as
    running has taken as long as optimising would have, the function is optimised. In a traced
    function, and elsewhere than on a CPU, this is `equinox.filter_jit`.

    Long loops whose turns need nothing of each other, of `jax.lax.map` or the gradient of one,
    are shared out to threads, one for every core that the process may use, up to sixteen.

    **Arguments:**

    - `function`: a function of pytrees, such as `equinox.filter_value_and_grad(loss)`. Its arrays
      are traced; all else must have a hash, and is fixed for one compilation.

    **Returns:**

    The function, with the same arguments and results.
    """
    tiered = TieredFunction(function, options_by_length)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        make_room_for_programs()
        return tiered(*args, **kwargs)

    return call  # pyright: ignore[reportReturnType]


@contextlib.contextmanager
def expect_calls(count: int) -> Iterator[None]:
    """Says that so many calls of one kind come: many are optimised from the first one on."""
    token = _few_expected.set(_few_expected.get() and count <= _FEW)
    try:
        yield
    finally:
        _few_expected.reset(token)


class _Calls:
    """The calls of a quickly compiled program, and the program that comes after it."""

    def __init__(self) -> None:
        self.first, self.others, self.count = 0.0, 0.0, 0
        self.later: Callable[[Call], Any] | None = None

    def add(self, seconds: float) -> None:
        """Adds a call, that took so long."""
        if self.count == 0:
            self.first = seconds
        else:
            self.others += seconds
        self.count += 1

    @property
    def suffice(self) -> bool:
        """True once running has taken as long as optimising would have."""
        if self.count < 2:
            return False
        # The first call ran, too: all else of it was tracing and compiling.
        run = self.others / (self.count - 1)
        return self.count * run >= _LONGER * (self.first - run)


class TieredFunction:
    """A function that is compiled soon at first, and fast after several calls.

    Its second program may have options of its own, by the number of its equations.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: Callable[[int], Mapping[str, Any]] | None = None,
    ):
        self.fast = eqx.filter_jit(function)
        self._traced, self._options = TracedFunction(function), options
        self._quick = ProgramInPieces(self._traced)
        self._whole = functools.cache(lambda options: QuickProgram(function, dict(options)))
        self._shared = functools.cache(functools.partial(_share_turns, self._traced))
        self._calls: dict[Any, _Calls] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Computes; within traced functions, this is `fast`."""
        # Tracing is quicker without collections.
        with defer_garbage_collection():
            return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        many = not _few_expected.get()
        if not can_be_quick():
            return self.fast(*args, **kwargs)
        call = take_apart(args, kwargs)
        calls = self._calls.setdefault(call.kind, _Calls())
        if not calls.count and calls.later is None and self._traced(call).jaxpr.effects:
            # Callbacks keep their order and their number in one program.
            calls.later = lambda call: self.fast(*call.args, **call.kwargs)
        if calls.later is None and (calls.suffice or many):
            calls.later = self._later(self._traced(call).jaxpr.eqns)
            self._quick.forget(call)
            results = calls.later(call)
            self._traced.forget(call)
            return results
        if calls.later is not None:
            return calls.later(call)
        begin = time.perf_counter()
        results = jax.block_until_ready(self._quick.run(call))
        if calls.count == 0:
            # What compiling made stays, too.
            keep_new_objects()
        calls.add(time.perf_counter() - begin)
        return results

    def _later(self, equations: Sequence[Any]) -> Callable[[Call], Any]:
        """Returns the second program of some equations."""
        length = sum(map(count_outside_of_kernels, equations))
        options = {} if self._options is None else self._options(length)
        chosen = tuple(sorted(options.items()))
        if any(shares_turns(x, AT_SHARED_TURNS) for x in equations):
            return self._shared(chosen).run
        whole = self._whole(chosen) if chosen else self.fast
        return lambda call: whole(*call.args, **call.kwargs)


def _share_turns(function: TracedFunction, options: tuple[tuple[str, Any], ...]) -> Any:
    """Returns a function as one optimised program, but for loops that threads share."""
    return ProgramInPieces(function, dict(options), dict(options), AT_SHARED_TURNS)
