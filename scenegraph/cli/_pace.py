import dataclasses
import time

from ._console import say


@dataclasses.dataclass
class Pace:
    """Tells how far a long task has come, and how long the rest will take.

    **Arguments:**

    - `total`: how many pieces there are.
    - `what`: one piece is called.
    - `every`: seconds between lines; a task that takes less says nothing.
    """

    total: int
    what: str = "picture"
    every: float = 10.0

    def __post_init__(self):
        self._done = 0
        self._first = 0.0
        self._said = time.monotonic()

    def tick(self) -> None:
        """One more piece is done."""
        self._done += 1
        now = time.monotonic()
        if self._done == 1:  # Most of it was compilation, so that it tells nothing of the rest.
            self._first = now
            return
        if now - self._said >= self.every:
            self._said = now
            one = (now - self._first) / (self._done - 1)
            left = round(one * (self.total - self._done))
            say(f"{self.what} {self._done}/{self.total}, {one:.1f} s each, {left} s left")
