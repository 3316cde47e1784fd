"""The share of a time limit that a fit leaves to its report."""

import dataclasses
import math
import threading
import time
from collections.abc import Callable
from typing import Any


# The largest share of a limit that goes into the report; the seconds that it takes beside all
# pictures, for compiling, files and a plot; and the part of these that comes at the very end.
_SHARE, _OVERHEAD, _CLOSING = 0.25, 6.0, 2.5
# How much longer than those before a picture may take, so that it can still be begun.
_MARGIN = 1.3
_MANY = 2**31


@dataclasses.dataclass
class TimePlan:
    """The end of a time limit, and the part of it that a report needs, as far as is known.

    A quarter of the limit is left to the report at most. How long pictures take is measured on the
    way.
    """

    end: float = math.inf  # a time of `time.monotonic()`
    limit: float = math.inf  # the length of the limit, in seconds
    rays: int = 0  # the number of rays of all pictures of the report
    agree: Callable[[Any], Any] = lambda value: value  # returns the first process's value

    def __post_init__(self):
        self._lock = threading.Lock()
        self._ray_seconds: float | None = None

    @property
    def limited(self) -> bool:
        """True if there is a limit."""
        return math.isfinite(self.end)

    def measure(self, rays: int, seconds: float) -> None:
        """Takes note of how long a picture took; those before it count half."""
        with self._lock:
            known, new = self._ray_seconds, seconds / max(1, rays)
            self._ray_seconds = new if known is None else (known + new) / 2

    def steps_end(self) -> float:
        """Returns the time at which the last step has to be done."""
        # end - min(share of the limit, overhead + rays * seconds a ray)
        known = self._ray_seconds
        wanted = math.inf if known is None else _OVERHEAD + self.rays * known
        return self.end - min(_SHARE * self.limit, wanted)

    def count_within(self, share: float, rays: int) -> int:
        """Returns how many pictures a share of the limit is enough for, as far as is known."""
        known = self._ray_seconds
        if not self.limited or known is None:
            return _MANY
        return self.agree(int(share * self.limit / (known * rays)))

    def allows(self, rays: int) -> bool:
        """Returns true if there is time for one more picture, as far as is known."""
        return self.affordable(rays) > 0

    def affordable(self, rays: int) -> int:
        """Returns how many pictures there is time for, as far as is known."""
        if not self.limited:
            return _MANY
        left, known = self.end - time.monotonic() - _CLOSING, self._ray_seconds
        # time left / (margin x seconds of a ray x rays of a picture)
        pictures = _MANY if known is None else int(left / (_MARGIN * known * rays))
        return self.agree(pictures if left > 0 else 0)
