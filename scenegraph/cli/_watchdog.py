"""The end of a command whose time is over, whatever it is doing."""

import contextlib
import dataclasses
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from ..runs import Milestones

# A limit may be exceeded by the larger of these: a share of it, and seconds; a little is left to
# the end of the process.
_SHARE, _SECONDS, _SPARE = 0.03, 3.0, 1.0
# The shortest limit that is kept in this way: shorter ones wait for the compiler.
_SHORTEST = 60.0


@dataclasses.dataclass(frozen=True)
class Watchdog:
    """Ends the process when its time is over, in the middle of compiling or of its report.

    What has been saved by then is whole. Before the first step nothing is worth saving; from then
    on it waits until the state is saved.
    """

    limit: float | None
    elapsed: float
    milestones: "Milestones"

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watches over what is done in the context."""
        if self.limit is None or self.limit < _SHORTEST:
            yield
            return
        done = threading.Event()
        left = self.limit + max(_SHARE * self.limit, _SECONDS) - _SPARE - self.elapsed
        threading.Thread(target=self._watch, args=(done, max(0.0, left)), daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _watch(self, done: threading.Event, seconds: float) -> None:
        if done.wait(seconds):
            return
        if not self.milestones.stepped.is_set():
            self._end(
                3,
                "the time is over before the first step: pictures were read and programs "
                "compiled, and those that are done are remembered. Fit again, with a longer "
                "--max-time.",
            )
        self.milestones.saved.wait()
        if not done.is_set():
            self._end(
                self.milestones.code,
                "the time is over before the report is done; the fit "
                "is saved, and `scenegraph eval` and `scenegraph render` do the rest.",
            )

    def _end(self, code: int, message: str) -> None:
        sys.stderr.write(f"\nscenegraph: {message}\n")
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(code)
