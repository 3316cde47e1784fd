"""The circumstances of a fit into a run folder, and the ways in which it ends early."""

import dataclasses
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..fitting import AbstractCallback, Console, SignsOfLife
from ..rendering import Track
from ._run import silent


# Called with what is being done; the context ends when it is done.
Phase = Callable[[str], AbstractContextManager[Any]]
# Called with the steps between lines and the rays of a step; gives callbacks that show the steps.
Steps = Callable[[int, int], AbstractContextManager[Sequence[AbstractCallback]]]


def show_lines(every: int, rays: int) -> AbstractContextManager[Sequence[AbstractCallback]]:
    """Shows the steps of a fit as lines of text."""
    console = Console(every, rays)
    return nullcontext([console, SignsOfLife(console)])


class Stopped(Exception):
    """A fit that a signal has ended, after its state was saved."""

    def __init__(self, received: int, message: str):
        self.received, self.message = received, message


class TooFewSteps(Exception):
    """A fit that the clock has ended before it could learn anything, after its report."""


@dataclasses.dataclass(frozen=True)
class Processes:
    """The processes that fit together; by default one alone."""

    is_first: bool = True
    from_first: Callable[[Any], Any] = lambda value: value  # the value of the first process
    largest: Callable[[int], int] = lambda number: number  # the largest number of any process


@dataclasses.dataclass
class Milestones:
    """The milestones of a fit, for those who watch it from another thread."""

    stepped: threading.Event = dataclasses.field(default_factory=threading.Event)
    saved: threading.Event = dataclasses.field(default_factory=threading.Event)
    code: int = 0  # the exit code, once the last state is saved


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """The circumstances of a fit into a run folder, which its settings do not hold.

    **Arguments:**

    - `preset`: the name of the preset from which the settings come, to be remembered.
    - `resume`: if true, the fit goes on from the newest whole checkpoint, or begins where none is
      saved yet.
    - `limit`: the time, in seconds, in which fit and report are to be finished; `None` for none.
    - `elapsed`: the part of `limit` that has passed already, in seconds.
    - `target_psnr`: the PSNR on held-out pictures, in decibels, that ends the fit; `None` for none.
      Training pictures never end it.
    - `tensorboard`: if true, curves and pictures are written for TensorBoard.
    - `profile`: if true, a few steps are recorded for a profiler.
    - `processes`: the processes that fit together.
    - `say`: a function that is called with messages about the progress.
    - `phase`: a function of a message that returns a context, in which what it says is done.
    - `steps`: a function of the steps between lines and the number of rays in a step; returns a
      context of callbacks that show the progress of the steps.
    - `milestones`: a record of how far the fit has come, which is noted there on the way.
    - `track`: an iterator over the frame numbers of the film, which may show progress.
    """

    preset: str = ""
    resume: bool = False
    limit: float | None = None
    elapsed: float = 0.0
    target_psnr: float | None = None
    tensorboard: bool = False
    profile: bool = False
    processes: Processes = Processes()
    say: Callable[[str], Any] = silent
    phase: Phase = nullcontext
    steps: Steps = show_lines
    track: Track = iter
    milestones: Milestones = dataclasses.field(default_factory=Milestones)
