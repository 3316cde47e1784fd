import abc
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from ..io import append_json
from ._flat import Flat
from ._state import FitState, StepInfo


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of a fit, as callbacks see it.

    **Arguments:**

    - `step`: the number of steps taken.
    - `packed`: the fit's state after them, perhaps as a plain list of arrays; `state` unpacks it.
    - `info`: the last step's loss and gradient norm.
    - `seconds`: the time since the fit began, compilation included.
    - `rate`: steps a second, over the last 20 seconds.
    - `first`: true in the first process of the fit, which alone should write files.
    """

    step: int
    packed: FitState | Flat
    info: StepInfo
    seconds: float
    rate: float
    first: bool = True

    @property
    def state(self) -> FitState:
        """The fit's state after the step."""
        return self.packed.tree if isinstance(self.packed, Flat) else self.packed

    def psnr(self) -> float | None:
        """Returns the PSNR of the last batch, or `None` for losses without one.

        **Returns:**

        Decibels, of the finest level.
        """
        values = getattr(self.state.extra, "psnr", None)
        return None if values is None else float(values[-1])

    def left_out(self) -> int:
        """Returns how many rays of the last batch did not count, for want of samples or layers.

        **Returns:**

        Their number; 0 for losses that count none.
        """
        return int(getattr(self.state.extra, "left_out", 0))


class AbstractCallback(abc.ABC):
    """A function that a fit calls every so many steps, and that may end the fit.

    Where several processes fit together, it is called in all of them, and ends the fit if it
    returns true in any of them. Implementations have a field `every`, the steps between calls.
    """

    every: int

    @abc.abstractmethod
    def __call__(self, progress: Progress) -> bool:
        """Reacts to the progress after every `every`-th step, and after the last.

        **Arguments:**

        - `progress`: the number of the step, the state after it, its loss.

        **Returns:**

        True to end the fit.
        """


@dataclasses.dataclass(frozen=True)
class JsonLines(AbstractCallback):
    """Appends a line of JSON to a file: step, loss, PSNR, gradient, time, and what did not count.

    **Arguments:**

    - `path`: the path of the file.
    - `every`: steps between lines.
    - `rays`: the number of rays in a batch, to report rays a second; 0 if there are none.
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
            "left_out": progress.left_out(),
            "seconds": round(progress.seconds, 3),
            "rays_per_second": round(progress.rate * self.rays, 1),
        }
        if progress.first:
            append_json(self.path, line)
        return False


@dataclasses.dataclass(frozen=True)
class Every(AbstractCallback):
    """Calls any function.

    **Arguments:**

    - `every`: steps between calls.
    - `function`: a function of the `Progress`; its result is ignored.
    """

    every: int
    function: Any

    def __call__(self, progress: Progress) -> bool:
        self.function(progress)
        return False


# The number of steps of a fit that only the clock ends.
ENDLESS = 10**7


@dataclasses.dataclass(frozen=True)
class Deadline:
    """The time at which a fit ends, and an estimate of the steps until then.

    **Arguments:**

    - `at`: the end, as a time of `time.monotonic()`; or a function that returns it, where it may
      still move.
    """

    at: float | Callable[[], float]

    def horizon(self, step: int, steps: int, rate: float) -> float:
        """Estimates how many of `steps` the fit will have taken in the end.

        `rate` is in steps a second; 0 if not known yet.
        """
        # min(steps, step + rate * time left)
        left = self.seconds_left()
        return float(steps if rate == 0 and left > 0 else min(steps, step + rate * left))

    def seconds_left(self) -> float:
        """Computes how many seconds it is until the end."""
        at = self.at() if callable(self.at) else self.at
        return max(0.0, at - time.monotonic())
