"""The number of a fit's last step, as far as it is known while the fit goes on."""

import dataclasses
import time
from collections.abc import Callable

from ..parallel import Agreement
from ._state import FitState


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


class LastStep:
    """The estimate of the last step, by which schedules go: `horizon`, equal in all processes."""

    def __init__(self, begin: FitState, steps: int, deadline: Deadline | None, agree: Agreement):
        self._steps, self._deadline, self._agree = steps, deadline, agree
        self.horizon, number = float(steps), int(begin.step)
        if deadline is not None and number > 0:
            # A fit that goes on by the clock begins with the learning rate with which it ended.
            self.horizon = self._later(number, float(begin.horizon))

    def estimate(self, number: int, rate: float) -> float:
        """Estimates the last step after `number` of them, at so many a second; 0 if not known."""
        if self._deadline is not None:
            most = self._steps if rate > 0 else round(self._later(number, self.horizon))
            horizon = self._deadline.horizon(number, most, rate)
            self.horizon = self._agree.horizon(horizon, number, rate)
        return self.horizon

    def _later(self, number: int, horizon: float) -> float:
        """Returns a horizon from before, after which there is a step to come."""
        return min(float(self._steps), max(number + 1.0, horizon))
