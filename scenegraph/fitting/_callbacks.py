import abc
import dataclasses
import os
import time
from typing import Any

from ..io import append_json
from ._flat import Flat
from ._state import FitState, StepInfo


@dataclasses.dataclass(frozen=True)
class Progress:
    """What a callback sees.

    **Arguments:**

    - `step`: how many steps have been taken.
    - `held`: the fit's state after them, perhaps still in pieces: ask for `state`.
    - `info`: what the last step told.
    - `seconds`: since the fit began, compilation included.
    - `rate`: steps a second, lately.
    - `first`: whether this is the first process of the fit, which alone should write files.
    """

    step: int
    held: FitState | Flat
    info: StepInfo
    seconds: float
    rate: float
    first: bool = True

    @property
    def state(self) -> FitState:
        """The fit's state after the step."""
        return self.held.tree if isinstance(self.held, Flat) else self.held

    def psnr(self) -> float | None:
        """Of the finest level on the last batch, in decibels; `None` for losses without one.

        **Returns:**

        A number.
        """
        values = getattr(self.state.extra, "psnr", None)
        return None if values is None else float(values[-1])


class AbstractCallback(abc.ABC):
    """Something to do every so many steps; it may end the fit.

    Where several processes fit together, it is called in all of them, and ends the fit if any of
    them wishes so.
    """

    every: int

    @abc.abstractmethod
    def __call__(self, progress: Progress) -> bool:
        """Called after every `every`-th step, and after the last.

        **Arguments:**

        - `progress`: how the fit stands.

        **Returns:**

        True to end the fit.
        """


@dataclasses.dataclass(frozen=True)
class JsonLines(AbstractCallback):
    """Appends a line of JSON to a file: step, loss, PSNR, gradient, skipped steps, time, speed.

    **Arguments:**

    - `path`: of the file.
    - `every`: steps between lines.
    - `rays`: in a batch, to report rays a second; 0 if that makes no sense.
    """

    path: str | os.PathLike
    every: int = 100
    rays: int = 0

    def __call__(self, progress: Progress) -> bool:
        line = {
            "step": progress.step,
            "loss": float(progress.info.loss),
            "psnr": progress.psnr(),
            "gradient_norm": float(progress.info.gradient_norm),
            "skipped": int(progress.state.skipped),
            "seconds": round(progress.seconds, 3),
            "rays_per_second": round(progress.rate * self.rays, 1),
        }
        if progress.first:
            append_json(self.path, line)
        return False


@dataclasses.dataclass(frozen=True)
class Every(AbstractCallback):
    """Calls a function.

    **Arguments:**

    - `every`: steps between calls.
    - `function`: of the `Progress`; what it returns is ignored.
    """

    every: int
    function: Any

    def __call__(self, progress: Progress) -> bool:
        self.function(progress)
        return False


@dataclasses.dataclass(frozen=True)
class Deadline:
    """When to stop, and how many steps may be expected until then.

    **Arguments:**

    - `at`: a time of `time.monotonic()`.
    """

    at: float

    def horizon(self, step: int, steps: int, rate: float) -> float:
        """How many steps there will have been in the end.

        **Arguments:**

        - `step`: taken so far.
        - `steps`: wished for.
        - `rate`: steps a second; 0 if not known yet.

        **Returns:**

        At most `steps`.
        """
        left = max(0.0, self.at - time.monotonic())
        return float(steps if rate == 0 and left > 0 else min(steps, step + rate * left))
