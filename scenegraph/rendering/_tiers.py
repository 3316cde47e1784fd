"""Tiered compilation: a picture's first program is compiled soon; one that runs fast, once it pays.

Compiling is most of the time of a first picture. Without optimisations XLA compiles a picture of
ten balls in 1.9 instead of 9.3 s of CPU time, but then it takes 0.19 instead of 0.04 s. Whether
there will be a second picture is not known, so a scene's first ones are drawn by the first program.
Once their running has taken as long as optimising would have, the second is compiled: no sequence
of pictures takes much more than twice as long as with the better choice.
"""

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax

from ..programs import (
    can_be_quick,
    FOR_SOME_RUNS,
    kind_of,
    ProgramInPieces,
    QuickProgram,
)


# Optimising takes so many times what all else of a first call does, apart from running: 2 for ten
# balls, 1.3 for scenes of many kinds.
_LONGER = 1.5

# So many pictures are drawn by the first program, where their number is known.
_FEW = 8

# False where more pictures than that are expected.
_few_expected = contextvars.ContextVar("few_expected", default=True)


@contextlib.contextmanager
def expect_pictures(count: int) -> Iterator[None]:
    """Says that so many pictures of one kind come: many are optimised from the first one on."""
    token = _few_expected.set(_few_expected.get() and count <= _FEW)
    try:
        yield
    finally:
        _few_expected.reset(token)


class _Calls:
    """The seconds that calls of a quickly compiled program took."""

    def __init__(self) -> None:
        self.first, self.others, self.count = 0.0, 0.0, 0

    def add(self, seconds: float) -> None:
        """Adds a call."""
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


class TieredPicture:
    """A compiled function that draws a picture: soon at first, and fast after several calls."""

    def __init__(self, function: Callable[..., Any]):
        self.fast = eqx.filter_jit(function)
        # Of very many things, loops over rows are most of the time, for which XLA's newer emitters
        # do not matter: as fast, and compiled sooner.
        self._of_many = QuickProgram(function, FOR_SOME_RUNS)
        self._quick = ProgramInPieces(function)
        self._calls: dict[Any, _Calls] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Draws; within traced functions, this is `fast`."""
        return self._draw(self.fast, *arguments)

    def draw_many(self, *arguments: Any) -> Any:
        """Draws a scene of very many things."""
        return self._draw(self._of_many if can_be_quick() else self.fast, *arguments)

    def _draw(self, fast: Callable[..., Any], *arguments: Any) -> Any:
        if not (_few_expected.get() and can_be_quick()):
            return fast(*arguments)
        calls = self._calls.setdefault(kind_of(arguments), _Calls())
        if calls.suffice:
            return fast(*arguments)
        begin = time.perf_counter()
        results = jax.block_until_ready(self._quick(*arguments))
        calls.add(time.perf_counter() - begin)
        return results
